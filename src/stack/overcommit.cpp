// overcommit.cpp - see overcommit.hpp.
//
// SPDX-License-Identifier: Apache-2.0
#include "stack/overcommit.hpp"

#include <fcntl.h>
#include <unistd.h>

namespace weft::inline v0::detail {

// Where it cannot be read, grow() of a depot finds out what can be had.
std::size_t chunk_size_here(std::size_t wanted) noexcept {
    const int file = ::open("/proc/sys/vm/overcommit_memory", O_RDONLY | O_CLOEXEC);
    if (file < 0) return wanted;
    char text[4];
    const ssize_t got = ::read(file, text, sizeof text);
    ::close(file);
    return got > 0 ? chunk_size_under({text, static_cast<std::size_t>(got)}, wanted) : wanted;
}

}  // namespace weft::inline v0::detail
