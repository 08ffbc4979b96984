// wait_group.cpp - see wait_group.hpp; the protocol is wait_word.hpp's.
//
// SPDX-License-Identifier: Apache-2.0
#include <weft/sync/wait_group.hpp>

#include <weft/fiber/detail/swapped.hpp>

namespace weft::inline v0 {

using detail::wait_word;

namespace {
constexpr wait_reason waits{"waits for a wait_group"};
}

void wait_group::add(std::size_t count) noexcept {
    constexpr std::size_t most = std::size_t{1} << 60;
    std::uint64_t seen = word_.load(std::memory_order_relaxed);
    WEFT_ASSERT(count <= most && seen / wait_word::unit <= most,
                "wait_group: add() of more than it can count");
    while ((seen & wait_word::busy) == 0)
        if (word_.change(seen, seen + count * wait_word::unit, std::memory_order_relaxed)) return;
    const std::uint64_t number = word_.enter();
    word_.leave(number + count);
}

void wait_group::done() noexcept {
    static constexpr const char* too_often = "wait_group: done() called more often than add()";
    std::uint64_t seen = word_.load(std::memory_order_relaxed);
    // Only the last one has to look at those who wait. acq_rel: it hands on what others did.
    while ((seen & wait_word::guarded) == 0 &&
           ((seen & wait_word::queued) == 0 || seen / wait_word::unit > 1)) {
        WEFT_ASSERT(seen / wait_word::unit != 0, too_often);
        if (word_.change(seen, seen - wait_word::unit, std::memory_order_acq_rel)) return;
    }
    const std::uint64_t number = word_.enter();
    WEFT_ASSERT(number != 0, too_often);
    detail::woken_list woken;
    if (number == 1) word_.queue().claim_all(woken);
    word_.leave(number - 1);
    woken.wake();
}

void wait_group::wait() {
    if (word_.load(std::memory_order_acquire) == 0) return;
    if (wait_until_done(no_deadline) == wait_outcome::cancelled) detail::throw_cancelled();
}

wait_outcome wait_group::wait_until_done(time_point deadline) {
    if (word_.load(std::memory_order_acquire) == 0) return wait_outcome::event;
    detail::refuse_on_shared_stack(this, "wait_group: lies in the stack of a swapped fiber");
    return weft::wait(
        waits, deadline,
        [word = &word_](waiter& me) noexcept {
            const std::uint64_t number = word->enter();
            if (number != 0) word->queue().push_back(me);
            word->leave(number);
            return number != 0;
        },
        [word = &word_](waiter& me) noexcept { word->withdraw(me); });
}

}  // namespace weft::inline v0
