// write_quietly.hpp - write(2) to what may be a pipe that nobody reads, without SIGPIPE.
//
// The kernel raises it in this thread, and cannot be told to leave that out. So it is held back
// meanwhile, and taken away, unless it was there before. The same for libraries that write to a
// connection of theirs.
//
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <signal.h>
#include <sys/uio.h>

#include <cerrno>
#include <ctime>

#include "io/system_call.hpp"

namespace weft::inline v0::detail {

class without_sigpipe {
public:
    without_sigpipe() noexcept {
        ::sigemptyset(&only_);
        ::sigaddset(&only_, SIGPIPE);
        sigset_t pending;
        ::sigpending(&pending);
        was_pending_ = ::sigismember(&pending, SIGPIPE) == 1;
        ::pthread_sigmask(SIG_BLOCK, &only_, &before_);
    }
    without_sigpipe(const without_sigpipe&) = delete;
    without_sigpipe& operator=(const without_sigpipe&) = delete;
    ~without_sigpipe() {
        if (broken && !was_pending_)
            while (take() == -EINTR) {}
        ::pthread_sigmask(SIG_SETMASK, &before_, nullptr);
    }

    bool broken = false;  // it was raised, or may have been

private:
    [[nodiscard]] long take() const noexcept {
        return system_call([this] {
            const timespec at_once{};
            return ::sigtimedwait(&only_, nullptr, &at_once);
        });
    }

    sigset_t only_;
    sigset_t before_;
    bool was_pending_ = false;
};

/// A call that writes: its result, or minus errno.
template <class Call>
long write_quietly(Call call) noexcept {
    without_sigpipe quiet;
    const long result = system_call(call);
    quiet.broken = result == -EPIPE;
    return result;
}

/// As writev(2): its result, or minus errno.
inline long write_quietly(int number, const iovec* buffers, int count) noexcept {
    return write_quietly([=] { return ::writev(number, buffers, count); });
}

/// What somebody else's code returns, who does not say what became of its writes.
template <class Function>
auto call_quietly(Function function) {
    without_sigpipe quiet;
    quiet.broken = true;
    return function();
}

}  // namespace weft::inline v0::detail
