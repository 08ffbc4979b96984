// ready_queue.hpp - what one thread will run: first in, first out, with memory fetched ahead.
//
// A queue of a few runnables is in the cache. One of a hundred thousand is not, and then every
// dispatch waits for memory twice: for the runnable, and for what that touches first (a fiber's
// stack). So in a long queue each runnable knows the one `distance` places behind it. When such a
// queue is popped, that one is fetched; half the distance later it has arrived, and what it points
// to is fetched. A queue is long from `fetch_from` runnables on, until it is half that.
//
//   pop   .  .  .  .  .  .  .  x8 .          x8 is fetched
//         |  .  .  .  x4 .  .  .  .          the first line of what x4 touches (x4 came 4 pops ago)
//         |  x2 .  .  .  .  .  .  .          the other lines of what x2 touches
//         runs
//
// The other lines come later because the page of the first may be unknown to the processor: with a
// second fetch from there while it is looked up, Zen 3 is as slow as without any.
//
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstddef>
#include <cstring>

#include <weft/exec/runnable.hpp>

namespace weft::inline v0::detail {

/// Thread-safe: no; it belongs to whoever runs its owner.
class ready_queue {
public:
    ready_queue() noexcept = default;
    ready_queue(const ready_queue&) = delete;
    ready_queue& operator=(const ready_queue&) = delete;

    [[nodiscard]] bool empty() const noexcept { return head_ == nullptr; }
    [[nodiscard]] std::size_t size() const noexcept {
        return static_cast<std::size_t>(beyond_ + base_);
    }

    /// From now on what runs here calls the kernel, which uses the cache for itself: so even a
    /// short queue is fetched ahead, and more of what each touches.
    void expect_kernel() noexcept {
        end_fetching();
        beyond_ += fetch_from_ - fetch_from_with_kernel;
        base_ = fetch_from_ = fetch_from_with_kernel;
        lines_ = lines_with_kernel;
    }

    void push(runnable* r) noexcept {
        *last_link_ = r;
        last_link_ = &r->next_node;
        if (++beyond_ >= 0) [[unlikely]]
            note_distance(r);
    }

    /// nullptr if it is empty.
    [[nodiscard]] runnable* pop() noexcept {
        runnable* const r = pop_simple();
        if (r != nullptr && is_long_) fetch_ahead(*r);
        return r;
    }

    /// Whether there are many: then most of them are not in the cache.
    [[nodiscard]] bool is_long() const noexcept { return is_long_; }
    /// Whether pop_simple() will do: it is not long, and the owner keeps nothing elsewhere.
    [[nodiscard]] bool is_simple() const noexcept { return !is_special_; }
    /// The same as pop(), while is_simple().
    [[nodiscard]] runnable* pop_simple() noexcept {
        runnable* const r = head_;
        if (r != nullptr) pop_first(r);
        return r;
    }
    /// What pop_simple() would give.
    [[nodiscard]] runnable* first() const noexcept { return head_; }
    /// pop_simple() of first(), which there is.
    [[gnu::always_inline]] void pop_first(runnable* first) noexcept {
        if (last_link_ == &first->next_node) {
            head_ = nullptr;
            last_link_ = &head_;
        } else {
            head_ = first->next_node;
        }
        --beyond_;
    }
    /// push(r), and then pop_first(first): as many as before.
    [[gnu::always_inline]] void rotate(runnable* first, runnable* r) noexcept {
        *last_link_ = r;  // that of first, perhaps
        last_link_ = &r->next_node;
        // g++ would put both together in a vector's register, and the next one waits for its half.
        asm volatile("" ::: "memory");
        head_ = first->next_node;
    }
    /// For the owner, who has others that may come first.
    void set_others(bool has_others) noexcept {
        has_others_ = has_others;
        is_special_ = is_long_ | has_others_;
    }

    /// Moves everything out, in order, as a list of next_node links.
    [[nodiscard]] runnable* take_all() noexcept {
        runnable* const all = head_;
        *last_link_ = nullptr;
        head_ = nullptr;
        last_link_ = &head_;
        end_fetching();
        beyond_ = -base_;
        return all;
    }

private:
    static constexpr std::size_t distance = 8;
    static constexpr std::ptrdiff_t fetch_from = 1536;  // fewer are in the cache anyway
    static constexpr std::ptrdiff_t fetch_from_with_kernel = 16;
    static_assert(fetch_from_with_kernel / 2 >= static_cast<std::ptrdiff_t>(distance));
    static constexpr unsigned lines = 2;
    static constexpr unsigned lines_with_kernel = 8;
    static constexpr std::size_t line = 64;
    // Of a runnable, beside its first line: what a fiber's switch touches (fiber_block.hpp).
    static constexpr std::size_t second_line = 128;

    // `behind_` is the one that stands `distance` places before the tail; each push moves both by
    // one.
    void note_distance(runnable* r) noexcept {
        if (!is_long_) [[unlikely]]
            return begin_fetching();
        behind_->ahead_node = r;
        behind_ = behind_->next_node;
    }

    // With fetch_from_ in the queue; again after half as many were pushed at the earliest.
    [[gnu::noinline]] void begin_fetching() noexcept {
        behind_ = head_;
        runnable* ahead = head_;
        for (std::size_t i = 0; i < distance; ++i) ahead = ahead->next_node;
        for (;; ahead = ahead->next_node) {
            behind_->ahead_node = ahead;
            behind_ = behind_->next_node;
            if (&ahead->next_node == last_link_) break;
        }
        is_long_ = is_special_ = true;
        base_ = fetch_from_ / 2;
        beyond_ += fetch_from_ - base_;
    }

    void end_fetching() noexcept {
        fetched_ = 0;
        coming_ = {};
        is_long_ = false;
        is_special_ = has_others_;
        beyond_ += base_ - fetch_from_;
        base_ = fetch_from_;
    }

    // r was popped and at least `distance` others are behind it, so its link ahead is of this stay
    // in the queue.
    [[gnu::noinline]] void fetch_ahead(runnable& r) noexcept {
        if (beyond_ < 0) return end_fetching();
        runnable* const ahead = r.ahead_node;
        __builtin_prefetch(ahead, 1);
        __builtin_prefetch(reinterpret_cast<std::byte*>(ahead) + second_line, 1);
        fetch_touched(coming_[(fetched_ - distance / 2) % distance], 0, 1);
        fetch_touched(coming_[(fetched_ - distance * 3 / 4) % distance], 1, lines_);
        coming_[fetched_ % distance] = ahead;
        ++fetched_;
    }

    // Inlined: g++ takes a function that only fetches for one without effect, and calls it nowhere.
    [[gnu::always_inline]] static void fetch_touched(const runnable* coming, unsigned from,
                                                     unsigned end) noexcept {
        if (coming == nullptr || coming->touches_offset == 0) return;
        const std::byte* touched;
        std::memcpy(&touched, reinterpret_cast<const std::byte*>(coming) + coming->touches_offset,
                    sizeof touched);
        if (touched == nullptr) return;  // it has none yet
        for (unsigned i = from; i < end; ++i) __builtin_prefetch(touched + i * line, 1);
    }

    runnable* head_ = nullptr;
    // Where the next one goes: head_, or the link of the last, which says nothing yet.
    runnable** last_link_ = &head_;
    // How many there are beyond base_, below which a queue is not long: a push asks for nothing but
    // its sign.
    std::ptrdiff_t beyond_ = -fetch_from;
    bool is_special_ = false;  // is_long_ or has_others_
    bool is_long_ = false;
    bool has_others_ = false;
    std::ptrdiff_t base_ = fetch_from;
    runnable* behind_ = nullptr;  // while it is long
    std::size_t fetched_ = 0;     // pops in a row that fetched ahead
    std::ptrdiff_t fetch_from_ = fetch_from;
    unsigned lines_ = lines;                    // of what each touches
    std::array<runnable*, distance> coming_{};  // those that were fetched, the last at fetched_ - 1
};

}  // namespace weft::inline v0::detail
