// io_cat.cpp - copies its standard input to its standard output, on fibers; its size to stderr.
//
// With an argument it stops after its first line, which shows that a wait for more is cancelled.
//
// SPDX-License-Identifier: Apache-2.0
#include <array>
#include <string>

#include <weft/weft.hpp>

#include "program_support.hpp"

using namespace weft;
using weft_test::require;

namespace {

std::size_t copy() {
    std::size_t all = 0;
    std::array<std::byte, 3000> buffer;
    while (const auto n = io::standard_input().read_some(buffer)) {
        if (*n == 0) break;
        if (!io::standard_output().write_all(std::span(buffer).first(*n))) break;
        all += *n;
    }
    return all;
}

void first_line_only() {
    io::buffered_reader lines(io::standard_input());
    const std::string line(lines.read_until("\n").value());
    io::standard_output().write_all(line).value();
    const auto more =
        with_timeout(std::chrono::milliseconds(10), [&] { return lines.read_until("\n"); });
    require(!more && more.error() == std::errc::timed_out);
}

}  // namespace

int main(int argc, char**) {
    run([&] {
        if (argc > 1) return first_line_only();
        const std::size_t size = copy();
        io::standard_error().write_all(std::to_string(size) + "\n").value();
    });
}
