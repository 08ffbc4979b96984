// reuse_test.cpp - one stack serves many coroutines, one after the other.
//
// SPDX-License-Identifier: Apache-2.0
#include <weft/coroutine/coroutine.hpp>
#include <weft/stack/stack_depot.hpp>

#include "weft_test.hpp"

namespace {

using namespace weft;

// TSan keeps the calls of a fiber on a shadow stack of 64 Ki entries, which lives as long as the
// stack does: a call that is left and never returns stays there.
template <class Coroutine>
long run_many(long count) {
    long ran = 0;
    for (long i = 0; i < count; ++i) {
        Coroutine c([&ran] {
            ++ran;
            this_coroutine::yield();
        });
        c.resume();
        if (i % 2 == 0) c.resume();  // the others are unwound
    }
    return ran;
}

}  // namespace

WEFT_TEST("coroutine: stress of one stack used again and again") {
    const std::size_t idle = shared_stack_depot().counters().idle;
    const long count = weft_test::stress_count(8'000'000);
    CHECK(run_many<coroutine>(count) == count);
    CHECK(shared_stack_depot().counters().idle <= idle + 1);
}

WEFT_TEST("coroutine: stress of one stack used again and again by ucontext") {
    const long count = weft_test::stress_count(4'000'000);
    CHECK(run_many<ucontext_coroutine>(count) == count);
}
