// activity.hpp - what runs on a thread right now, as far as a report needs to know it.
//
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>

#include <weft/base/version.hpp>

namespace weft::inline v0::detail {

/// Of a coroutine also which back end it has: who knows only that it runs finds the rest by it.
enum class activity_role : std::uint8_t {
    fiber,
    fiber_context,
    own_coroutine,
    ucontext_coroutine,
    thread_coroutine,
    swapped_coroutine,
};

/// As a report has it.
[[nodiscard]] constexpr const char* text_of(activity_role role) noexcept {
    if (role == activity_role::fiber) return "fiber";
    return role == activity_role::fiber_context ? "fiber_context" : "coroutine";
}

/// Three words: every fiber has one.
struct activity {
    const char* name = "";
    std::byte* stack_low = nullptr;

    [[nodiscard]] std::size_t stack_size() const noexcept { return size_and_role_ & most; }
    void set_stack_size(std::size_t size) noexcept {
        size_and_role_ = (size_and_role_ & ~most) | (size < most ? size : most);
    }
    void set_stack(std::byte* low, std::size_t size) noexcept {
        stack_low = low;
        set_stack_size(size);
    }
    /// The stack of one that does not need it any more.
    void inherit_stack(const activity& ended) noexcept {
        stack_low = ended.stack_low;
        size_and_role_ = (size_and_role_ & ~most) | ended.stack_size();
    }

    [[nodiscard]] activity_role role() const noexcept {
        return static_cast<activity_role>(size_and_role_ >> bits_of_size);
    }
    void set_role(activity_role role) noexcept {
        size_and_role_ = stack_size() | static_cast<std::uint64_t>(role) << bits_of_size;
    }
    /// Whether it can yield to a resumer.
    [[nodiscard]] bool is_coroutine() const noexcept {
        return role() >= activity_role::own_coroutine;
    }

private:
    // One word, written and read as one: a bit-field would be stored in pieces, and the load of the
    // whole, a moment later, would wait for them.
    static constexpr int bits_of_size = 48;  // more than an address has
    static constexpr std::uint64_t most = (std::uint64_t{1} << bits_of_size) - 1;
    std::uint64_t size_and_role_ = 0;
};
static_assert(sizeof(activity) == 3 * sizeof(void*));

}  // namespace weft::inline v0::detail
