// overflow_support.hpp - the line that a stack overflow leaves, read and checked.
//
// Under a sanitizer the handler that was there before ours is the sanitizer's: it makes a report of
// its own and exits.
//
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <csignal>
#include <cstdint>
#include <cstdio>
#include <optional>
#include <string>

#include <weft/base/sanitizer.hpp>

#include "subprocess.hpp"
#include "weft_test.hpp"

namespace weft_test {

inline constexpr const char* overflow_opening = "weft: stack overflow in ";

/// What our line says.
struct overflow_line {
    char who[64] = "";
    std::uint64_t address = 0;
    std::uint64_t low = 0;
    std::uint64_t high = 0;
    std::uint64_t size = 0;
    std::uint64_t depth = 0;
};

inline std::optional<overflow_line> find_overflow_line(const std::string& output) {
    const std::size_t at = output.find(overflow_opening);
    if (at == output.npos) return std::nullopt;
    overflow_line line;
    const int found =
        std::sscanf(output.c_str() + at,
                    "weft: stack overflow in %63[^:]: address %lx is below its stack "
                    "%lx-%lx (%lu bytes), %lu bytes deep\n",
                    line.who, &line.address, &line.low, &line.high, &line.size, &line.depth);
    if (found != 6) return std::nullopt;
    return line;
}

inline std::size_t count_of(const std::string& text, const std::string& output) {
    std::size_t count = 0;
    for (std::size_t at = output.find(text); at != output.npos; at = output.find(text, at + 1))
        ++count;
    return count;
}

inline bool died_of_a_fault(const subprocess_result& result) {
    if (WEFT_ASAN || WEFT_TSAN) return !result.exited_with(0) && result.says("Sanitizer");
    return result.killed_by(SIGSEGV);
}

/// One line, about this fiber, coroutine or context, whose numbers agree with each other and with
/// where the body was.
inline void check_overflow_line(const subprocess_result& result, const std::string& who) {
    CHECK(count_of(overflow_opening, result.output) == 1);
    const auto line = find_overflow_line(result.output);
    REQUIRE(line.has_value());
    CHECK(line->who == who);
    CHECK(line->high - line->low == line->size);
    CHECK(line->address < line->low);
    CHECK(line->low - line->address <= 1024 * 1024);
    CHECK(line->depth >= line->high - line->address);
    CHECK(line->depth <= line->size + 1024 * 1024);
    std::uint64_t body = 0;
    const std::size_t at = result.output.find("body at ");
    if (at == result.output.npos) return;
    REQUIRE(std::sscanf(result.output.c_str() + at, "body at %lx", &body) == 1);
    CHECK(line->low < body);
    CHECK(body < line->high);
}

}  // namespace weft_test
