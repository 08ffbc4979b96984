// generator.hpp - a sequence of values from a function with a stack of its own.
//
//     generator<int> leaves(const tree& t) {
//         return generator<int>([&t](auto& yield) { walk(t, yield); });  // yield(v) at any depth
//     }
//     for (int leaf : leaves(oak)) ...
//
// An input range: use it once, front to back. Recursion needs no help, for the whole stack is kept.
// A generator that is dropped in the middle unwinds its body (forced_unwind).
//
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <iterator>
#include <memory>
#include <ranges>
#include <type_traits>

#include <weft/coroutine/coroutine.hpp>

namespace weft::inline v0 {

/// T is a value type, of which the range has T&, or a reference type, which the range has as it is.
/// Thread-safe: no; any thread may use it, one at a time.
template <class T>
class generator : public std::ranges::view_interface<generator<T>> {
public:
    /// What is kept of a value.
    using value_type = std::remove_cvref_t<T>;
    /// What an iterator gives.
    using reference = std::conditional_t<std::is_reference_v<T>, T, T&>;
    class yielder;
    class iterator;

    /// An empty sequence.
    generator() noexcept = default;

    /// Will run f(yield) when the first value is asked for. Fails: as coroutine's constructor.
    template <class F>
        requires std::invocable < std::decay_t<F>
    &, yielder& > explicit generator(F&& f) : generator(coroutine_options{}, std::forward<F>(f)) {}

    template <class F>
        requires std::invocable < std::decay_t<F>
    &, yielder& > generator(const coroutine_options& options, F&& f)
        : block_(new block_of<std::decay_t<F>>(options, std::forward<F>(f))) {}

    generator(generator&& other) noexcept : block_(std::exchange(other.block_, nullptr)) {}
    generator& operator=(generator&& other) noexcept {
        generator taken(std::move(other));
        std::swap(block_, taken.block_);
        return *this;
    }
    ~generator() { basic_coroutine_block<own_backend>::destroy(block_); }

    /// The current value; the first call runs the body to its first yield.
    /// Fails: as the body does.
    [[nodiscard]] iterator begin() {
        if (block_ != nullptr && !block_->started) block_->resume();
        return iterator(block_);
    }
    /// Is reached when the body has returned.
    [[nodiscard]] std::default_sentinel_t end() const noexcept { return {}; }

private:
    using pointer = std::add_pointer_t<reference>;

    class block : public basic_coroutine_block<own_backend> {
    public:
        using basic_coroutine_block::basic_coroutine_block;
        pointer value = nullptr;
    };

    template <class F>
    class block_of final : public block {
    public:
        template <class G>
        block_of(const coroutine_options& options, G&& f)
            : block(options), f_(std::forward<G>(f)) {}

    private:
        void run() override {
            yielder yield(*this);
            std::invoke(f_, yield);
        }
        F f_;
    };

    block* block_ = nullptr;
};

/// What the body calls with each value. Pass it on by reference to whatever yields deeper down.
template <class T>
class generator<T>::yielder {
public:
    yielder(const yielder&) = delete;
    yielder& operator=(const yielder&) = delete;

    /// Hands out a reference to v, which stays valid until the consumer asks for the next value.
    /// Suspends: always. Cancel: throws forced_unwind when the generator is destroyed. From: the
    /// body only. Fails: never.
    [[gnu::always_inline]] void operator()(reference v) {
        block_.value = std::addressof(v);
        block_.yield();
    }

    /// A temporary lives that long, too.
    void operator()(value_type&& v) requires(!std::is_reference_v<T> && !std::is_const_v<T>) {
        (*this)(static_cast<reference>(v));
    }

    /// What may not be changed is handed out as a copy.
    void operator()(const value_type& v) requires(!std::is_reference_v<T> && !std::is_const_v<T> &&
                                                  std::copy_constructible<T>) {
        (*this)(value_type(v));
    }

private:
    friend class generator;
    explicit yielder(block& b) noexcept : block_(b) {}
    block& block_;
};

/// An input iterator; its increment resumes the body.
template <class T>
class generator<T>::iterator {
public:
    /// As the generator's.
    using value_type = generator::value_type;
    /// Which every iterator has.
    using difference_type = std::ptrdiff_t;

    iterator(iterator&&) noexcept = default;
    iterator& operator=(iterator&&) noexcept = default;

    [[nodiscard]] reference operator*() const noexcept {
        return static_cast<reference>(*block_->value);
    }
    /// Fails: as the body does; the sequence then is at its end.
    [[gnu::always_inline]] iterator& operator++() {
        block_->resume();
        return *this;
    }
    void operator++(int) { ++*this; }
    [[nodiscard]] friend bool operator==(const iterator& i, std::default_sentinel_t) noexcept {
        return i.block_ == nullptr || i.block_->done();
    }

private:
    friend class generator;
    explicit iterator(block* b) noexcept : block_(b) {}
    block* block_;
};

}  // namespace weft::inline v0
