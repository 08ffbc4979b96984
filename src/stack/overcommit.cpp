// overcommit.cpp - see overcommit.hpp.
//
// SPDX-License-Identifier: Apache-2.0
#include "stack/overcommit.hpp"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

namespace weft::inline v0::detail {

namespace {

// Asked by looking: is there memory in a page that nobody has touched?
bool memory_is_made_at_once() noexcept {
    constexpr std::size_t page = 4096;
    void* const untouched =
        ::mmap(nullptr, page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (untouched == MAP_FAILED) return false;
    unsigned char is_there = 0;
    const bool made = ::mincore(untouched, page, &is_there) == 0 && (is_there & 1) != 0;
    ::munmap(untouched, page);
    return made;
}

}  // namespace

// Where it cannot be read, grow() of a depot finds out what can be had.
std::size_t chunk_size_here(std::size_t wanted) noexcept {
    if (memory_is_made_at_once()) return std::min(wanted, counted_chunk_size);
    const int file = ::open("/proc/sys/vm/overcommit_memory", O_RDONLY | O_CLOEXEC);
    if (file < 0) return wanted;
    char text[4];
    const ssize_t got = ::read(file, text, sizeof text);
    ::close(file);
    return got > 0 ? chunk_size_under({text, static_cast<std::size_t>(got)}, wanted) : wanted;
}

}  // namespace weft::inline v0::detail
