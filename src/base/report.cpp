// report.cpp - see report.hpp.
//
// SPDX-License-Identifier: Apache-2.0
#include "base/report.hpp"

#include <unistd.h>

#include <cerrno>

namespace weft::inline v0::detail {

report& report::text(const char* text) noexcept {
    while (*text != '\0' && used_ < sizeof buffer_) buffer_[used_++] = *text++;
    return *this;
}

report& report::decimal(std::uint64_t value) noexcept {
    char digits[21];
    char* first = digits + sizeof digits - 1;
    *first = '\0';
    do {
        *--first = static_cast<char>('0' + value % 10);
        value /= 10;
    } while (value != 0);
    return text(first);
}

report& report::hex(const void* address) noexcept {
    auto value = reinterpret_cast<std::uintptr_t>(address);
    char digits[2 * sizeof value + 1];
    char* first = digits + sizeof digits - 1;
    *first = '\0';
    do {
        *--first = "0123456789abcdef"[value % 16];
        value /= 16;
    } while (value != 0);
    return text("0x").text(first);
}

void report::write() noexcept {
    const char* next = buffer_;
    while (used_ > 0) {
        const ssize_t written = ::write(STDERR_FILENO, next, used_);
        if (written < 0 && errno == EINTR) continue;
        if (written <= 0) return;
        next += written;
        used_ -= static_cast<std::size_t>(written);
    }
}

}  // namespace weft::inline v0::detail
