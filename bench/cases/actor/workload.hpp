// workload.hpp - what the case `actor` plays: fibers that call actors.
//
// The actor is a counter: a call enters, counts, and leaves.
//
//   call      one fiber calls, nobody else does; a second thread is alive, for glibc leaves the
//             locked instruction out while there is only one
//   pairs     K fibers, each with an actor of its own
//   callers   K fibers and one actor
//   yields    two fibers yield by turns on one worker, inside of one actor, or outside of any
//
// What was counted must be right. What is reported is the time of one call, or of one yield.
//
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <semaphore>
#include <string>
#include <string_view>
#include <thread>

#include "support/row.hpp"

namespace bench::actors {

/// What a player is asked for. It starts and stops the clock, and adds up what was done.
struct task {
    std::uint64_t fibers;
    std::uint64_t each;  // calls or yields of each fiber
    std::uint64_t done = 0;
    stopwatch clock = {};
};

/// A thread that does nothing, while it lives.
class second_thread {
public:
    second_thread() : thread_([this] { end_.acquire(); }) {}
    second_thread(const second_thread&) = delete;
    second_thread& operator=(const second_thread&) = delete;
    ~second_thread() {
        end_.release();
        thread_.join();
    }

private:
    std::binary_semaphore end_{0};
    std::thread thread_;
};

template <class Play>
void measure(const settings& how, const std::string& row, std::uint64_t fibers, std::uint64_t total,
             Play play) {
    const auto played = [&](std::uint64_t each) {
        task t{fibers, each};
        play(t);
        require(t.done == fibers * each, row);
        return t.clock.nanoseconds() / static_cast<double>(t.done);
    };
    const std::uint64_t each = how.quick ? 100 : total / fibers;
    played(each / 10 + 1);
    report({row, "ns"}, played(each));
}

inline constexpr std::uint64_t calls = 20'000'000;
inline constexpr std::uint64_t contended = 4'000'000;
inline constexpr std::uint64_t yields = 4'000'000;

}  // namespace bench::actors
