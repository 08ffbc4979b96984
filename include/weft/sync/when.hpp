// when.hpp - a future of several futures: when_all of them are ready, or when_any one is.
//
//     auto [a, b] = when_all(async(f), async(g)).get();       // two futures, both ready
//     auto any = when_any(std::move(futures)).get();          // any.index, any.futures
//
// The futures go in (shared ones may be copied) and come out as they were, in the same order:
// exceptions are in them, not in the outer one. A deferred one is run by when_all and when_any
// themselves. If one of them waits in its destructor, so does the outer one.
//
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <atomic>
#include <iterator>
#include <ranges>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

#include <weft/sync/future.hpp>

namespace weft::inline v0 {

/// Which one was ready first, and all of them.
template <class Sequence>
struct when_any_result {
    std::size_t index = static_cast<std::size_t>(-1);  // no futures: none
    /// All of them, in their order.
    Sequence futures;
};

namespace detail {

template <class F>
concept any_future = requires(const std::remove_cvref_t<F>& f) {
    future_access::state(f);
};

/// Stands in one of the futures until that is ready. Keeps both states alive.
struct when_node : continuation {
    future_state_base* outer = nullptr;
    state_reference<future_state_base> inner;
    std::size_t index = 0;
};

// Sequence is what the user gets back, Result what the outer future holds.
template <class Sequence, class Nodes, class Result>
class when_state : public future_state<Result> {
public:
    when_state(Sequence futures, Nodes nodes)
        : futures_(std::move(futures)), nodes_(std::move(nodes)) {}

    /// Stands in each of the futures.
    void begin(void (*run)(continuation&) noexcept) {
        std::size_t index = 0;
        for (when_node& node : nodes_) {
            node.run = run;
            node.outer = this;
            node.index = index++;
            this->waits_at_end = this->waits_at_end || node.inner->waits_at_end;
            if (node.inner->deferred) node.inner->wait();
        }
        for (when_node& node : nodes_) {
            this->add_reference();
            node.inner->on_ready(node);
        }
    }

protected:
    Sequence futures_;

private:
    // Ready: the futures are in the value, unless they were taken, and wait themselves.
    void discard() noexcept override {
        if (this->is_ready())
            this->value.reset();
        else
            wait_at_end();
    }
    // Those that run are waited for; others may never be ready.
    void wait_at_end() noexcept override {
        for (when_node& node : nodes_) node.inner->wait_at_end();
    }

    Nodes nodes_;
};

template <class Sequence, class Nodes>
class all_state final : public when_state<Sequence, Nodes, Sequence> {
public:
    using base = when_state<Sequence, Nodes, Sequence>;
    all_state(Sequence futures, Nodes nodes, std::size_t count)
        : base(std::move(futures), std::move(nodes)), left_(count + 1) {}

    void start() {
        this->begin([](continuation& self) noexcept {
            auto& me = static_cast<all_state&>(*static_cast<when_node&>(self).outer);
            me.one_less();
            me.release();
        });
        one_less();
    }

private:
    // acq_rel: the last one hands on what the others did
    void one_less() noexcept {
        if (left_.fetch_sub(1, std::memory_order_acq_rel) == 1)
            this->set_value(std::move(this->futures_));
    }

    std::atomic<std::size_t> left_;  // and one for start()
};

template <class Sequence, class Nodes>
class any_state final : public when_state<Sequence, Nodes, when_any_result<Sequence>> {
public:
    using base = when_state<Sequence, Nodes, when_any_result<Sequence>>;
    using base::base;

    void start(bool empty) {
        this->begin([](continuation& self) noexcept {
            auto& node = static_cast<when_node&>(self);
            auto& me = static_cast<any_state&>(*node.outer);
            me.first(node.index);
            me.release();
        });
        if (empty) first(static_cast<std::size_t>(-1));
    }

private:
    void first(std::size_t index) noexcept {
        if (taken_.exchange(true, std::memory_order_acq_rel)) return;
        this->set_value(when_any_result<Sequence>{index, std::move(this->futures_)});
    }

    std::atomic<bool> taken_ = false;
};

template <class F>
[[nodiscard]] when_node node_of(const F& one) {
    auto* const state = future_access::state(one);
    require_state(state);
    when_node node;
    state->add_reference();
    node.inner = state_reference<future_state_base>(state);
    return node;
}

template <class... Futures>
[[nodiscard]] auto nodes_of(const std::tuple<Futures...>& futures) {
    return std::apply(
        [](const Futures&... each) {
            return std::array<when_node, sizeof...(Futures)>{node_of(each)...};
        },
        futures);
}
template <class F>
[[nodiscard]] std::vector<when_node> nodes_of(const std::vector<F>& futures) {
    std::vector<when_node> nodes;
    for (const F& one : futures) nodes.push_back(node_of(one));
    return nodes;
}

template <class Sequence>
[[nodiscard]] auto all_of(Sequence futures) {
    auto nodes = nodes_of(futures);
    const std::size_t count = nodes.size();
    using state = all_state<Sequence, decltype(nodes)>;
    const state_reference<state> made(new state(std::move(futures), std::move(nodes), count));
    auto outer = future_access::make<Sequence, future>(*made.get());
    made->start();
    return outer;
}

template <class Sequence>
[[nodiscard]] auto any_of(Sequence futures) {
    auto nodes = nodes_of(futures);
    const bool empty = nodes.empty();
    using state = any_state<Sequence, decltype(nodes)>;
    const state_reference<state> made(new state(std::move(futures), std::move(nodes)));
    auto outer = future_access::make<when_any_result<Sequence>, future>(*made.get());
    made->start(empty);
    return outer;
}

template <std::ranges::input_range Range>
[[nodiscard]] auto futures_from(Range&& range) {
    std::vector<std::ranges::range_value_t<Range>> futures;
    for (auto&& one : range) {
        if constexpr (std::copy_constructible<std::ranges::range_value_t<Range>>)
            futures.push_back(one);
        else
            futures.push_back(std::move(one));
    }
    return futures;
}

}  // namespace detail

/// A future of the tuple of them, ready when all are.
/// Suspends: never, unless one is deferred. From: any fiber or thread. Fails: std::future_error
/// (no_state), std::bad_alloc; the futures may have been moved from then.
template <detail::any_future... Futures>
[[nodiscard]] auto when_all(Futures&&... futures) {
    return detail::all_of(std::tuple<std::decay_t<Futures>...>(std::forward<Futures>(futures)...));
}
/// The same for a range, whose futures are moved from unless they are shared: a future of a vector.
template <std::ranges::input_range Range>
    requires detail::any_future<std::ranges::range_value_t<Range>>
[[nodiscard]] auto when_all(Range&& futures) {
    return detail::all_of(detail::futures_from(std::forward<Range>(futures)));
}

/// A future of a when_any_result, ready when one of them is; of none at all, at once.
template <detail::any_future... Futures>
[[nodiscard]] auto when_any(Futures&&... futures) {
    return detail::any_of(std::tuple<std::decay_t<Futures>...>(std::forward<Futures>(futures)...));
}
template <std::ranges::input_range Range>
    requires detail::any_future<std::ranges::range_value_t<Range>>
[[nodiscard]] auto when_any(Range&& futures) {
    return detail::any_of(detail::futures_from(std::forward<Range>(futures)));
}

}  // namespace weft::inline v0
