// semaphore.cpp - see semaphore.hpp; the protocol is wait_word.hpp's.
//
// Nobody is in the queue while there is a permit: one goes there only if there is none, and a
// release gives to those in the queue before it adds to the number. One that cannot be claimed, for
// its wait ended otherwise, is left out, and its permit goes to the next.
//
// SPDX-License-Identifier: Apache-2.0
#include <weft/sync/semaphore.hpp>

#include <weft/fiber/detail/swapped.hpp>

namespace weft::inline v0::detail {

namespace {
constexpr wait_reason waits{"waits for a semaphore"};
constexpr const char* too_many = "semaphore: released above max()";
}  // namespace

void semaphore_core::release(std::uint64_t count, std::uint64_t most) noexcept {
    std::uint64_t seen = word_.load(std::memory_order_relaxed);
    while ((seen & wait_word::busy) == 0) {
        WEFT_ASSERT(count <= most - seen / wait_word::unit, too_many);
        if (word_.change(seen, seen + count * wait_word::unit, std::memory_order_release)) return;
    }
    const std::uint64_t number = word_.enter();
    WEFT_ASSERT(count <= most - number, too_many);
    woken_list woken;
    while (count > 0) {
        waiter* const one = word_.queue().claim_one();
        if (one == nullptr) break;
        woken.add(*one);
        --count;
    }
    word_.leave(number + count);
    woken.wake();
}

bool semaphore_core::try_acquire() noexcept {
    std::uint64_t seen = word_.load(std::memory_order_relaxed);
    while (seen >= wait_word::unit && (seen & wait_word::busy) == 0)
        if (word_.change(seen, seen - wait_word::unit, std::memory_order_acquire)) return true;
    if ((seen & wait_word::guarded) == 0) return false;
    const std::uint64_t number = word_.enter();  // somebody else is about to change it
    word_.leave(number > 0 ? number - 1 : 0);
    return number > 0;
}

bool semaphore_core::acquire(time_point deadline) {
    refuse_on_shared_stack(this, "semaphore: lies in the stack of a swapped fiber");
    const wait_outcome outcome = wait(
        waits, deadline,
        [word = &word_](waiter& me) noexcept {
            const std::uint64_t number = word->enter();
            if (number == 0) word->queue().push_back(me);
            word->leave(number > 0 ? number - 1 : 0);
            return number == 0;
        },
        [word = &word_](waiter& me) noexcept { word->withdraw(me); });
    if (outcome == wait_outcome::cancelled) throw_cancelled();
    return outcome == wait_outcome::event;
}

}  // namespace weft::inline v0::detail
