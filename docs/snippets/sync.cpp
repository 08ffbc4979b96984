// sync.cpp - the snippets of docs/sync.md.
//
// SPDX-License-Identifier: Apache-2.0
#include <deque>
#include <mutex>
#include <utility>

#include <weft/weft.hpp>

#include "check.hpp"

using namespace weft;

namespace {

using job = int;

// [queue]
mutex m;
condition_variable changed;
std::deque<job> jobs;

void put(job j) {
    {
        const std::lock_guard lock(m);
        jobs.push_back(std::move(j));
    }
    changed.notify_one();
}

job take() {
    std::unique_lock lock(m);
    changed.wait(lock, [] { return !jobs.empty(); });
    job j = std::move(jobs.front());
    jobs.pop_front();
    return j;
}
// [/queue]

}  // namespace

int main() {
    return run([] {
        fiber taker([] { check(take() == 7, "what was put"); });
        put(7);
        taker.join();

        // [no_suspend_mutex]
        debug::no_suspend_mutex<std::mutex> cache("the cache");
        // [/no_suspend_mutex]
        const std::lock_guard lock(cache);
        return 0;
    });
}
