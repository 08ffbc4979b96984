// actor_context.cpp - entering from another context, going back, and what happens over a wait.
//
// The lock is that of a mutex (sync/detail/mutex_core.hpp); whoever holds it owns path_. A fiber
// that lets a context go takes its path along, and brings it back:
//
//   a wait          path to its stack, lock given up | waits | lock taken again, path back
//   into another    path into that one's, lock given up; that one's lock taken
//   out of it       that one's lock given up; lock taken again, path back
//
// A fiber never waits with a lock held, and takes it when it runs: so whoever holds one runs, on
// some thread, and a fiber that sits in a queue keeps nobody out. The one exception is the mutex's:
// one that came to enter, and was beaten by others for over a millisecond, is handed the lock.
//
// SPDX-License-Identifier: Apache-2.0
#include <weft/actor/actor_context.hpp>

#include <weft/base/test_point.hpp>
#include <weft/fiber/detail/running_owner.hpp>

namespace weft::inline v0 {

using detail::actor_path;
using detail::isolation_slot;

namespace detail {

const lock_names actor_names{{"waits for an actor", false},
                             {"waits for an actor, with a deadline"},
                             "actor_context: entered again by the fiber or thread in it",
                             "waits for actor",
                             "actor_context: lies in the stack of a swapped fiber"};

}

// --- letting go and coming back

// The last touch is the unlock: then somebody else is inside, and may destroy it.
actor_path actor_context::let_go(isolation_slot& mine) const noexcept {
    const actor_path path = std::exchange(path_, {});
    leaves_simply_ = nullptr;
    mine.held = nullptr;
    core_.unlock();
    WEFT_TEST_POINT("actor_context: let go");
    return path;
}

// With the lock held.
void actor_context::arrived(isolation_slot& mine, const actor_path& path) const noexcept {
    path_ = path;
    leaves_simply_ = path.is_plain() ? &mine : nullptr;
    mine.held = this;
}

void actor_context::around(isolation_slot& mine, wait_call wait, void* request) const {
    struct way_back {
        const actor_context& to;
        isolation_slot& mine;
        const actor_path path;
        ~way_back() {
            to.core_.lock(detail::actor_names);
            to.arrived(mine, path);
        }
    };
    const way_back back{*this, mine, let_go(mine)};
    wait(request, nullptr);
}

// --- entering

void actor_context::lock_otherwise(isolation_slot* mine) const {
    if (mine == nullptr) {
        if (thread_again()) return;
        core_.lock(detail::actor_names);
        thread_arrived();
    } else if (mine->held == this) {
        enter_again();
    } else {
        lock_from_another(*mine);
    }
}

// By whoever is inside.
void actor_context::enter_again() const noexcept {
    ++path_.again;
    leaves_simply_ = nullptr;
}

void actor_context::lock_from_another(isolation_slot& mine) const {
    const auto& left = static_cast<const actor_context&>(*mine.held);
    actor_path::room room = left.path_.room_for_one_more();
    const actor_path before = left.let_go(mine);
    core_.lock(detail::actor_names);
    arrived(mine, before.inside(left, std::move(room)));
}

bool actor_context::try_lock() const {
    isolation_slot* const mine = detail::isolation_slot_here();
    if (mine == nullptr) {
        if (thread_again()) return true;
        if (!core_.try_lock()) return false;
        thread_arrived();
        return true;
    }
    if (mine->held == this) {
        enter_again();
        return true;
    }
    if (mine->held == nullptr) {
        if (!core_.try_lock()) return false;
        arrived(*mine, {});
        return true;
    }
    const auto& left = static_cast<const actor_context&>(*mine->held);
    actor_path::room room = left.path_.room_for_one_more();
    if (!core_.try_lock()) return false;
    arrived(*mine, left.let_go(*mine).inside(left, std::move(room)));
    return true;
}

bool actor_context::try_lock_until(time_point deadline) const {
    if (try_lock()) return true;
    isolation_slot* const mine = detail::isolation_slot_here();
    if (mine != nullptr && mine->held != nullptr) return wait_from_another(*mine, deadline);
    if (!core_.try_lock_until(deadline, detail::actor_names)) return false;
    if (mine != nullptr)
        arrived(*mine, {});
    else
        thread_arrived();
    return true;
}

bool actor_context::wait_from_another(isolation_slot& mine, time_point deadline) const {
    const auto& left = static_cast<const actor_context&>(*mine.held);
    actor_path::room room = left.path_.room_for_one_more();
    const actor_path before = left.let_go(mine);
    if (core_.try_lock_until(deadline, detail::actor_names)) {
        arrived(mine, before.inside(left, std::move(room)));
        return true;
    }
    left.core_.lock(detail::actor_names);
    left.arrived(mine, before);
    return false;
}

// --- leaving

void actor_context::unlock_otherwise() const noexcept {
    WEFT_ASSERT(is_held(), "actor_context: left by a fiber or thread that is not inside");
    isolation_slot* const mine = detail::isolation_slot_here();
    if (path_.again != 0) {
        --path_.again;
        if (path_.is_plain()) leaves_simply_ = mine;
        return;
    }
    if (mine == nullptr) {
        thread_.store(nullptr, std::memory_order_relaxed);
        core_.unlock();
        return;
    }
    const actor_path path = let_go(*mine);
    path.outer()->core_.lock(detail::actor_names);
    path.outer()->arrived(*mine, path.outside());
}

// --- who is inside

bool actor_context::is_held() const noexcept {
    const isolation_slot* const mine = detail::isolation_slot_here();
    if (mine != nullptr) return mine->held == this;
    return thread_.load(std::memory_order_relaxed) == detail::running_owner();
}

bool actor_context::thread_again() const noexcept {
    if (thread_.load(std::memory_order_relaxed) != detail::running_owner()) return false;
    enter_again();
    return true;
}

void actor_context::thread_arrived() const noexcept {
    leaves_simply_ = nullptr;
    thread_.store(detail::running_owner(), std::memory_order_relaxed);
}

}  // namespace weft::inline v0
