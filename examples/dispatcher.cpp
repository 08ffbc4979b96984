// dispatcher.cpp - a scheduler of one's own over swapped coroutines, in two policies.
//
// The library has no opinion about who runs next: a dispatcher asks the user's `next` for a
// coroutine, new or parked, and resumes it. Where all are parked on events, `next` sleeps until one
// comes. The user also gives the memory for parked ones (allocate and release), so a program knows
// to the byte what its waiting work costs.
//
//   round_robin     one list; everybody runs in turn
//   list_a_thread   one dispatcher and one list for each OS thread; work is dealt out at the start
//
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <cstdio>
#include <cstdlib>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <new>
#include <optional>
#include <thread>
#include <utility>
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

template <class T>
T take_first(std::deque<T>& list) {
    T first = std::move(list.front());
    list.pop_front();
    return first;
}

// What happens outside: in this program numbers that another thread posts.
class event_list {
public:
    void post(int event) {
        const std::lock_guard lock(mutex_);
        events_.push_back(event);
        posted_.notify_one();
    }
    // The oldest, if there is one; told to sleep, it waits for one.
    std::optional<int> take(bool sleep) {
        std::unique_lock lock(mutex_);
        if (sleep) posted_.wait(lock, [this] { return !events_.empty(); });
        if (events_.empty()) return std::nullopt;
        return take_first(events_);
    }

private:
    std::mutex mutex_;
    std::condition_variable posted_;
    std::deque<int> events_;
};

// A coroutine that adds 1, an event and 3, and in between waits: for its turn, for the event. What
// others write lives here, not on the shared stack.
struct work {
    work(shared_stack& shared, long& sum)
        : body({.shared = &shared}, [this, &sum] {
              sum += 1;
              this_coroutine::yield();
              wants_event = true;
              this_coroutine::yield();
              sum += event;
              this_coroutine::yield();
              sum += 3;
          }) {}

    bool wants_event = false;
    int event = 0;
    swapped_coroutine body;
};
using work_pointer = std::unique_ptr<work>;

// Runs what `next` returns until it returns nothing. One that is not done goes to `parked`.
class dispatcher {
public:
    dispatcher(std::function<work_pointer()> next, std::function<void(work_pointer)> parked)
        : next_(std::move(next)), parked_(std::move(parked)) {}

    void run() {
        while (work_pointer current = next_()) {
            current->body.resume();
            if (!current->body.done()) parked_(std::move(current));
        }
    }

private:
    std::function<work_pointer()> next_;
    std::function<void(work_pointer)> parked_;
};

// Runs `count` of them, at most `window` at a time, and returns their sum.
long dispatch(shared_stack& shared, event_list& events, int count, std::size_t window) {
    long sum = 0;
    int made = 0;
    std::deque<work_pointer> ready;
    std::deque<work_pointer> waiting;  // for an event each
    const auto next = [&]() -> work_pointer {
        const bool room = made < count && ready.size() + waiting.size() < window;
        if (!waiting.empty()) {
            if (const auto event = events.take(ready.empty() && !room)) {
                work_pointer first = take_first(waiting);
                first->event = *event;
                first->wants_event = false;
                return first;
            }
        }
        if (room) {
            ++made;
            return std::make_unique<work>(shared, sum);
        }
        return ready.empty() ? nullptr : take_first(ready);
    };
    const auto parked = [&](work_pointer one) {
        (one->wants_event ? waiting : ready).push_back(std::move(one));
    };
    dispatcher(next, parked).run();
    return sum;
}

// Posts a 2 for each of them, some at a time.
std::jthread post_events(event_list& events, int count) {
    return std::jthread([&events, count] {
        for (int i = 0; i < count; ++i) {
            if (i % 100 == 0) std::this_thread::sleep_for(std::chrono::milliseconds(1));
            events.post(2);
        }
    });
}

long round_robin(int count, std::size_t window) {
    counting_memory memory;
    event_list events;
    const std::jthread poster = post_events(events, count);
    long sum = 0;
    {
        shared_stack shared({.allocator = &memory});
        sum = dispatch(shared, events, count, window);
    }
    std::printf("round robin: %d coroutines, at most %zu at a time, %zu bytes of buffers each\n",
                count, window, memory.most() / window);
    return memory.held() == 0 ? sum : -1;
}

// Both wait for the same events; each has a stack and memory of its own.
long list_a_thread(int count, std::size_t threads) {
    std::vector<long> sums(threads, 0);
    event_list events;
    const std::jthread poster = post_events(events, count);
    {
        std::vector<std::jthread> running;
        for (std::size_t t = 0; t < threads; ++t) {
            running.emplace_back([&, share = count / static_cast<int>(threads), t] {
                counting_memory memory;
                {
                    shared_stack shared(
                        {.allocator = &memory, .policy = buffer_policy::release_at_resume});
                    sums[t] = dispatch(shared, events, share, static_cast<std::size_t>(share));
                }
                if (memory.held() != 0) sums[t] = -1;
            });
        }
    }
    std::printf("a list a thread: %d coroutines on %zu threads\n", count, threads);
    long sum = 0;
    for (long s : sums) sum += s;
    return sum;
}

int main() {
    constexpr int count = 1000;
    const bool right =
        round_robin(count, 100) == 6L * count && list_a_thread(count, 2) == 6L * count;
    std::printf("%s\n", right ? "every sum is right" : "a sum is wrong");
    return right ? 0 : 1;
}
