// fair_mutex.cpp - see fair_mutex.hpp; the protocol is wait_word.hpp's.
//
// The number is 1 while somebody holds the lock. It stays 1 when the lock is handed over, so nobody
// can come in between.
//
// SPDX-License-Identifier: Apache-2.0
#include <weft/sync/fair_mutex.hpp>

#include <weft/fiber/detail/swapped.hpp>

#include "fiber/wait_graph.hpp"

namespace weft::inline v0 {

namespace {
constexpr wait_reason waits{"waits for a fair_mutex", false};
constexpr wait_reason waits_for_a_time{"waits for a fair_mutex, with a deadline"};
}  // namespace

void fair_mutex::lock_slowly() {
    const detail::waits_for edge("waits for fair_mutex", this, &holder_of, false);
    static_cast<void>(acquire(waits, no_deadline));
}

bool fair_mutex::try_lock_until(time_point deadline) {
    owner_.refuse_again("fair_mutex: locked again by the fiber or thread that holds it");
    if (!take() && !acquire(waits_for_a_time, deadline)) return false;
    owner_.take();
    return true;
}

bool fair_mutex::acquire(const wait_reason& reason, time_point deadline) {
    detail::refuse_on_shared_stack(this, "fair_mutex: lies in the stack of a swapped fiber");
    return wait(
               reason, deadline,
               [word = &word_](waiter& me) noexcept {
                   const bool held = word->enter() != 0;
                   if (held) word->queue().push_back(me);
                   word->leave(1);
                   return held;
               },
               [word = &word_](waiter& me) noexcept { word->withdraw(me); }) == wait_outcome::event;
}

void fair_mutex::hand_over() noexcept {
    const std::uint64_t number = word_.enter();
    WEFT_ASSERT(number == 1, "fair_mutex: unlocked while nobody holds it");
    waiter* const next = word_.queue().claim_one();
    word_.leave(next != nullptr ? 1 : 0);
    if (next != nullptr) next->wake();
}

}  // namespace weft::inline v0
