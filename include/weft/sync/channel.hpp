// channel.hpp - a queue through which fibers and threads hand items to each other.
//
//     channel<int> numbers(16);                    // at most 16 wait in it; none given: 0
//     go(s, [&] { for (int i = 0; i < 100; ++i) if (!numbers.send(i)) return; numbers.close(); });
//     for (int n : numbers) std::printf("%d\n", n);
//
// With capacity 0 a send ends when a receiver has the item; `unbounded` never makes a sender wait.
// Items come out in the order in which their sends ended. How an item changes hands is told in
// src/sync/channel_core.cpp; select.hpp waits on several channels at once; docs/channels.md has
// more programs.
//
// The item's moves and its destructor run without any lock held. They may wait. A move that throws
// throws in whoever made it, and the item stays where it was.
//
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <concepts>
#include <exception>
#include <expected>
#include <iterator>
#include <memory>
#include <new>
#include <system_error>
#include <type_traits>
#include <utility>

#include <weft/base/errc.hpp>
#include <weft/fiber/this_fiber.hpp>
#include <weft/sync/detail/channel_core.hpp>

namespace weft::inline v0 {

/// Says that a channel has no bound.
struct unbounded_t {
    explicit unbounded_t() = default;
};
/// channel<T> c(unbounded);
inline constexpr unbounded_t unbounded{};

namespace detail {

struct channel_access;

[[nodiscard]] std::error_code error_of(channel_result result) noexcept;

template <class T>
inline constexpr bool plain_item = std::is_trivially_copyable_v<T> && sizeof(T) <= 64;

template <class T>
inline constexpr item_type item_type_of = {
    .size = sizeof(T),
    .alignment = alignof(T),
    .plain = plain_item<T>,
    .nothrow = std::is_nothrow_move_constructible_v<T>,
    .move = [](void* to, void* from) { ::new (to) T(std::move(*static_cast<T*>(from))); },
    .destroy = [](void* item) noexcept { static_cast<T*>(item)->~T(); },
};

/// Ends the way of an item: by finish(), or by put_back() if its move threw.
class carrying {
public:
    carrying(channel_core& core, const taken_item& taken) noexcept
        : core_(core), taken_(taken), thrown_(std::uncaught_exceptions()) {}
    carrying(const carrying&) = delete;
    carrying& operator=(const carrying&) = delete;
    ~carrying() {
        if (std::uncaught_exceptions() == thrown_)
            core_.finish(taken_);
        else
            core_.put_back(taken_);
    }

private:
    channel_core& core_;
    const taken_item& taken_;
    const int thrown_;
};

/// Moved once, to where the caller wants it.
template <class T>
std::expected<T, std::error_code> carry_out(channel_core& core, const taken_item& taken) {
    const carrying way(core, taken);
    return std::expected<T, std::error_code>(std::in_place,
                                             std::move(*static_cast<T*>(taken.from)));
}

/// Room for a plain item.
template <class T>
struct plain_room {
    alignas(T) std::byte bytes[sizeof(T)];
    [[nodiscard]] T& item() noexcept { return *std::launder(reinterpret_cast<T*>(bytes)); }
};

}  // namespace detail

/// Thread-safe: all but construction and destruction. It does not move, and may not lie on the
/// stack of a swapped fiber. What it holds at its end is destroyed with it.
template <class T>
class channel {
    static_assert(std::is_object_v<T> && std::move_constructible<T>,
                  "channel: its items are objects that can be moved");

public:
    /// What its items are.
    using value_type = T;
    /// What a send returns.
    using sent = std::expected<void, std::error_code>;
    /// What a receive returns.
    using received = std::expected<T, std::error_code>;

    /// Fails: std::bad_alloc.
    explicit channel(std::size_t capacity = 0) : core_(detail::item_type_of<T>, capacity) {}
    explicit channel(unbounded_t)
        : core_(detail::item_type_of<T>, detail::channel_core::unlimited) {}
    channel(const channel&) = delete;
    channel& operator=(const channel&) = delete;
    /// Aborts: if somebody waits on it.
    ~channel() = default;

    /// Moves from the value only if it succeeds.
    /// Suspends: until there is room, or (capacity 0) a receiver. Cancel: reported, if it has to
    /// wait. From: any fiber or thread. Fails: errc::closed, std::errc::operation_canceled (or
    /// timed_out, if a deadline scope around it ran out); throws what the move throws, and
    /// std::bad_alloc.
    [[nodiscard]] sent send(T&& value) { return send_with(value, {true, no_deadline}); }
    [[nodiscard]] sent send(const T& value) requires std::copy_constructible<T> {
        return send_copy(value, {true, no_deadline});
    }
    /// Suspends: never. Fails: errc::closed, std::errc::operation_would_block; throws as send().
    [[nodiscard]] sent try_send(T&& value) { return send_with(value, detail::not_at_all); }
    [[nodiscard]] sent try_send(const T& value) requires std::copy_constructible<T> {
        return send_copy(value, detail::not_at_all);
    }
    /// As send(). Fails: std::errc::timed_out, too.
    template <class Clock, class Duration>
    [[nodiscard]] sent send_until(T&& value, std::chrono::time_point<Clock, Duration> when) {
        return send_with(value, {true, detail::deadline_at(when)});
    }
    template <class Clock, class Duration>
    [[nodiscard]] sent send_until(
        const T& value,
        std::chrono::time_point<Clock, Duration> when) requires std::copy_constructible<T> {
        return send_copy(value, {true, detail::deadline_at(when)});
    }
    /// send_until() so long from now.
    template <class Rep, class Period>
    [[nodiscard]] sent send_for(T&& value, std::chrono::duration<Rep, Period> limit) {
        return send_until(std::move(value), after(limit));
    }
    template <class Rep, class Period>
    [[nodiscard]] sent send_for(const T& value, std::chrono::duration<Rep, Period> limit) requires
        std::copy_constructible<T> {
        return send_until(value, after(limit));
    }

    /// Suspends: until there is an item. Cancel: reported, if it has to wait. From: any fiber or
    /// thread. Fails: errc::closed, when nothing is left in it; std::errc::operation_canceled (or
    /// timed_out, as send()); throws what the move throws.
    [[nodiscard]] received receive() { return receive_with({true, no_deadline}); }
    /// Suspends: never. Fails: errc::closed, std::errc::operation_would_block; throws as receive().
    [[nodiscard]] received try_receive() { return receive_with(detail::not_at_all); }
    /// As receive(). Fails: std::errc::timed_out, too.
    template <class Clock, class Duration>
    [[nodiscard]] received receive_until(std::chrono::time_point<Clock, Duration> when) {
        return receive_with({true, detail::deadline_at(when)});
    }
    /// receive_until() so long from now.
    template <class Rep, class Period>
    [[nodiscard]] received receive_for(std::chrono::duration<Rep, Period> limit) {
        return receive_until(after(limit));
    }

    /// No more sends: those that wait fail and keep their items. What is in it can be received.
    /// Suspends: never. From: any thread. Fails: never; again, it does nothing.
    void close() noexcept { core_.close(); }
    /// Whether close() was called; there may still be items.
    [[nodiscard]] bool is_closed() const noexcept { return core_.is_closed(); }
    /// How many items are in it, or on the way in or out; it may have changed already.
    [[nodiscard]] std::size_t size() const noexcept { return core_.size(); }
    /// The largest number there is, if unbounded.
    [[nodiscard]] std::size_t capacity() const noexcept { return core_.capacity(); }

    class iterator;
    /// Receives until it is closed or the fiber is cancelled; last_error() tells which.
    [[nodiscard]] iterator begin() { return iterator(*this); }
    /// Is reached when begin() would not receive any more.
    [[nodiscard]] std::default_sentinel_t end() const noexcept { return {}; }
    /// Why the last iteration over it ended, whoever's: what receive() said.
    [[nodiscard]] std::error_code last_error() const noexcept {
        const detail::channel_result why = ended_.load(std::memory_order_relaxed);
        return why == detail::channel_result::cancelled  // not why the caller is, if it is
                   ? std::make_error_code(std::errc::operation_canceled)
                   : detail::error_of(why);
    }

private:
    friend detail::channel_access;

    sent send_with(T& value, detail::patience how) {
        detail::channel_result result;
        if constexpr (detail::plain_item<T>)
            result = core_.send_plain(std::addressof(value), how);
        else
            result = core_.send_moved(std::addressof(value), how);
        if (result == detail::channel_result::done) return {};
        return std::unexpected(detail::error_of(result));
    }
    sent send_copy(const T& value, detail::patience how) {
        T copy(value);
        return send_with(copy, how);
    }
    received receive_with(detail::patience how) {
        detail::channel_result result;
        if constexpr (detail::plain_item<T>) {
            detail::plain_room<T> room;
            result = core_.receive_plain(room.bytes, how);
            if (result == detail::channel_result::done)
                return received(std::in_place, std::move(room.item()));
        } else {
            detail::taken_item taken;
            result = core_.take(taken, how);
            if (result == detail::channel_result::done) return detail::carry_out<T>(core_, taken);
        }
        return received(std::unexpect, detail::error_of(result));
    }
    template <class Rep, class Period>
    static time_point after(std::chrono::duration<Rep, Period> limit) {
        return deadline_after(detail::now_for_sleep(), limit);
    }

    detail::channel_core core_;
    std::atomic<detail::channel_result> ended_ = detail::channel_result::done;  // relaxed
};

/// One pass. It holds the item that it stands at, and does not move.
template <class T>
class channel<T>::iterator {
public:
    /// What its items are.
    using value_type = T;
    /// Which every iterator has.
    using difference_type = std::ptrdiff_t;

    explicit iterator(channel& from) : from_(from) { receive(); }
    iterator(const iterator&) = delete;
    iterator& operator=(const iterator&) = delete;
    ~iterator() { result().~received(); }

    [[nodiscard]] T& operator*() noexcept { return *result(); }
    [[nodiscard]] T* operator->() noexcept { return std::addressof(*result()); }
    iterator& operator++() {
        result().~received();
        receive();
        return *this;
    }
    [[nodiscard]] bool operator==(std::default_sentinel_t) const noexcept {
        return !std::launder(reinterpret_cast<const received*>(room_))->has_value();
    }

private:
    [[nodiscard]] received& result() noexcept {
        return *std::launder(reinterpret_cast<received*>(room_));
    }
    // Straight into its room: an item that is moved once can throw once only.
    void receive() {
        struct emptied {
            iterator& at;
            const int thrown = std::uncaught_exceptions();
            ~emptied() {
                if (std::uncaught_exceptions() != thrown)
                    ::new (static_cast<void*>(at.room_)) received(std::unexpect, std::error_code());
            }
        } const guard{*this};
        ::new (static_cast<void*>(room_)) received(from_.receive());
        if (result().has_value()) return;
        using enum detail::channel_result;
        const std::error_code why = result().error();
        from_.ended_.store(why == errc::closed           ? closed
                           : why == std::errc::timed_out ? timed_out
                                                         : cancelled,
                           std::memory_order_relaxed);
    }

    channel& from_;
    alignas(received) std::byte room_[sizeof(received)];
};

namespace detail {
struct channel_access {
    template <class T>
    [[nodiscard]] static channel_core& core(channel<T>& of) noexcept {
        return of.core_;
    }
};
}  // namespace detail

}  // namespace weft::inline v0
