// latch.cpp - see latch.hpp; the protocol is wait_word.hpp's.
//
// SPDX-License-Identifier: Apache-2.0
#include <weft/sync/latch.hpp>

#include <weft/fiber/detail/swapped.hpp>

namespace weft::inline v0 {

using detail::wait_word;

namespace {
constexpr wait_reason waits{"waits for a latch"};
constexpr wait_reason arrives{"arrives at a latch and waits", false};
constexpr const char* below_zero = "latch: counted down below zero";
}  // namespace

bool latch::arrive(std::ptrdiff_t update) noexcept {
    WEFT_ASSERT(update >= 0, "latch: counted down by less than nothing");
    const auto count = static_cast<std::uint64_t>(update);
    std::uint64_t seen = word_.load(std::memory_order_relaxed);
    while ((seen & wait_word::busy) == 0) {
        WEFT_ASSERT(count <= seen / wait_word::unit, below_zero);
        // acq_rel: the last one hands on what those before it did
        if (word_.change(seen, seen - count * wait_word::unit, std::memory_order_acq_rel))
            return seen == count * wait_word::unit;
    }
    const std::uint64_t number = word_.enter();
    WEFT_ASSERT(count <= number, below_zero);
    detail::woken_list woken;
    if (number == count) word_.queue().claim_all(woken);
    word_.leave(number - count);
    woken.wake();
    return number == count;
}

void latch::wait() const {
    if (!try_wait() && wait_for_zero(waits) == wait_outcome::cancelled) detail::throw_cancelled();
}

void latch::arrive_and_wait(std::ptrdiff_t update) {
    if (!arrive(update) && !try_wait()) static_cast<void>(wait_for_zero(arrives));
}

wait_outcome latch::wait_for_zero(const wait_reason& reason) const {
    detail::refuse_on_shared_stack(this, "latch: lies in the stack of a swapped fiber");
    return weft::wait(
        reason, no_deadline,
        [word = &word_](waiter& me) noexcept {
            const std::uint64_t number = word->enter();
            if (number != 0) word->queue().push_back(me);
            word->leave(number);
            return number != 0;
        },
        [word = &word_](waiter& me) noexcept { word->withdraw(me); });
}

}  // namespace weft::inline v0
