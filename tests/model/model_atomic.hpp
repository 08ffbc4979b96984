// model_atomic.hpp - what stands for std::atomic, for a lock and for a sleeping thread in a model.
//
// Each operation is one step of the explorer and then happens as a whole. Memory orders are taken
// and ignored: see docs/models.md. In a scenario's constructor, at_rest() and at_end() they are no
// steps.
//
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstdint>
#include <type_traits>

#include "explorer.hpp"

namespace weft_model {

template <class T>
class model_atomic {
public:
    model_atomic() noexcept = default;
    model_atomic(T value) noexcept : value_(value) {}  // as std::atomic's, from its value
    model_atomic(const model_atomic&) = delete;
    model_atomic& operator=(const model_atomic&) = delete;

    T load(std::memory_order = std::memory_order_seq_cst) const {
        step();
        did("load", value_, value_);
        return value_;
    }
    void store(T value, std::memory_order = std::memory_order_seq_cst) { write("store", value); }
    T exchange(T value, std::memory_order = std::memory_order_seq_cst) {
        return write("exchange", value);
    }
    bool compare_exchange_strong(T& expected, T desired,
                                 std::memory_order = std::memory_order_seq_cst,
                                 std::memory_order = std::memory_order_seq_cst) {
        step();
        if (value_ != expected) {
            did("CAS fails", value_, value_);
            expected = value_;
            return false;
        }
        value_ = desired;
        did("CAS", expected, desired);
        return true;
    }
    bool compare_exchange_weak(T& expected, T desired,
                               std::memory_order = std::memory_order_seq_cst,
                               std::memory_order = std::memory_order_seq_cst) {
        return compare_exchange_strong(expected, desired);
    }
    T fetch_add(T n, std::memory_order = std::memory_order_seq_cst) {
        return change("fetch_add", [n](T value) { return static_cast<T>(value + n); });
    }
    T fetch_sub(T n, std::memory_order = std::memory_order_seq_cst) {
        return change("fetch_sub", [n](T value) { return static_cast<T>(value - n); });
    }
    T fetch_or(T bits, std::memory_order = std::memory_order_seq_cst) {
        return change("fetch_or", [bits](T value) { return static_cast<T>(value | bits); });
    }
    T fetch_and(T bits, std::memory_order = std::memory_order_seq_cst) {
        return change("fetch_and", [bits](T value) { return static_cast<T>(value & bits); });
    }

    /// No step: for conditions and checks.
    [[nodiscard]] T peek() const noexcept { return value_; }

private:
    static void step() {
        if (explorer* const e = explorer::here()) e->step();
    }
    void did(const char* what, T before, T after) const {
        if (explorer* const e = explorer::here())
            e->did(what, this, number(before), number(after), before != after);
    }
    static std::uint64_t number(T value) noexcept {
        if constexpr (std::is_pointer_v<T>)
            return reinterpret_cast<std::uintptr_t>(value);
        else
            return static_cast<std::uint64_t>(value);
    }
    T write(const char* what, T value) {
        return change(what, [value](T) { return value; });
    }
    template <class F>
    T change(const char* what, F f) {
        step();
        const T before = value_;
        value_ = f(before);
        did(what, before, value_);
        return before;
    }

    T value_{};
};

/// For `Lock` parameters: whoever finds it held waits, without spinning.
class model_lock {
public:
    void lock() {
        wait_until("a lock", [this] { return !held_; });
        held_ = true;
    }
    void unlock() { held_ = false; }

private:
    bool held_ = false;
};

/// What a thread sleeps in: one wake-up is kept.
class model_sleep {
public:
    void wait() {
        wait_until("a wake-up", [this] { return woken_; });
        woken_ = false;
    }
    void wake() {
        explorer::here()->step();
        woken_ = true;
    }
    /// No step.
    void wake_at_rest() noexcept { woken_ = true; }
    [[nodiscard]] bool is_woken() const noexcept { return woken_; }

private:
    bool woken_ = false;
};

/// For `Spin` parameters.
struct model_spin {
    void once() { explorer::here()->pause(); }
};

}  // namespace weft_model
