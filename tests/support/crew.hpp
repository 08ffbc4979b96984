// crew.hpp - an executor as a user writes one: two functions, run by plain threads; it keeps no
// time.
//
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <condition_variable>
#include <cstddef>
#include <deque>
#include <mutex>
#include <thread>
#include <vector>

#include <weft/exec/executor.hpp>

namespace weft_test {

/// run() ends when nobody is to come any more.
class crew final : public weft::executor {
public:
    void post(weft::runnable* r) override {
        const std::lock_guard lock(mutex_);
        queue_.push_back(r);
        changed_.notify_one();
    }
    void defer(weft::runnable* r) override { post(r); }
    void add_work(std::ptrdiff_t change) noexcept override {
        const std::lock_guard lock(mutex_);
        work_ += change;
        if (work_ == 0) changed_.notify_all();
    }
    void run() {
        while (weft::runnable* r = take()) do
                r = r->run();
            while (r != nullptr);
    }
    void run_by(int threads) {
        std::vector<std::jthread> others;
        for (int i = 1; i < threads; ++i) others.emplace_back([this] { run(); });
        run();
    }

private:
    weft::runnable* take() {
        std::unique_lock lock(mutex_);
        changed_.wait(lock, [&] { return work_ == 0 || !queue_.empty(); });
        if (queue_.empty()) return nullptr;
        weft::runnable* const r = queue_.front();
        queue_.pop_front();
        return r;
    }
    std::mutex mutex_;
    std::condition_variable changed_;
    std::deque<weft::runnable*> queue_;
    std::ptrdiff_t work_ = 0;
};

}  // namespace weft_test
