// dispatcher.cpp - a scheduler of one's own over swapped coroutines, in two policies.
//
// The library has no opinion about who runs next: a dispatcher asks the user's `next` for a
// coroutine, new or parked, and resumes it. The user also gives the memory for parked ones
// (allocate and release), so a program knows to the byte what its waiting work costs.
//
//   round_robin     one list; everybody runs in turn
//   list_a_thread   one dispatcher and one list for each OS thread; work is dealt out at the start
//
// SPDX-License-Identifier: Apache-2.0
#include <cstdio>
#include <cstdlib>
#include <deque>
#include <functional>
#include <memory>
#include <thread>
#include <vector>

#include <weft/weft.hpp>

using namespace weft;

// The user's allocate and release: counts what is held.
class counting_memory final : public swap_allocator {
public:
    void* allocate(std::size_t size) override {
        void* memory = std::malloc(size);
        if (memory == nullptr) throw std::bad_alloc();
        held_ += size;
        most_ = std::max(most_, held_);
        return memory;
    }
    void release(void* memory, std::size_t size) noexcept override {
        held_ -= size;
        std::free(memory);
    }
    [[nodiscard]] std::size_t held() const noexcept { return held_; }
    [[nodiscard]] std::size_t most() const noexcept { return most_; }

private:
    std::size_t held_ = 0;
    std::size_t most_ = 0;
};

// Runs what `next` returns until it returns nothing. One that is not done goes to `parked`.
class dispatcher {
public:
    using work = std::unique_ptr<swapped_coroutine>;

    dispatcher(std::function<work()> next, std::function<void(work)> parked)
        : next_(std::move(next)), parked_(std::move(parked)) {}

    void run() {
        while (work current = next_()) {
            current->resume();
            if (!current->done()) parked_(std::move(current));
        }
    }

private:
    std::function<work()> next_;
    std::function<void(work)> parked_;
};

// Each counts to three on its own. What it counts lives in its callable, not on the shared stack.
dispatcher::work counter(shared_stack& shared, long& sum) {
    return std::make_unique<swapped_coroutine>(coroutine_options{.shared = &shared}, [&sum] {
        for (int i = 1; i <= 3; ++i) {
            sum += i;
            this_coroutine::yield();
        }
    });
}

// New ones are made only when there is nothing parked: at most `window` exist at any time.
long round_robin(int count, std::size_t window) {
    counting_memory memory;
    long sum = 0;
    int made = 0;
    {
        shared_stack shared({.allocator = &memory});
        std::deque<dispatcher::work> waiting;
        dispatcher all(
            [&]() -> dispatcher::work {
                if (waiting.size() < window && made < count) {
                    ++made;
                    return counter(shared, sum);
                }
                if (waiting.empty()) return nullptr;
                dispatcher::work first = std::move(waiting.front());
                waiting.pop_front();
                return first;
            },
            [&](dispatcher::work w) { waiting.push_back(std::move(w)); });
        all.run();
        std::printf(
            "round robin: %d coroutines, at most %zu at a time, %zu bytes of buffers each\n", made,
            window, memory.most() / window);
    }
    return memory.held() == 0 ? sum : -1;
}

long list_a_thread(int count, std::size_t threads) {
    std::vector<long> sums(threads, 0);
    {
        std::vector<std::jthread> running;
        for (std::size_t t = 0; t < threads; ++t) {
            running.emplace_back([&sum = sums[t], share = count / static_cast<int>(threads)] {
                shared_stack shared({.policy = buffer_policy::release_at_resume});
                std::deque<dispatcher::work> list;
                for (int i = 0; i < share; ++i) list.push_back(counter(shared, sum));
                dispatcher mine(
                    [&]() -> dispatcher::work {
                        if (list.empty()) return nullptr;
                        dispatcher::work first = std::move(list.front());
                        list.pop_front();
                        return first;
                    },
                    [&](dispatcher::work w) { list.push_back(std::move(w)); });
                mine.run();
            });
        }
    }
    long sum = 0;
    for (long s : sums) sum += s;
    std::printf("a list a thread: %d coroutines on %zu threads\n", count, threads);
    return sum;
}

int main() {
    constexpr int count = 1000;
    const bool right =
        round_robin(count, 100) == 6L * count && list_a_thread(count, 2) == 6L * count;
    std::printf("%s\n", right ? "every sum is right" : "a sum is wrong");
    return right ? 0 : 1;
}
