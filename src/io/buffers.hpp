// buffers.hpp - several spans as the kernel takes them.
//
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/uio.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <span>

#include <weft/base/version.hpp>

namespace weft::inline v0::detail {

/// The first 64 of them.
class io_vector {
public:
    template <class Byte>
    explicit io_vector(std::span<const std::span<Byte>> buffers) noexcept
        : count_(std::min(buffers.size(), most)) {
        for (std::size_t i = 0; i < count_; ++i)
            entries_[i] = {.iov_base = const_cast<std::byte*>(buffers[i].data()),
                           .iov_len = buffers[i].size()};
    }

    [[nodiscard]] const iovec* data() const noexcept { return entries_.data(); }
    [[nodiscard]] iovec* data() noexcept { return entries_.data(); }
    [[nodiscard]] int count() const noexcept { return static_cast<int>(count_); }

private:
    static constexpr std::size_t most = 64;
    std::array<iovec, most> entries_;
    std::size_t count_;
};

}  // namespace weft::inline v0::detail
