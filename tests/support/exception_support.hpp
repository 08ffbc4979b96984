// exception_support.hpp - bodies that pause in the middle of handling an exception.
//
// They work on whatever has a pause(): a stepper here, a coroutine elsewhere.
//
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <exception>

namespace weft_test {

struct problem {
    int number;
};

// What `throw;` throws here: the number of a problem, or 0 if nothing is being handled.
inline int current_problem() {
    const std::exception_ptr current = std::current_exception();
    if (current == nullptr) return 0;
    try {
        std::rethrow_exception(current);
    } catch (const problem& p) { return p.number; } catch (...) {
        return -1;
    }
}

inline bool nothing_in_flight() {
    return std::uncaught_exceptions() == 0 && std::current_exception() == nullptr;
}

template <class F>
struct at_exit {
    F f;
    ~at_exit() { f(); }
};
template <class F>
at_exit(F) -> at_exit<F>;

// Throws a problem, pauses in its handler, and there throws it again with `throw;`. Returns the
// number that arrives.
template <class Body>
int pause_and_rethrow(Body& me, int number) {
    try {
        try {
            throw problem{number};
        } catch (const problem&) {
            me.pause();
            throw;
        }
    } catch (const problem& p) { return p.number; }
}

// Throws a problem past a destructor that pauses. Returns the number that arrives, or -1 if the
// destructor did not see exactly one exception in flight, before and after.
template <class Body>
int pause_and_unwind(Body& me, int number) {
    bool right = true;
    try {
        at_exit pauser{[&] {
            right = right && std::uncaught_exceptions() == 1;
            me.pause();
            right = right && std::uncaught_exceptions() == 1;
        }};
        throw problem{number};
    } catch (const problem& p) { return right && std::uncaught_exceptions() == 0 ? p.number : -1; }
}

}  // namespace weft_test
