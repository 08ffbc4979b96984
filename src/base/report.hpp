// report.hpp - a line of text built without allocation, fit for a signal handler.
//
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>

#include <weft/base/version.hpp>

namespace weft::inline v0::detail {

/// Collects text and numbers in a fixed buffer and writes them to stderr with one write(2).
/// What does not fit is cut off. Async-signal-safe.
class report {
public:
    report& text(const char* text) noexcept;
    report& decimal(std::uint64_t value) noexcept;
    report& hex(const void* address) noexcept;
    void write() noexcept;

private:
    std::size_t used_ = 0;
    char buffer_[512];
};

}  // namespace weft::inline v0::detail
