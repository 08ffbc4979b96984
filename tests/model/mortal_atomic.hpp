// mortal_atomic.hpp - atomics of something that may be destroyed, and is not touched after that.
//
// The memory stays, so that the run can go on; every operation checks that it is not gone.
//
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "explorer.hpp"

namespace weft_model {

/// Over model_atomic or the like. One thing of each kind in a scenario.
template <template <class> class Base>
struct mortal {
    /// Set it to false at the beginning of a run.
    static inline bool is_gone = false;

    template <class T>
    class atomic : public Base<T> {
    public:
        using Base<T>::Base;
        template <class... Order>
        T load(Order... order) const {
            return still_there(Base<T>::load(order...));
        }
        template <class... Order>
        void store(T value, Order... order) {
            Base<T>::store(value, order...);
            still_there(value);
        }
        template <class... Order>
        bool compare_exchange_strong(T& expected, T desired, Order... order) {
            return still_there(Base<T>::compare_exchange_strong(expected, desired, order...));
        }
        template <class... Order>
        bool compare_exchange_weak(T& expected, T desired, Order... order) {
            return still_there(Base<T>::compare_exchange_weak(expected, desired, order...));
        }
        template <class... Order>
        T fetch_or(T bits, Order... order) {
            return still_there(Base<T>::fetch_or(bits, order...));
        }
        template <class... Order>
        T fetch_and(T bits, Order... order) {
            return still_there(Base<T>::fetch_and(bits, order...));
        }

    private:
        template <class Result>
        static Result still_there(Result result) {
            check(!is_gone, "touched after it was destroyed");
            return result;
        }
    };
};

}  // namespace weft_model
