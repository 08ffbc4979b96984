// workload.hpp - locks and their kin: nobody else there, two and many who want the same one, turns.
//
// uncontended:   one fiber locks and unlocks; a second thread exists, for glibc leaves the locked
//                instruction out while there is only one.
// contended:     2 or 64 fibers on two threads lock, count and unlock.
// condition:     two fibers on one thread take turns, by a mutex and a condition variable.
// semaphore:     two fibers on one thread take turns, by two binary semaphores.
// readers:       8 fibers on two threads, of which each locks to write every 16th time.
//
// What is counted under the lock must be right. What is reported is the time of one lock and
// unlock, or of one turn.
//
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstdint>
#include <semaphore>
#include <string>
#include <string_view>
#include <thread>

#include "support/row.hpp"

namespace bench::locks {

/// What a player is asked for. It starts and stops the clock, and adds up what was done.
struct task {
    std::uint64_t total;  // locks, or turns
    std::uint64_t fibers;
    std::uint64_t done = 0;
    stopwatch clock = {};

    [[nodiscard]] std::uint64_t of_each() const { return total / fibers; }
};

inline constexpr std::uint64_t write_every = 16;

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
void measure(const settings& how, std::string_view row, std::uint64_t fibers, std::uint64_t total,
             Play play) {
    const auto played = [&](std::uint64_t count) {
        task t{count / fibers * fibers, fibers};
        play(t);
        require(t.done == t.total, row);
        return t.clock.nanoseconds() / static_cast<double>(t.total);
    };
    const std::uint64_t count = how.quick ? fibers * 100 : total;
    played(count / 10 + fibers);
    report({row, "ns"}, played(count));
}

// How much there is to do in each.
inline constexpr std::uint64_t uncontended = 20'000'000;
inline constexpr std::uint64_t contended = 4'000'000;
inline constexpr std::uint64_t turns = 1'000'000;
inline constexpr std::uint64_t reads = 2'000'000;

}  // namespace bench::locks
