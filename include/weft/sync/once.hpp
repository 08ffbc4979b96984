// once.hpp - once_flag and call_once, as std's.
//
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <utility>

#include <weft/sync/detail/lock_owner.hpp>
#include <weft/sync/detail/wait_word.hpp>

namespace weft::inline v0 {

/// As std::once_flag: whether call_once() has succeeded with it.
class once_flag {
public:
    constexpr once_flag() noexcept = default;
    once_flag(const once_flag&) = delete;
    once_flag& operator=(const once_flag&) = delete;
    /// Aborts: if somebody waits.
    ~once_flag() {
        WEFT_ASSERT(!word_.has_waiters(), "once_flag: destroyed while somebody waits for it");
    }

private:
    template <class F, class... Args>
    friend void call_once(once_flag& flag, F&& function, Args&&... args);

    enum state : std::uint64_t { untried, running, done };

    // Ends the turn, however the function was left.
    class turn {
    public:
        explicit turn(once_flag& flag) noexcept : flag_(flag) {}
        turn(const turn&) = delete;
        turn& operator=(const turn&) = delete;
        ~turn() { flag_.end(succeeded); }
        bool succeeded = false;

    private:
        once_flag& flag_;
    };

    [[nodiscard]] bool is_done() const noexcept {
        return word_.load(std::memory_order_acquire) == done * detail::wait_word::unit;
    }
    /// True: it is the caller's turn. False: another has done it.
    [[nodiscard]] bool begin();
    void end(bool succeeded) noexcept;

    detail::wait_word word_;  // a state
    [[no_unique_address]] detail::lock_owner owner_;
};

/// function(args...), unless another call with this flag has returned, or will; then waits for
/// that. One that throws has not happened: the next one tries.
/// Suspends: maybe. Cancel: ignored. From: any fiber or thread. Fails: as the function does.
template <class F, class... Args>
void call_once(once_flag& flag, F&& function, Args&&... args) {
    if (flag.is_done() || !flag.begin()) return;
    once_flag::turn mine(flag);
    std::invoke(std::forward<F>(function), std::forward<Args>(args)...);
    mine.succeeded = true;
}

}  // namespace weft::inline v0
