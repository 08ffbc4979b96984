// store_buffer.hpp - atomics whose last store is not seen by others for a while.
//
// A processor may keep a store back while it goes on to load. Here that is what an
// ordered_atomic<bool> does with true, for each actor one, until that actor writes something else,
// or until somebody makes all processors pass a fence: write_buffers(). A late_atomic<T> does it
// with every store but those that are seq_cst; it has a buffer of its own, one for all of them.
//
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <utility>

#include "model_atomic.hpp"

namespace weft_model {

// What a processor has stored and no other sees yet.
struct store_buffer {
    void write() {
        if (to == nullptr) return;
        if (explorer* const e = explorer::here()) e->did("is seen", to, *to, true, !*to);
        *to = true;
        to = nullptr;
    }
    bool* to = nullptr;
};
inline std::array<store_buffer, 4> buffers;

inline store_buffer& own_buffer() { return buffers[explorer::here()->current()]; }
inline bool in_actor() { return explorer::here() != nullptr && explorer::here()->in_actor(); }

// Any write comes after what is in the buffer.
template <class T>
class ordered_atomic : public model_atomic<T> {
public:
    using model_atomic<T>::model_atomic;
    template <class... Order>
    void store(T value, Order... order) {
        write_buffer();
        model_atomic<T>::store(value, order...);
    }
    template <class... Order>
    bool compare_exchange_strong(T& expected, T desired, Order... order) {
        write_buffer();
        return model_atomic<T>::compare_exchange_strong(expected, desired, order...);
    }
    template <class... Order>
    bool compare_exchange_weak(T& expected, T desired, Order... order) {
        return compare_exchange_strong(expected, desired, order...);
    }
    template <class... Order>
    T fetch_or(T bits, Order... order) {
        write_buffer();
        return model_atomic<T>::fetch_or(bits, order...);
    }
    template <class... Order>
    T fetch_and(T bits, Order... order) {
        write_buffer();
        return model_atomic<T>::fetch_and(bits, order...);
    }

private:
    static void write_buffer() {
        if (in_actor()) own_buffer().write();
    }
};

// Others do not see for a while that it is true.
template <>
class ordered_atomic<bool> {
public:
    ordered_atomic(bool value) noexcept : value_(value) {}
    bool load(std::memory_order) const {
        explorer::here()->step();
        return value_;
    }
    void store(bool value, std::memory_order = std::memory_order_seq_cst) {
        explorer::here()->step();
        own_buffer().write();
        if (value) {
            own_buffer().to = &value_;
        } else {
            explorer::here()->did("store", &value_, value_, value, value_);
            value_ = false;
        }
    }

private:
    bool value_;
};

// What an actor stores, relaxed or by a release, is seen by itself at once, and by others when it
// writes something else, or write_late() is called.
template <class T>
class late_atomic {
public:
    late_atomic(T value) noexcept : value_(value) {}

    T load(std::memory_order = std::memory_order_seq_cst) const {
        step();
        return is_mine() ? late_ : value_;
    }
    void store(T value, std::memory_order order = std::memory_order_seq_cst) {
        step();
        write_late();
        if (order == std::memory_order_seq_cst || !in_actor()) return write(value);
        late_ = value;
        by_ = explorer::here()->current();
        waiting_ = this;
    }
    T exchange(T value, std::memory_order = std::memory_order_seq_cst) {
        step();
        write_late();
        const T before = value_;
        write(value);
        return before;
    }
    bool compare_exchange_strong(T& expected, T desired,
                                 std::memory_order = std::memory_order_seq_cst) {
        step();
        if (is_mine()) write_late();
        if (value_ != expected) {
            expected = value_;
            return false;
        }
        write(desired);
        return true;
    }

    static void write_late() {
        if (late_atomic* const one = std::exchange(waiting_, nullptr)) one->write(one->late_);
    }
    static void forget() { waiting_ = nullptr; }

private:
    static void step() {
        if (explorer* const e = explorer::here()) e->step();
    }
    [[nodiscard]] bool is_mine() const {
        return waiting_ == this && in_actor() && by_ == explorer::here()->current();
    }
    void write(T value) {
        if (explorer* const e = explorer::here())
            e->did("is written", this, value_, value, value_ != value);
        value_ = value;
    }

    inline static late_atomic* waiting_ = nullptr;
    T value_;
    T late_{};
    unsigned by_ = 0;
};

inline void write_buffers() {
    for (store_buffer& each : buffers) each.write();
}

/// At the beginning of a run.
inline void forget_buffers() { buffers = {}; }

}  // namespace weft_model
