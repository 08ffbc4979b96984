// memory_probe.hpp - asks the kernel whether memory may be read and written.
//
// A system call that is given memory which may not be touched fails with EFAULT, and no signal is
// raised. So a million guards can be tried one after the other, in the process that has them.
//
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fcntl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <cstddef>
#include <system_error>

#include <weft/stack/stack.hpp>

namespace weft_test {

class memory_probe {
public:
    memory_probe() {
        check(::pipe2(ends_, O_CLOEXEC | O_NONBLOCK), "pipe2");
        zeros_ = ::open("/dev/zero", O_RDONLY | O_CLOEXEC);
        check(zeros_, "open");
    }
    memory_probe(const memory_probe&) = delete;
    memory_probe& operator=(const memory_probe&) = delete;
    ~memory_probe() {
        for (const int end : {ends_[0], ends_[1], zeros_}) ::close(end);
    }

    [[nodiscard]] bool readable(const std::byte* address) const {
        if (!succeeds(SYS_write, ends_[1], address)) return false;
        char drained;
        check(static_cast<int>(::read(ends_[0], &drained, 1)), "read");
        return true;
    }

    /// Leaves a zero there if it is.
    [[nodiscard]] bool writable(std::byte* address) const {
        return succeeds(SYS_read, zeros_, address);
    }

    /// Whether neither end of the guard below this stack may be touched.
    [[nodiscard]] bool guarded(const weft::stack& s, std::size_t guard_size) const {
        std::byte* const first = s.low - guard_size;
        std::byte* const last = s.low - 1;
        return !readable(last) && !writable(last) && !readable(first) && !writable(first);
    }

    /// Whether both ends of this stack may be used.
    [[nodiscard]] bool usable(const weft::stack& s) const {
        return writable(s.low) && readable(s.low) && writable(s.high() - 1) &&
               readable(s.high() - 1);
    }

private:
    // Raw, for the sanitizers look into the memory that is given to read() and write().
    static bool succeeds(long call, int descriptor, const std::byte* address) {
        if (::syscall(call, descriptor, address, std::size_t{1}) == 1) return true;
        if (errno == EFAULT) return false;
        throw std::system_error(errno, std::generic_category(), "memory_probe");
    }

    static void check(int result, const char* what) {
        if (result < 0) throw std::system_error(errno, std::generic_category(), what);
    }

    int ends_[2] = {-1, -1};
    int zeros_ = -1;
};

}  // namespace weft_test
