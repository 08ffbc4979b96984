// watchdog.hpp - a thread that notices when a runnable holds its worker for too long.
//
// It looks at each worker's count of dispatches a few times in the span that is allowed. If that
// stands still while the worker runs something, it sends the worker's thread a signal, whose
// handler writes down what runs and where, or passes it on to the thread that runs in its stead;
// the runnable itself is not stopped.
//
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstdint>
#include <thread>
#include <vector>

#include <weft/base/clock_source.hpp>
#include <weft/exec/pool.hpp>

namespace weft::inline v0::detail {

class pool_core;
struct pool_worker;

class watchdog {
public:
    /// Fails: std::system_error.
    explicit watchdog(pool_core& core);
    watchdog(const watchdog&) = delete;
    watchdog& operator=(const watchdog&) = delete;
    ~watchdog();

private:
    struct seen {
        std::uint64_t dispatches = 0;
        time_point since{};
        bool reported = false;
    };

    void watch();
    void look_at(pool_worker& one, seen& before);
    void report(pool_worker& one, std::chrono::nanoseconds held);

    pool_core& core_;
    std::vector<seen> seen_;
    std::atomic<std::uint32_t> stop_ = 0;
    std::thread thread_;
};

}  // namespace weft::inline v0::detail
