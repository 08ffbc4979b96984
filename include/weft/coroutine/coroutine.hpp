// coroutine.hpp - a function that can stop in the middle and be resumed.
//
//     coroutine c([] {
//         std::puts("one");
//         this_coroutine::yield();          // from any depth
//         std::puts("two");
//     });
//     while (!c.done()) c.resume();
//
// It knows no thread and no scheduler: any thread may resume it, one at a time. `coroutine` has a
// stack of its own; the other back ends (backend.hpp) have the same interface.
//
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <utility>

#include <weft/base/assert.hpp>
#include <weft/coroutine/coroutine_block.hpp>

namespace weft::inline v0 {

namespace this_coroutine {

/// Goes back to whoever resumed the innermost coroutine running here; returns when it is resumed
/// again. Suspends: always. Cancel: throws forced_unwind when the coroutine is destroyed meanwhile.
/// From: a coroutine of any back end, any depth. Fails: never. Aborts: outside any coroutine.
[[gnu::always_inline]] inline void yield() { basic_coroutine_block<own_backend>::yield_here(); }

}  // namespace this_coroutine

/// Thread-safe: no; use it from one thread at a time, with the usual order between them.
template <coroutine_backend Backend>
class basic_coroutine {
public:
    /// Empty: there is nothing to resume.
    basic_coroutine() noexcept = default;

    /// Will run f() on its first resume(). Fails: std::bad_alloc or std::system_error (no memory,
    /// no stack, no thread), std::invalid_argument (sizes that make no sense); nothing is left
    /// behind.
    template <std::invocable F>
        requires(!std::same_as<std::remove_cvref_t<F>, basic_coroutine>)
    explicit basic_coroutine(F&& f) : basic_coroutine(coroutine_options{}, std::forward<F>(f)) {}

    template <std::invocable F>
    basic_coroutine(const coroutine_options& options, F&& f)
        : block_(new block_of<std::decay_t<F>>(options, std::forward<F>(f))) {}

    basic_coroutine(basic_coroutine&& other) noexcept
        : block_(std::exchange(other.block_, nullptr)) {}
    basic_coroutine& operator=(basic_coroutine&& other) noexcept {
        basic_coroutine(std::move(other)).swap(*this);
        return *this;
    }

    /// If it is suspended, its body is unwound by forced_unwind first.
    ~basic_coroutine() { basic_coroutine_block<Backend>::destroy(block_); }

    /// Runs the body until it yields or ends. An exception that leaves the body comes out here, and
    /// the coroutine is done. Suspends: never (it calls). From: any thread, one at a time. Fails:
    /// as the body does; a swapped one also as its allocator. Aborts: if it is running, done or
    /// empty.
    [[gnu::always_inline]] void resume() {
        require_block();
        block_->resume();
    }

    /// Whether the body has ended, or there is none.
    [[nodiscard]] bool done() const noexcept { return block_ == nullptr || block_->done(); }
    [[nodiscard]] explicit operator bool() const noexcept { return block_ != nullptr; }
    /// The one from its options.
    [[nodiscard]] std::string_view name() const noexcept {
        return block_ == nullptr ? std::string_view() : block_->name;
    }

    /// How many bytes of its stack were ever used; needs coroutine_options::measure_stack, else 0.
    [[nodiscard]] std::size_t stack_high_water() const noexcept {
        return block_ == nullptr ? 0 : block_->stack_high_water();
    }

    /// What is particular to the back end. Aborts: if the coroutine is empty.
    [[nodiscard]] Backend& backend() noexcept {
        require_block();
        return block_->backend();
    }

    /// Each is what the other was; neither is resumed.
    void swap(basic_coroutine& other) noexcept { std::swap(block_, other.block_); }

    /// The same as this_coroutine::yield().
    [[gnu::always_inline]] static void yield() { this_coroutine::yield(); }

private:
    template <class F>
    class block_of final : public basic_coroutine_block<Backend> {
    public:
        template <class G>
        block_of(const coroutine_options& options, G&& f)
            : basic_coroutine_block<Backend>(options), f_(std::forward<G>(f)) {}

    private:
        void run() override { std::invoke(f_); }
        F f_;
    };

    // Always inlined, too: where it is not, g++ warns of what is read of an empty one behind it.
    [[gnu::always_inline]] void require_block() const {
        if (block_ == nullptr) [[unlikely]]
            detail::fail("coroutine: used while empty (moved from, or never made)");
    }

    basic_coroutine_block<Backend>* block_ = nullptr;
};

/// With a stack of its own and weft's switch.
using coroutine = basic_coroutine<own_backend>;
/// With a stack of its own and swapcontext.
using ucontext_coroutine = basic_coroutine<ucontext_backend>;
/// On an OS thread of its own, of which one runs at a time.
using thread_coroutine = basic_coroutine<thread_backend>;
/// At a place on a stack that many share.
using swapped_coroutine = basic_coroutine<swapped_backend>;

}  // namespace weft::inline v0
