// activity.hpp - what runs on a thread right now, as far as a report needs to know it.
//
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>

#include <weft/base/version.hpp>

namespace weft::inline v0::detail {

enum class activity_role : std::uint8_t { fiber, coroutine, fiber_context };

/// As a report has it.
[[nodiscard]] constexpr const char* text_of(activity_role role) noexcept {
    constexpr const char* texts[] = {"fiber", "coroutine", "fiber_context"};
    return texts[static_cast<std::size_t>(role)];
}

/// Three words: every fiber has one.
struct activity {
    const char* name = "";
    std::byte* stack_low = nullptr;

    [[nodiscard]] std::size_t stack_size() const noexcept { return size_; }
    void set_stack_size(std::size_t size) noexcept { size_ = (size < most ? size : most) & most; }
    void set_stack(std::byte* low, std::size_t size) noexcept {
        stack_low = low;
        set_stack_size(size);
    }

private:
    static constexpr std::size_t most = 0xffff'ffff'ffff;  // more than there are addresses
    std::uint64_t size_ : 48 = 0;

public:
    activity_role role : 8 = activity_role::fiber;

    /// Whether it can yield to a resumer.
    [[nodiscard]] bool is_coroutine() const noexcept { return role != activity_role::fiber; }
};
static_assert(sizeof(activity) == 3 * sizeof(void*));

}  // namespace weft::inline v0::detail
