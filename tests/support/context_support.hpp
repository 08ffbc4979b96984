// context_support.hpp - contexts for tests: memory for a stack, a body on it, a way in and out.
//
//     CONTEXT_TEST("context: comes back to where it paused") {
//         weft_test::stepper<Context> body([](auto& me) { me.pause(); });
//         body.step();
//         body.step();
//         CHECK(body.done());
//     }
//
// CONTEXT_TEST makes one test of each kind of context that this build has; in its body the kind is
// called Context. The stacks are plain memory: no guard, no cache.
//
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <weft/context/context.hpp>

#include <cstddef>
#include <functional>
#include <memory>
#include <span>
#include <string_view>
#include <utility>

#include "weft_test.hpp"

namespace weft_test {

inline constexpr std::size_t context_stack_size = (WEFT_ASAN ? 256 : 64) * 1024;
inline constexpr bool with_sanitizer = WEFT_ASAN || WEFT_TSAN;

/// Memory for the stack of one context.
class memory_stack {
public:
    explicit memory_stack(std::size_t size = context_stack_size)
        : bytes_(std::make_unique_for_overwrite<std::byte[]>(size)), size_(size) {}

    [[nodiscard]] std::span<std::byte> span() const noexcept { return {bytes_.get(), size_}; }

    [[nodiscard]] bool contains(const void* address) const noexcept {
        const auto* byte = static_cast<const std::byte*>(address);
        return byte >= bytes_.get() && byte < bytes_.get() + size_;
    }

private:
    std::unique_ptr<std::byte[]> bytes_;
    std::size_t size_;
};

/// A body that runs in steps, on a stack of its own. One that is destroyed before it is done leaves
/// what stands on its stack undestroyed.
template <class Context>
class stepper {
public:
    using body = std::function<void(stepper&)>;

    explicit stepper(body run, weft::context_options options = {})
        : run_(std::move(run)),
          inside_(Context::make(stack_.span(), &stepper::enter, this, options)) {}
    stepper(const stepper&) = delete;
    stepper& operator=(const stepper&) = delete;

    /// From outside: runs the body until it pauses or ends. Any thread, one at a time.
    void step() { Context::swap(outside_, inside_); }

    /// From the body: goes back to whoever called step().
    void pause() { Context::swap(inside_, outside_); }

    /// From the body: goes straight on with another one, which returns to whoever stepped this one.
    void pass_to(stepper& other) {
        other.outside_ = std::move(outside_);
        Context::swap(inside_, other.inside_);
    }

    [[nodiscard]] bool done() const noexcept { return done_; }
    [[nodiscard]] const memory_stack& stack() const noexcept { return stack_; }
    [[nodiscard]] Context& inside() noexcept { return inside_; }
    [[nodiscard]] Context& outside() noexcept { return outside_; }

private:
    static void enter(void* argument) {
        auto& me = *static_cast<stepper*>(argument);
        me.run_(me);
        me.done_ = true;
        Context::jump(me.outside_);
    }

    memory_stack stack_;
    body run_;
    Context inside_;
    Context outside_;
    bool done_ = false;
};

inline bool add_for_each_context(std::string_view sentence, const char* file, int line,
                                 [[maybe_unused]] body native, body portable) {
#if WEFT_NATIVE_SWITCH
    add(sentence, "native", file, line, native);
#endif
    return add(sentence, "portable", file, line, portable);
}

}  // namespace weft_test

#define CONTEXT_TEST_AT(sentence, run)                                                     \
    template <class Context>                                                               \
    static void run();                                                                     \
    [[maybe_unused]] static const bool WEFT_TEST_NAME(run, _added) =                       \
        weft_test::add_for_each_context(sentence, __FILE__, __LINE__, &run<weft::context>, \
                                        &run<weft::portable_context>);                     \
    template <class Context>                                                               \
    static void run()
#define CONTEXT_TEST(sentence) CONTEXT_TEST_AT(sentence, WEFT_TEST_NAME(test_at_line_, __LINE__))
