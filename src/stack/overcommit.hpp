// overcommit.hpp - how much address space a depot reserves at a time.
//
// Address space costs nothing, but where the system counts every byte of it that could be written
// as if it were (vm.overcommit_memory=2): there a gigabyte for each size class is more than many a
// program may have, and whoever comes next has less. Nor is it free where the kernel makes memory
// of it at once, for a program that called mlockall(MCL_FUTURE): a gigabyte of that takes a second.
//
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstddef>
#include <string_view>

#include <weft/base/version.hpp>

namespace weft::inline v0::detail {

inline constexpr std::size_t counted_chunk_size = std::size_t{16} << 20;

/// What to reserve of `wanted`, by what stands in /proc/sys/vm/overcommit_memory.
[[nodiscard]] constexpr std::size_t chunk_size_under(std::string_view overcommit_memory,
                                                     std::size_t wanted) noexcept {
    const bool counts = overcommit_memory == "2\n" || overcommit_memory == "2";
    return counts ? std::min(wanted, counted_chunk_size) : wanted;
}

/// The same, by what stands there now, and by whether memory is made at once.
[[nodiscard]] std::size_t chunk_size_here(std::size_t wanted) noexcept;

}  // namespace weft::inline v0::detail
