// event.cpp - see event.hpp; the protocol is wait_word.hpp's.
//
// Nobody is in the queue while it is set.
//
// SPDX-License-Identifier: Apache-2.0
#include <weft/sync/event.hpp>

#include <weft/fiber/detail/swapped.hpp>

namespace weft::inline v0 {

using detail::wait_word;

namespace {
constexpr wait_reason waits{"waits for an event"};
}

void event::set() noexcept {
    std::uint64_t seen = word_.load(std::memory_order_relaxed);
    while ((seen & wait_word::busy) == 0)  // also if it is set: what happened before counts
        if (word_.change(seen, wait_word::unit, std::memory_order_acq_rel)) return;
    static_cast<void>(word_.enter());
    detail::woken_list woken;
    bool taken = false;
    if (automatic_) {
        if (waiter* const one = word_.queue().claim_one()) {
            woken.add(*one);
            taken = true;
        }
    } else {
        word_.queue().claim_all(woken);
    }
    word_.leave(taken ? 0 : 1);
    woken.wake();
}

void event::reset() noexcept {
    std::uint64_t seen = word_.load(std::memory_order_relaxed);
    while ((seen & wait_word::busy) == 0)
        if (word_.change(seen, 0, std::memory_order_acquire)) return;
    static_cast<void>(word_.enter());
    word_.leave(0);
}

bool event::try_wait() noexcept {
    if (!automatic_) return is_set();
    std::uint64_t seen = word_.load(std::memory_order_relaxed);
    while (seen == wait_word::unit)
        if (word_.change(seen, 0, std::memory_order_acquire)) return true;
    if ((seen & wait_word::guarded) == 0) return false;
    const bool is = word_.enter() != 0;  // somebody else is about to change it
    word_.leave(0);
    return is;
}

void event::wait() {
    if (wait_until_set(no_deadline) == wait_outcome::cancelled) detail::throw_cancelled();
}

wait_outcome event::wait_until_set(time_point deadline) {
    if (try_wait()) return wait_outcome::event;
    detail::refuse_on_shared_stack(this, "event: lies in the stack of a swapped fiber");
    return weft::wait(
        waits, deadline,
        [word = &word_, automatic = automatic_](waiter& me) noexcept {
            const bool is = word->enter() != 0;
            if (!is) word->queue().push_back(me);
            word->leave(is && !automatic ? 1 : 0);
            return !is;
        },
        [word = &word_](waiter& me) noexcept { word->withdraw(me); });
}

}  // namespace weft::inline v0
