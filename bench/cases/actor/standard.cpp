// standard.cpp - a counter with a std::mutex, one thread.
//
// SPDX-License-Identifier: Apache-2.0
#include <mutex>

#include "cases/actor/workload.hpp"

namespace {

using namespace bench::actors;

void call_alone(task& t) {
    const second_thread there;
    std::mutex m;
    t.clock.start();
    for (std::uint64_t n = t.each; n != 0; --n) {
        const std::lock_guard inside(m);
        ++t.done;
    }
    t.clock.stop();
}

}  // namespace

int main(int argc, char** argv) {
    measure(bench::read_arguments(argc, argv), "std::mutex, a call", 1, calls, call_alone);
}
