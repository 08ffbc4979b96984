// barrier.hpp - a meeting point for a number of fibers and threads, again and again; as
// std::barrier.
//
//     barrier sync(3, [&]() noexcept { merge(); });   // by the last to arrive, before any goes on
//     sync.arrive_and_wait();
//
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <type_traits>
#include <utility>

#include <weft/sync/detail/wait_word.hpp>

namespace weft::inline v0 {

namespace detail {

struct nothing_at_completion {
    void operator()() const noexcept {}
};

class barrier_core {
public:
    static constexpr std::uint64_t most = (std::uint64_t{1} << 31) - 1;

    explicit barrier_core(std::uint64_t expected) noexcept : word_(expected), expected_(expected) {}
    ~barrier_core() {
        WEFT_ASSERT(!word_.has_waiters(), "barrier: destroyed while somebody waits at it");
    }

    struct arrival {
        std::uint64_t phase;
        bool last;  // the completion is the caller's to run; then next_phase()
    };
    [[nodiscard]] arrival arrive(std::uint64_t count) noexcept;
    void next_phase() noexcept;
    /// One fewer from the next phase on; it still has to arrive in this one.
    void drop() noexcept;
    [[nodiscard]] wait_outcome wait_for_end_of(std::uint64_t phase,
                                               const wait_reason& reason) const;
    [[nodiscard]] bool is_over(std::uint64_t phase) const noexcept;

private:
    mutable wait_word word_;  // the phase, modulo 2^31, times 2^31, plus those still to arrive
    std::uint64_t expected_;  // guarded by the word's bit
};

extern const wait_reason waits_at_barrier;
extern const wait_reason arrives_at_barrier;

}  // namespace detail

/// A completion function that throws ends the program.
template <class Completion = detail::nothing_at_completion>
class barrier {
public:
    /// What arrive() returns and wait() takes.
    class arrival_token {
    public:
        arrival_token(arrival_token&&) noexcept = default;
        arrival_token& operator=(arrival_token&&) noexcept = default;

    private:
        friend class barrier;
        explicit arrival_token(std::uint64_t phase) noexcept : phase_(phase) {}
        std::uint64_t phase_;
    };

    explicit barrier(std::ptrdiff_t expected, Completion completion = Completion())
        : core_(static_cast<std::uint64_t>(expected)), completion_(std::move(completion)) {
        WEFT_ASSERT(expected >= 0 && expected <= max(),
                    "barrier: expects fewer than none, or "
                    "more than max()");
    }
    barrier(const barrier&) = delete;
    barrier& operator=(const barrier&) = delete;
    /// Aborts: if somebody waits.
    ~barrier() = default;

    /// How many can be expected at most.
    [[nodiscard]] static constexpr std::ptrdiff_t max() noexcept {
        return static_cast<std::ptrdiff_t>(detail::barrier_core::most);
    }

    /// The last to arrive runs the completion function. Aborts: more than are expected.
    /// Suspends: only if the completion function does. From: any fiber or thread. Fails: never.
    [[nodiscard]] arrival_token arrive(std::ptrdiff_t update = 1) {
        WEFT_ASSERT(update > 0, "barrier: fewer than one arrive");
        return arrival_token(arrive_as(static_cast<std::uint64_t>(update)).phase);
    }

    /// Until the phase of the token is over.
    /// Suspends: maybe. Cancel: throws `cancelled`; the arrival counts all the same. From: any
    /// fiber or thread. Fails: never.
    void wait(arrival_token&& token) const {
        if (!core_.is_over(token.phase_) &&
            core_.wait_for_end_of(token.phase_, detail::waits_at_barrier) ==
                wait_outcome::cancelled)
            detail::throw_cancelled();
    }

    /// Suspends: maybe. Cancel: ignored. From: any fiber or thread. Fails: never.
    void arrive_and_wait() {
        const detail::barrier_core::arrival mine = arrive_as(1);
        if (!mine.last && !core_.is_over(mine.phase))
            static_cast<void>(core_.wait_for_end_of(mine.phase, detail::arrives_at_barrier));
    }

    /// Arrives, and is not expected any more.
    /// Suspends: only if the completion function does. From: any fiber or thread. Fails: never.
    void arrive_and_drop() {
        core_.drop();
        static_cast<void>(arrive_as(1));
    }

private:
    detail::barrier_core::arrival arrive_as(std::uint64_t count) {
        const detail::barrier_core::arrival mine = core_.arrive(count);
        if (mine.last) {
            complete();
            core_.next_phase();
        }
        return mine;
    }
    void complete() noexcept { completion_(); }

    detail::barrier_core core_;
    [[no_unique_address]] Completion completion_;
};

}  // namespace weft::inline v0
