// coroutine_thread.cpp - see coroutine_thread.hpp.
//
// SPDX-License-Identifier: Apache-2.0
#include "coroutine/coroutine_thread.hpp"

#include <limits.h>

#include <algorithm>
#include <array>
#include <string_view>
#include <system_error>

#include <weft/coroutine/coroutine_block.hpp>
#include <weft/stack/overflow.hpp>
#include <weft/stack/watermark.hpp>

#include "stack/guard.hpp"

namespace weft::inline v0::detail {

namespace {

using thread_name = std::array<char, 16>;  // what Linux keeps, with a zero at the end

void check(int error, const char* what) {
    if (error != 0) throw std::system_error(error, std::generic_category(), what);
}

struct attributes {
    attributes() { check(::pthread_attr_init(&value), "weft: pthread_attr_init"); }
    ~attributes() { ::pthread_attr_destroy(&value); }
    pthread_attr_t value;
};

stack stack_of_this_thread() noexcept {
    pthread_attr_t attributes;
    if (::pthread_getattr_np(::pthread_self(), &attributes) != 0) return {};
    void* low = nullptr;
    std::size_t size = 0;
    ::pthread_attr_getstack(&attributes, &low, &size);
    ::pthread_attr_destroy(&attributes);
    return {static_cast<std::byte*>(low), size};
}

// What is above belongs to glibc and to frames that are in use.
[[gnu::noinline]] void paint_below_here(const stack& bounds) noexcept {
    auto* const here = static_cast<std::byte*>(__builtin_frame_address(0));
    const auto free = static_cast<std::size_t>(here - bounds.low);
    constexpr std::size_t frames_of_paint = 1024;
    if (free > frames_of_paint) paint({bounds.low, (free - frames_of_paint) / 8 * 8});
}

}  // namespace

// glibc takes its thread-local storage and guard from the size: PTHREAD_STACK_MIN allows for both.
coroutine_thread::coroutine_thread(std::size_t stack_size) : stack_size_(stack_size) {
    attributes made;
    check(::pthread_attr_setguardsize(&made.value, guard_size),
          "weft: guard of a coroutine's thread");
    check(::pthread_attr_setstacksize(
              &made.value, stack_size + guard_size + static_cast<std::size_t>(PTHREAD_STACK_MIN)),
          "weft: stack size of a coroutine's thread");
    check(::pthread_create(&thread_, &made.value, &main, this),
          "weft: starting a coroutine's thread");
}

coroutine_thread::~coroutine_thread() {
    entry_ = nullptr;
    turn_.give(hand_over::body);
    ::pthread_join(thread_, nullptr);
}

void coroutine_thread::enter() noexcept {
    thread_block& resumer = this_thread_block();  // nothing runs here before it is our turn again
    resumer.handed_to = thread_;
    turn_.give(hand_over::body);
    turn_.await(hand_over::resumer, true);
    resumer.handed_to = 0;
}

void coroutine_thread::leave() noexcept {
    turn_.give(hand_over::resumer);
    turn_.await(hand_over::body, true);
}

void* coroutine_thread::main(void* self) {
    prepare_thread_for_overflow();
    static_cast<coroutine_thread*>(self)->run();
    return nullptr;
}

// What runs is this thread's activity from its first enter to its end, and the thread has its name
// as long.
void coroutine_thread::run() noexcept {
    const stack bounds = stack_of_this_thread();
    thread_name own{};
    ::pthread_getname_np(::pthread_self(), own.data(), own.size());
    turn_.await(hand_over::body, false);
    while (entry_ != nullptr) {
        activity_->set_stack(bounds.low, bounds.size);
        this_thread_block().running = activity_;
        const std::string_view given = activity_->name;
        const bool renamed = !given.empty();
        if (renamed) {
            thread_name name{};
            std::ranges::copy(given.substr(0, name.size() - 1), name.begin());
            ::pthread_setname_np(thread_, name.data());
        }
        if (measured_) paint_below_here(bounds);
        entry_(argument_);
        this_thread_block().running = nullptr;
        if (renamed) ::pthread_setname_np(thread_, own.data());
        turn_.give(hand_over::resumer);
        turn_.await(hand_over::body, false);
    }
}

}  // namespace weft::inline v0::detail
