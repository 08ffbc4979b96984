// actor_context.hpp - a lock that is let go while its fiber waits.
//
//     class counter {
//     public:
//         int increment() { const std::lock_guard inside(context); return ++value_; }
//     private:
//         actor_context context;      // not mutable: lock() and unlock() are const
//         int value_ = 0;
//     };
//
// One fiber is inside at a time. While it waits, for whatever it is, others may enter; before it
// goes on it is inside again. So no lock is held over a wait, and two that call one another cannot
// block each other; but everything may have changed over any wait. docs/actor.md has more.
//
// A fiber is inside of one context at a time. From A it enters B: A is let go, and taken again when
// B's guard ends. To enter the one that it is in costs nothing. A plain thread uses it as a
// recursive mutex: it holds what it takes, also while it waits.
//
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <chrono>

#include <weft/actor/detail/actor_path.hpp>
#include <weft/base/assert.hpp>
#include <weft/fiber/detail/isolation.hpp>
#include <weft/sync/detail/deadline.hpp>
#include <weft/sync/detail/mutex_core.hpp>

namespace weft::inline v0 {

namespace detail {
extern const lock_names actor_names;
}

/// Those who wait are let in in the order in which they came; one who runs may come first, as with
/// a mutex. It must live until every fiber inside has left, also those that wait meanwhile.
class actor_context final : private detail::isolation {
public:
    constexpr actor_context() noexcept = default;
    actor_context(const actor_context&) = delete;
    actor_context& operator=(const actor_context&) = delete;
    /// Aborts: if somebody is inside, or waits to enter.
    ~actor_context() {
        WEFT_ASSERT(core_.is_unused(),
                    "actor_context: destroyed while somebody is inside, or waits for it");
    }

    /// Enters.
    /// Suspends: maybe. Cancel: ignored. From: any fiber or thread. Fails: std::bad_alloc, from
    /// inside three others; nothing has changed then.
    [[gnu::always_inline]] void lock() const {
        detail::isolation_slot* const mine = detail::isolation_slot_here();
        if (mine == nullptr || mine->held != nullptr) [[unlikely]]
            return lock_otherwise(mine);
        core_.lock(detail::actor_names);
        mine->held = this;
        if (leaves_simply_ != mine) leaves_simply_ = mine;
    }

    /// Enters if nobody is inside; the context that the fiber was in is let go only then.
    /// Suspends: never. From: any fiber or thread. Fails: by false, if somebody is inside;
    /// std::bad_alloc, from inside three others.
    [[nodiscard]] bool try_lock() const;

    /// Suspends: maybe. Cancel: reported, by false. From: any fiber or thread. Fails: by false, if
    /// the time has passed, and the fiber is where it was; std::bad_alloc, from inside three
    /// others.
    template <class Rep, class Period>
    [[nodiscard]] bool try_lock_for(std::chrono::duration<Rep, Period> limit) const {
        return try_lock() || try_lock_until(detail::deadline_in(limit));
    }
    /// As try_lock_for(), until a moment.
    template <class Clock, class Duration>
    [[nodiscard]] bool try_lock_until(std::chrono::time_point<Clock, Duration> when) const {
        return try_lock() || detail::lock_until(*this, when);
    }
    [[nodiscard]] bool try_lock_until(time_point deadline) const;

    /// Leaves; then enters the context again from which this one was entered.
    /// Suspends: maybe, in a fiber that goes back to another context. Cancel: ignored. From:
    /// whoever is inside. Fails: never. Aborts: if nobody is inside; with checks, if the caller is
    /// not.
    [[gnu::always_inline]] void unlock() const noexcept {
        WEFT_CHECK(is_held(), "actor_context: left by a fiber or thread that is not inside");
        detail::isolation_slot* const mine = leaves_simply_;
        if (mine == nullptr) [[unlikely]]
            return unlock_otherwise();
        mine->held = nullptr;
        core_.unlock();
    }

    /// Whether the caller is inside.
    /// Suspends: never. From: any fiber or thread. Fails: never.
    [[nodiscard]] bool is_held() const noexcept;

    /// Suspends: never. Aborts: if the caller is not inside.
    void assert_held() const noexcept {
        WEFT_ASSERT(is_held(), "actor_context: the caller is not inside");
    }

private:
    void lock_otherwise(detail::isolation_slot* mine) const;
    void enter_again() const noexcept;
    void lock_from_another(detail::isolation_slot& mine) const;
    [[nodiscard]] bool wait_from_another(detail::isolation_slot& mine, time_point deadline) const;
    void unlock_otherwise() const noexcept;
    void around(detail::isolation_slot& mine, wait_call wait, void* request) const override;
    [[nodiscard]] detail::actor_path let_go(detail::isolation_slot& mine) const noexcept;
    void arrived(detail::isolation_slot& mine, const detail::actor_path& path) const noexcept;
    [[nodiscard]] bool thread_again() const noexcept;
    void thread_arrived() const noexcept;

    mutable detail::mutex_core core_;
    // The place of the fiber that is inside, if it came from outside of all contexts and once: what
    // unlock() needs, which does not look for its fiber then. Otherwise, and for threads, nullptr.
    // Once that one has left it stays as it was: every store before a locked instruction costs.
    mutable detail::isolation_slot* leaves_simply_ = nullptr;
    // Of whoever is inside. Nothing, while nobody is.
    mutable detail::actor_path path_;
    // The plain thread that is inside. relaxed: one's own name is seen by oneself.
    mutable std::atomic<const void*> thread_ = nullptr;
};

}  // namespace weft::inline v0
