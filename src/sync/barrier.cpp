// barrier.cpp - see barrier.hpp; the protocol of the word is wait_word.hpp's.
//
// Between the last arrival and next_phase() nobody is still to arrive, and the completion function
// runs without any lock. Those who wait are let go, and the next phase begins, in one step.
//
// SPDX-License-Identifier: Apache-2.0
#include <weft/sync/barrier.hpp>

#include <weft/fiber/detail/swapped.hpp>

namespace weft::inline v0::detail {

const wait_reason waits_at_barrier{"waits at a barrier"};
const wait_reason arrives_at_barrier{"arrives at a barrier and waits", false};

namespace {

constexpr std::uint64_t one_phase = std::uint64_t{1} << 31;
constexpr std::uint64_t phase_mask = one_phase - 1;

constexpr std::uint64_t phase_of(std::uint64_t number) noexcept { return number / one_phase; }
constexpr std::uint64_t to_arrive(std::uint64_t number) noexcept { return number % one_phase; }

}  // namespace

barrier_core::arrival barrier_core::arrive(std::uint64_t count) noexcept {
    static constexpr const char* too_many = "barrier: more arrive than are expected";
    std::uint64_t seen = word_.load(std::memory_order_relaxed);
    while ((seen & wait_word::busy) == 0) {
        const std::uint64_t number = seen / wait_word::unit;
        WEFT_ASSERT(count <= to_arrive(number), too_many);
        // acq_rel: the last one hands on what those before it did
        if (word_.change(seen, seen - count * wait_word::unit, std::memory_order_acq_rel))
            return {phase_of(number), to_arrive(number) == count};
    }
    const std::uint64_t number = word_.enter();
    WEFT_ASSERT(count <= to_arrive(number), too_many);
    word_.leave(number - count);
    return {phase_of(number), to_arrive(number) == count};
}

void barrier_core::next_phase() noexcept {
    const std::uint64_t number = word_.enter();
    woken_list woken;
    word_.queue().claim_all(woken);
    word_.leave(((phase_of(number) + 1) & phase_mask) * one_phase + expected_);
    woken.wake();
}

void barrier_core::drop() noexcept {
    const std::uint64_t number = word_.enter();
    WEFT_ASSERT(expected_ > 0, "barrier: more drop out than are expected");
    --expected_;
    word_.leave(number);
}

bool barrier_core::is_over(std::uint64_t phase) const noexcept {
    return phase_of(word_.load(std::memory_order_acquire) / wait_word::unit) != phase;
}

wait_outcome barrier_core::wait_for_end_of(std::uint64_t phase, const wait_reason& reason) const {
    refuse_on_shared_stack(this, "barrier: lies in the stack of a swapped fiber");
    return wait(
        reason, no_deadline,
        [word = &word_, phase](waiter& me) noexcept {
            const std::uint64_t number = word->enter();
            const bool must_wait = phase_of(number) == phase;
            if (must_wait) word->queue().push_back(me);
            word->leave(number);
            return must_wait;
        },
        [word = &word_](waiter& me) noexcept { word->withdraw(me); });
}

}  // namespace weft::inline v0::detail
