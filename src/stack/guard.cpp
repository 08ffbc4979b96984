// guard.cpp - see guard.hpp.
//
// SPDX-License-Identifier: Apache-2.0
#include "stack/guard.hpp"

#include <sys/mman.h>
#include <sys/utsname.h>

#include <cerrno>

namespace weft::inline v0::detail {

namespace {

// Newer than the headers of Debian 12 (Linux 6.13).
constexpr int madv_guard_install = 102;

// madvise may say yes and do nothing: qemu-user does. So a system call is given the guarded memory
// to write to, and must refuse. Memory that is locked (mlockall) cannot have such guards: madvise
// says no.
bool guards_can_be_installed() noexcept {
    void* memory =
        ::mmap(nullptr, guard_size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED) return false;
    const bool works = ::madvise(memory, guard_size, madv_guard_install) == 0 &&
                       ::uname(static_cast<utsname*>(memory)) == -1 && errno == EFAULT;
    ::munmap(memory, guard_size);
    return works;
}

}  // namespace

guard_kind choose_guard(guard_kind wanted) noexcept {
    if (wanted != guard_kind::best) return wanted;
    static const bool can_install = guards_can_be_installed();
    return can_install ? guard_kind::install : guard_kind::protect;
}

// Memory may be locked after the probe: it then gets a guard of the other kind.
int install_guard(guard_kind kind, std::byte* low) noexcept {
    if (kind == guard_kind::install) {
        if (::madvise(low, guard_size, madv_guard_install) == 0) return 0;
        const int error = errno;
        if (error != EINVAL || choose_guard(guard_kind::best) != guard_kind::install) return error;
    }
    return ::mprotect(low, guard_size, PROT_NONE) == 0 ? 0 : errno;
}

}  // namespace weft::inline v0::detail
