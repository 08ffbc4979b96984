// select.hpp - waits on several channels, and does exactly one thing.
//
//     auto taken = select(on_receive(jobs, [&](auto job) { if (job) work(*job); }),
//                         on_send(results, std::move(result), [&](auto sent) { ... }),
//                         on_timeout(10ms, [&] { ... }));
//
// Each case is a send, a receive or a moment; the one that can be done is done, its function is
// called, and its index returned. If several can, chance decides, each as likely as the others; if
// none can, select waits, or takes otherwise(f) if there is one. What was not taken has not
// happened: nothing was received, no value was moved from.
//
// A closed channel makes its cases ready, with errc::closed as their result. A channel may stand
// in several cases; the two ends of one in a single select do not meet. Sends and receives of two
// selects that face each other meet in exactly one pair (src/sync/select.cpp says how).
//
// For a number of cases that is known only at run time: a range of cases, or of pointers to
// select_case.
//
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <chrono>
#include <concepts>
#include <expected>
#include <ranges>
#include <span>
#include <system_error>
#include <utility>
#include <vector>

#include <weft/sync/channel.hpp>

namespace weft::inline v0 {

namespace detail {

struct select_access;

struct ignore_moment {
    void operator()() const noexcept {}
};

}  // namespace detail

/// One case. Made by the functions below; used by one select at a time.
class select_case {
public:
    virtual ~select_case() = default;

protected:
    enum class kind : unsigned char { channel, moment, otherwise };

    explicit select_case(kind what) noexcept : what_(what) {}
    select_case(kind what, detail::channel_core& core, bool sends) noexcept
        : waiter_{.where = &core, .place = nullptr, .sends = sends}, what_(what) {}
    select_case(select_case&&) = default;
    select_case& operator=(select_case&&) = default;

    detail::channel_waiter waiter_{.where = nullptr, .place = nullptr, .sends = false};

private:
    friend detail::select_access;

    /// Called first: where its item is, until when it waits.
    virtual void begin(time_point& deadline) { static_cast<void>(deadline); }
    /// Does it, if it can be done at once.
    virtual bool attempt() { return false; }
    /// It was done while select waited; false: not quite, try again.
    virtual bool conclude() { return true; }
    /// The function.
    virtual void call() = 0;

    kind what_;
};

namespace detail {

/// `scratch` has room for all cases.
[[nodiscard]] std::expected<std::size_t, std::error_code> select_among(
    std::span<select_case* const> cases, std::span<channel_waiter*> scratch);

template <class T, class F>
class receive_case final : public select_case {
public:
    receive_case(channel_core& core, F function)
        : select_case(kind::channel, core, false), function_(std::move(function)) {}

private:
    void begin(time_point&) override {
        if constexpr (plain_item<T>) waiter_.place = room_.bytes;
    }
    bool attempt() override {
        if constexpr (plain_item<T>)
            result_ = waiter_.where->receive_plain(room_.bytes, not_at_all);
        else
            result_ = waiter_.where->take(taken_, not_at_all);
        return result_ != channel_result::would_block;
    }
    bool conclude() override {
        result_ = waiter_.where->conclude(waiter_, taken_);
        return result_ != channel_result::again;
    }
    // The item is moved once, into the function's argument.
    void call() override {
        using received = std::expected<T, std::error_code>;
        if (result_ == channel_result::closed)
            function_(received(std::unexpect, error_of(result_)));
        else if constexpr (plain_item<T>)
            function_(received(std::in_place, std::move(room_.item())));
        else
            function_(carry_out<T>(*waiter_.where, taken_));
    }

    struct nothing {};
    F function_;
    [[no_unique_address]] std::conditional_t<plain_item<T>, plain_room<T>, nothing> room_;
    taken_item taken_;
    channel_result result_ = channel_result::would_block;
};

/// Value is T&, or T for a copy of its own.
template <class T, class Value, class F>
class send_case final : public select_case {
public:
    send_case(channel_core& core, Value&& value, F function)
        : select_case(kind::channel, core, true),
          value_(std::forward<Value>(value)),
          function_(std::move(function)) {}

private:
    void begin(time_point&) override { waiter_.place = std::addressof(value_); }
    bool attempt() override {
        if constexpr (plain_item<T>)
            result_ = waiter_.where->send_plain(std::addressof(value_), not_at_all);
        else
            result_ = waiter_.where->send_moved(std::addressof(value_), not_at_all);
        return result_ != channel_result::would_block;
    }
    bool conclude() override {
        taken_item none;
        result_ = waiter_.where->conclude(waiter_, none);
        return result_ != channel_result::again;
    }
    void call() override {
        using sent = std::expected<void, std::error_code>;
        if (result_ == channel_result::closed)
            function_(sent(std::unexpect, error_of(result_)));
        else
            function_(sent());
    }

    Value value_;
    F function_;
    channel_result result_ = channel_result::would_block;
};

template <class F>
class moment_case final : public select_case {
public:
    moment_case(time_point at, std::chrono::nanoseconds after, F function)
        : select_case(kind::moment), at_(at), after_(after), function_(std::move(function)) {}

private:
    void begin(time_point& deadline) override {
        deadline = at_ != no_deadline ? at_ : deadline_after(now_for_sleep(), after_);
    }
    void call() override { function_(); }

    time_point at_;
    std::chrono::nanoseconds after_;
    F function_;
};

template <class F>
class otherwise_case final : public select_case {
public:
    explicit otherwise_case(F function)
        : select_case(kind::otherwise), function_(std::move(function)) {}

private:
    void call() override { function_(); }

    F function_;
};

template <class T>
concept case_pointer = requires(T& p) {
    { *p } -> std::convertible_to<select_case&>;
};

template <class Range>
concept range_of_cases = std::ranges::forward_range<Range> &&
    (std::derived_from<std::ranges::range_value_t<Range>, select_case> ||
     case_pointer<std::ranges::range_value_t<Range>>);

}  // namespace detail

/// function(std::expected<T, std::error_code>) gets an item, or errc::closed.
template <class T, std::invocable<std::expected<T, std::error_code>> F>
[[nodiscard]] auto on_receive(channel<T>& from, F function) {
    return detail::receive_case<T, F>(detail::channel_access::core(from), std::move(function));
}

/// function(std::expected<void, std::error_code>) is told that the value was sent, or errc::closed.
/// The value is moved from only if it was sent; it must outlive the select.
template <class T, std::invocable<std::expected<void, std::error_code>> F>
[[nodiscard]] auto on_send(channel<T>& to, std::type_identity_t<T>&& value, F function) {
    return detail::send_case<T, T&, F>(detail::channel_access::core(to), value,
                                       std::move(function));
}
/// A copy of the value.
template <class T, std::invocable<std::expected<void, std::error_code>> F>
[[nodiscard]] auto on_send(channel<T>& to, const std::type_identity_t<T>& value, F function) {
    return detail::send_case<T, T, F>(detail::channel_access::core(to), T(value),
                                      std::move(function));
}

/// Taken when nothing else could be for so long, from the beginning of the select.
template <class Rep, class Period, std::invocable F = detail::ignore_moment>
[[nodiscard]] auto on_timeout(std::chrono::duration<Rep, Period> limit, F function = {}) {
    // Longer than there is time, or not positive: as deadline_after() sees it.
    const time_point origin{};
    const time_point end = deadline_after(origin, limit);
    return detail::moment_case<F>(no_deadline, end - origin, std::move(function));
}
/// on_timeout() by a moment, of any clock.
template <class Clock, class Duration, std::invocable F = detail::ignore_moment>
[[nodiscard]] auto on_deadline(std::chrono::time_point<Clock, Duration> when, F function = {}) {
    return detail::moment_case<F>(detail::deadline_at(when), std::chrono::nanoseconds::max(),
                                  std::move(function));
}

/// Taken when nothing else can be done at once.
template <std::invocable F = detail::ignore_moment>
[[nodiscard]] auto otherwise(F function = {}) {
    return detail::otherwise_case<F>(std::move(function));
}

/// Does one of the cases and returns its index.
/// Suspends: until one can be done, unless there is an otherwise(). Cancel: reported, if it has to
/// wait. From: any fiber or thread. Fails: std::errc::operation_canceled (or timed_out, if a
/// deadline scope around it ran out); throws what a move or a function throws, and std::bad_alloc.
template <class... Cases>
    requires(std::derived_from<std::remove_cvref_t<Cases>, select_case>&&...)
[[nodiscard]] std::expected<std::size_t, std::error_code> select(Cases&&... cases) {
    const std::array<select_case*, sizeof...(Cases)> all{&cases...};
    std::array<detail::channel_waiter*, sizeof...(Cases)> scratch;
    return detail::select_among(all, scratch);
}

/// The same over a range of cases, or of pointers to cases.
template <detail::range_of_cases Range>
[[nodiscard]] std::expected<std::size_t, std::error_code> select(Range&& cases) {
    std::vector<select_case*> all;
    for (auto&& one : cases) {
        if constexpr (std::derived_from<std::ranges::range_value_t<Range>, select_case>)
            all.push_back(std::addressof(one));
        else
            all.push_back(std::addressof(static_cast<select_case&>(*one)));
    }
    std::vector<detail::channel_waiter*> scratch(all.size());
    return detail::select_among(all, scratch);
}

}  // namespace weft::inline v0
