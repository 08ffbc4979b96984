// write_quietly.hpp - write(2) to what may be a pipe that nobody reads, without SIGPIPE.
//
// The kernel raises it in this thread, and cannot be told to leave that out. So it is held back
// meanwhile, and taken away, unless it was there before.
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

    bool broken = false;

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

/// As writev(2): its result, or minus errno.
inline long write_quietly(int number, const iovec* buffers, int count) noexcept {
    without_sigpipe quiet;
    const long result = system_call([=] { return ::writev(number, buffers, count); });
    quiet.broken = result == -EPIPE;
    return result;
}

}  // namespace weft::inline v0::detail
