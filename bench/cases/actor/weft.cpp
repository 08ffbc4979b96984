// weft.cpp - actor_context; beside it a mutex, which is not let go over a yield.
//
// SPDX-License-Identifier: Apache-2.0
#include <weft/actor/actor_context.hpp>
#include <weft/sync/mutex.hpp>

#include "cases/actor/weft_actors.hpp"

int main(int argc, char** argv) {
    using namespace bench::actors;
    const bench::settings how = bench::read_arguments(argc, argv);
    play<weft::actor_context>(how, "weft");
    measure(how, "weft::mutex, a call", 1, calls, call_alone<weft::mutex>);
    measure(how, "weft::mutex, yields outside", 2, yields, yield_outside<weft::mutex>);
}
