// own_executor.cpp - executors of one's own, each in two functions, with fibers on them.
//
//   lanes    what is urgent runs first; one thread
//   crew     two threads and a queue
//   strand   on top of another executor: one at a time, so that its fibers need no locks
//
// An executor gets runnables by post and defer, and calls run() on each, over and over with what
// that returns, until that is nullptr. It is never told what a fiber is. Its fibers do there what
// they do elsewhere, but for swapped ones, which need a worker of ours, and for I/O, which needs
// its reactor.
//
// SPDX-License-Identifier: Apache-2.0
#include <array>
#include <condition_variable>
#include <cstdio>
#include <deque>
#include <mutex>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <weft/weft.hpp>

using namespace weft;

void run_to_end(runnable* r) noexcept {
    while (r != nullptr) r = r->run();
}

// --- lanes

// Each lane is an executor: where a fiber is started says how urgent it is.
class lanes {
public:
    [[nodiscard]] executor& urgent() noexcept { return lanes_[0]; }
    [[nodiscard]] executor& ordinary() noexcept { return lanes_[1]; }

    // Until nothing is ready.
    void run() {
        for (std::size_t i = 0; i < lanes_.size();) {
            if (lanes_[i].queue.empty()) {
                ++i;
                continue;
            }
            runnable* const r = lanes_[i].queue.front();
            lanes_[i].queue.pop_front();
            run_to_end(r);
            i = 0;
        }
    }

private:
    struct lane final : executor {
        void post(runnable* r) override { queue.push_back(r); }
        void defer(runnable* r) override { queue.push_back(r); }
        std::deque<runnable*> queue;
    };
    std::array<lane, 2> lanes_;
};

// An urgent fiber that is woken runs before ordinary ones that were ready earlier.
std::string in_lanes() {
    lanes all;
    std::string order;
    runnable* held = nullptr;
    fiber doctor(all.urgent(), [&] {
        order += "D1 ";
        park();
        order += "D2 ";
        suspend([&held](runnable* r) noexcept -> runnable* {
            held = r;  // whoever has it posts it, once
            return nullptr;
        });
        order += "D3 ";
    });
    for (const char* name : {"a", "b"})
        go(all.ordinary(), [&, name] {
            order.append(name) += "1 ";
            if (name[0] == 'a') unpark(doctor.handle());
            yield();
            order.append(name) += "2 ";
        });
    all.run();
    all.urgent().post(held);
    all.run();
    doctor.join();
    return order;
}

// --- crew and strand

class crew final : public executor {
public:
    ~crew() override { stop(); }

    // Nothing of the crew is touched once r can be taken: it may be the last, and the crew be gone.
    void post(runnable* r) override {
        const std::lock_guard lock(mutex_);
        queue_.push_back(r);
        ready_.notify_one();
    }
    void defer(runnable* r) override { post(r); }

    // Runs what is queued, and ends the threads.
    void stop() {
        {
            const std::lock_guard lock(mutex_);
            stopping_ = true;
        }
        ready_.notify_all();
        for (std::jthread& thread : threads_)
            if (thread.joinable()) thread.join();
    }

private:
    void work() {
        std::unique_lock lock(mutex_);
        for (;;) {
            ready_.wait(lock, [&] { return stopping_ || !queue_.empty(); });
            if (queue_.empty()) return;
            runnable* const r = queue_.front();
            queue_.pop_front();
            lock.unlock();
            run_to_end(r);
            lock.lock();
        }
    }

    std::mutex mutex_;
    std::condition_variable ready_;
    std::deque<runnable*> queue_;
    bool stopping_ = false;
    std::array<std::jthread, 2> threads_{std::jthread([this] { work(); }),
                                         std::jthread([this] { work(); })};
};

// A runnable itself: while it has something to do it stands in the queue below, once.
class strand final : public executor, private runnable {
public:
    explicit strand(executor& below) : below_(below) {}

    void post(runnable* r) override {
        {
            const std::lock_guard lock(mutex_);
            queue_.push_back(r);
            if (std::exchange(scheduled_, true)) return;
        }
        below_.post(this);
    }
    void defer(runnable* r) override { post(r); }

private:
    // One of them; then the others below have their turn.
    runnable* run() noexcept override {
        runnable* first;
        {
            const std::lock_guard lock(mutex_);
            first = queue_.front();
            queue_.pop_front();
        }
        run_to_end(first);
        {
            const std::lock_guard lock(mutex_);
            if (queue_.empty()) {
                scheduled_ = false;
                return nullptr;
            }
        }
        below_.post(this);
        return nullptr;
    }

    executor& below_;
    std::mutex mutex_;
    std::deque<runnable*> queue_;
    bool scheduled_ = false;
};

// Plain variables, touched by many fibers on two threads, one at a time.
struct tally {
    int sum = 0;
    int inside = 0;
    bool alone = true;
};

tally on_a_strand(int fibers, int rounds) {
    crew below;
    strand one_at_a_time(below);
    tally all;
    {
        std::vector<fiber> running;
        for (int i = 0; i < fibers; ++i)
            running.emplace_back(one_at_a_time, [&] {
                for (int round = 0; round < rounds; ++round) {
                    if (++all.inside != 1) all.alone = false;
                    ++all.sum;
                    --all.inside;
                    yield();
                }
            });
        for (fiber& f : running) f.join();
    }
    below.stop();  // a joined fiber's function has ended; now its executor is done with it, too
    return all;
}

int main() {
    const std::string order = in_lanes();
    std::printf("lanes:  %s\n", order.c_str());
    const tally all = on_a_strand(20, 50);
    std::printf("strand: %d increments without a lock, %s\n", all.sum,
                all.alone ? "never two at once" : "two at once");
    const bool right = order == "D1 a1 D2 b1 a2 b2 D3 " && all.sum == 1000 && all.alone;
    std::printf("%s\n", right ? "right" : "wrong");
    return right ? 0 : 1;
}
