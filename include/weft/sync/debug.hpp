// debug.hpp - help with locks that fibers should not hold while they wait.
//
//     weft::debug::no_suspend_mutex<std::mutex> m("the cache");
//     const std::lock_guard lock(m);
//     sleep_for(1s);    // aborts: no_suspend: something inside suspends ('the cache')
//
// A std::mutex that a fiber holds while it is suspended blocks whole threads, and is unlocked by
// another thread than locked it if the fiber goes on elsewhere. With this wrapper around it that is
// reported where it happens, in builds with WEFT_CHECKS=1; in others it is the lock alone.
//
// Such builds also report when fibers, by mutexes and joins, wait for each other in a circle.
//
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <mutex>

#include <weft/fiber/no_suspend.hpp>

namespace weft::inline v0::debug {

/// A lock under which nothing may suspend. Locks may be given up in any order.
template <class Mutex = std::mutex>
class no_suspend_mutex {
public:
    explicit no_suspend_mutex(const char* name = "a no_suspend_mutex") noexcept : name_(name) {}

    /// Suspends: never, if Mutex does not. From: any fiber or thread. Fails: as Mutex does.
    void lock() {
        inner_.lock();
        forbid();
    }
    /// As the lock's; if it succeeds, no suspension until unlock().
    [[nodiscard]] bool try_lock() {
        if (!inner_.try_lock()) return false;
        forbid();
        return true;
    }
    /// As the lock's; suspensions are allowed again.
    void unlock() {
        allow();
        inner_.unlock();
    }
    /// The lock that it wraps.
    [[nodiscard]] Mutex& inner() noexcept { return inner_; }

private:
#if defined(WEFT_CHECKS) && WEFT_CHECKS
    void forbid() { detail::forbid_suspending(name_); }
    void allow() noexcept { detail::allow_suspending(); }
#else
    void forbid() {}
    void allow() noexcept {}
#endif

    Mutex inner_;
    [[maybe_unused]] const char* name_;
};

}  // namespace weft::inline v0::debug
