// loops.cpp - a scheduler as an object: run it, step it, suspend by a callback of one's own.
//
// SPDX-License-Identifier: Apache-2.0
#include <chrono>
#include <condition_variable>
#include <cstdio>
#include <map>
#include <mutex>
#include <stop_token>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <weft/weft.hpp>

using namespace weft;
using namespace std::chrono_literals;

// Fibers run in the order in which they became ready.
std::vector<int> run_it() {
    loop s;
    std::vector<int> out;
    go(s, [&] {
        out.push_back(1);
        yield();
        out.push_back(2);
    });
    go(s, [&] {
        out.push_back(3);
        yield();
        out.push_back(4);
    });
    s.run();
    return out;
}

// Each step runs one fiber until it waits or ends, and tells how many are still alive.
std::vector<std::string> step_it() {
    loop s;
    std::vector<std::string> out;
    go(s, [&] {
        out.push_back("foo");
        yield();
        out.push_back("bar");
    });
    go(s, [&] { out.push_back("baz"); });
    for (std::size_t alive : s.steps()) out.push_back(std::to_string(alive));
    return out;
}

// Posts runnables when their time has come: a thread, a list ordered by time, nothing of weft's
// own timers.
class alarm_thread {
public:
    using clock = std::chrono::steady_clock;

    void post_at(clock::time_point when, executor& home, runnable* r) {
        {
            const std::lock_guard lock(mutex_);
            waiting_.emplace(when, std::pair(&home, r));
        }
        changed_.notify_one();
    }

private:
    void work(const std::stop_token& stop) {
        std::unique_lock lock(mutex_);
        while (!stop.stop_requested()) {
            if (waiting_.empty()) {
                changed_.wait(lock, stop, [&] { return !waiting_.empty(); });
            } else if (const auto first = waiting_.begin(); first->first <= clock::now()) {
                const auto [home, r] = first->second;
                waiting_.erase(first);
                lock.unlock();
                home->post(r);  // exactly once: r may be gone now
                lock.lock();
            } else {
                const clock::time_point next = first->first;
                changed_.wait_until(lock, stop, next,
                                    [&] { return waiting_.begin()->first < next; });
            }
        }
    }

    std::mutex mutex_;
    std::condition_variable_any changed_;
    std::multimap<clock::time_point, std::pair<executor*, runnable*>> waiting_;
    std::jthread thread_{[this](const std::stop_token& stop) { work(stop); }};
};

// The callback runs once the fiber is off its stack. It returns what the thread runs next: the
// fiber itself, another runnable, or nullptr for whatever is ready.
void sleep(alarm_thread& alarms, std::chrono::microseconds t) {
    weft::suspend([&alarms, t, home = &this_fiber::executor()](runnable* r) noexcept -> runnable* {
        if (t.count() <= 0) return r;
        alarms.post_at(alarm_thread::clock::now() + t, *home, r);
        return nullptr;
    });
}

struct nap {
    std::string name;
    bool long_enough;
};

std::vector<nap> sleep_in_it() {
    loop s;
    std::vector<nap> out;
    alarm_thread alarms;  // destroyed before the loop that it posts to
    const auto sleeper = [&](const char* name, std::chrono::microseconds t) {
        go(s, [&, name, t] {
            const auto start = alarm_thread::clock::now();
            sleep(alarms, t);
            out.push_back({name, alarm_thread::clock::now() - start >= t});
        });
    };
    sleeper("late", 50ms);
    sleeper("soon", 1ms);
    sleeper("at once", 0ms);
    s.run();
    return out;
}

int main() {
    bool right = true;

    std::printf("run:  ");
    const std::vector<int> order = run_it();
    for (int i : order) std::printf(" %d", i);
    right = right && order == std::vector{1, 3, 2, 4};

    std::printf("\nsteps:");
    const std::vector<std::string> steps = step_it();
    for (const std::string& s : steps) std::printf(" %s", s.c_str());
    right = right && steps == std::vector<std::string>{"foo", "2", "baz", "1", "bar", "0"};

    std::printf("\nsleep:");
    const std::vector<nap> naps = sleep_in_it();
    for (const nap& n : naps) {
        std::printf(" %s", n.name.c_str());
        right = right && n.long_enough;
    }
    // Who sleeps not at all runs first; the order of the others is up to a busy machine.
    right = right && naps.size() == 3 && naps.front().name == "at once";

    std::printf("\n%s\n", right ? "everything in its order" : "something is out of order");
    return right ? 0 : 1;
}
