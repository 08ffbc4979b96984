// no_allocation_test.cpp - the hot paths allocate nothing, on any back end.
//
// Long, for operator new is replaced for a whole program: every part's hot paths are counted here.
//
// SPDX-License-Identifier: Apache-2.0
#include <atomic>
#include <cstdlib>
#include <deque>
#include <mutex>
#include <new>
#include <shared_mutex>
#include <vector>

#include <weft/weft.hpp>

#if WEFT_TSAN
#include <sanitizer/allocator_interface.h>
#endif

#include "weft_test.hpp"

namespace {

std::atomic<long> allocations = 0;

#if WEFT_TSAN

// TSan has an operator new of its own, and tells of every allocation.
void count(const volatile void*, std::size_t) {
    allocations.fetch_add(1, std::memory_order_relaxed);
}
void ignore(const volatile void*) {}
[[maybe_unused]] const int hooks = __sanitizer_install_malloc_and_free_hooks(count, ignore);

}  // namespace

#else

void* counted_or_null(std::size_t size) noexcept {
    allocations.fetch_add(1, std::memory_order_relaxed);
    return std::malloc(size);
}

void* counted_or_null(std::size_t size, std::align_val_t alignment) noexcept {
    allocations.fetch_add(1, std::memory_order_relaxed);
    const auto to = static_cast<std::size_t>(alignment);
    return std::aligned_alloc(to, (size + to - 1) / to * to);
}

template <class... Alignment>
void* counted(std::size_t size, Alignment... alignment) {
    if (void* memory = counted_or_null(size, alignment...)) return memory;
    throw std::bad_alloc();
}

}  // namespace

void* operator new(std::size_t size) { return counted(size); }
void* operator new[](std::size_t size) { return counted(size); }
void* operator new(std::size_t size, const std::nothrow_t&) noexcept {
    return counted_or_null(size);
}
void* operator new[](std::size_t size, const std::nothrow_t&) noexcept {
    return counted_or_null(size);
}
void* operator new(std::size_t size, std::align_val_t to) { return counted(size, to); }
void* operator new[](std::size_t size, std::align_val_t to) { return counted(size, to); }
void* operator new(std::size_t size, std::align_val_t to, const std::nothrow_t&) noexcept {
    return counted_or_null(size, to);
}
void* operator new[](std::size_t size, std::align_val_t to, const std::nothrow_t&) noexcept {
    return counted_or_null(size, to);
}
void operator delete(void* memory) noexcept { std::free(memory); }
void operator delete[](void* memory) noexcept { std::free(memory); }
void operator delete(void* memory, std::size_t) noexcept { std::free(memory); }
void operator delete[](void* memory, std::size_t) noexcept { std::free(memory); }
void operator delete(void* memory, std::align_val_t) noexcept { std::free(memory); }
void operator delete[](void* memory, std::align_val_t) noexcept { std::free(memory); }
void operator delete(void* memory, std::size_t, std::align_val_t) noexcept { std::free(memory); }
void operator delete[](void* memory, std::size_t, std::align_val_t) noexcept { std::free(memory); }

#endif

namespace {

using namespace weft;

/// How often operator new is called by f.
template <class F>
long allocations_of(F f) {
    const long before = allocations.load(std::memory_order_relaxed);
    f();
    return allocations.load(std::memory_order_relaxed) - before;
}

template <class Coroutine>
long allocations_of_switches(const coroutine_options& options) {
    const auto endless = [] {
        for (;;) this_coroutine::yield();
    };
    Coroutine a(options, endless);
    Coroutine b(options, endless);
    const auto turns = [&] {
        for (int i = 0; i < 100; ++i) {
            a.resume();
            b.resume();
        }
    };
    turns();  // the first round may: a buffer for each on a shared stack
    return allocations_of(turns);
}

}  // namespace

WEFT_TEST("no allocation: the counter counts") {
    CHECK(allocations_of([] {
              int* volatile kept = new int;  // volatile: or the pair is optimised away
              delete kept;
          }) == 1);
    struct alignas(64) line {
        std::byte bytes[64];
    };
    CHECK(allocations_of([] {
              line* volatile kept = new line;
              delete kept;
              line* volatile more = new (std::nothrow) line[2];
              delete[] more;
          }) == 2);
}

WEFT_TEST("no allocation: resume and yield on a stack of its own") {
    CHECK(allocations_of_switches<coroutine>({}) == 0);
}

WEFT_TEST("no allocation: resume and yield on ucontext") {
    CHECK(allocations_of_switches<ucontext_coroutine>({}) == 0);
}

WEFT_TEST("no allocation: resume and yield on threads") {
    thread_cache threads;
    CHECK(allocations_of_switches<thread_coroutine>({.threads = &threads}) == 0);
}

WEFT_TEST("no allocation: resume, copy and yield on a shared stack") {
    shared_stack shared;
    CHECK(allocations_of_switches<swapped_coroutine>({.shared = &shared}) == 0);
}

WEFT_TEST("no allocation: the values of a generator") {
    generator<int> numbers([](auto& yield) {
        for (int i = 0;; ++i) yield(i);
    });
    auto i = numbers.begin();
    CHECK(allocations_of([&] {
              while (*i < 100) ++i;
          }) == 0);
}

WEFT_TEST("no allocation: taking a cached stack and giving it back") {
    stack_cache cache;
    cache.give_back(cache.take(default_stack_size()));
    CHECK(allocations_of([&] { cache.give_back(cache.take(default_stack_size())); }) == 0);
    CHECK(cache.cached() != 0);
}

namespace {

constexpr wait_reason waits{"waits"};

// Everything a fiber does often: yield, sleep, park and unpark, suspend, wait with an event that is
// there, post, and a deadline that is disarmed.
long allocations_of_fibers(stack_kind kind, bool external_wakes) {
    manual_clock clock;
    loop s({.external_wakes = external_wakes, .clock = &clock});
    fiber_handle parked;
    bool end = false;
    go(s, {.kind = kind}, [&] {
        parked = this_fiber::handle();
        while (!end) {
            static_cast<void>(park_until(clock.now() + std::chrono::hours(1)));
            suspend([](runnable* r) noexcept { return r; });
        }
    });
    go(s, {.kind = kind}, [&] {
        while (!end) {
            unpark(parked);
            yield();
            sleep_for(std::chrono::milliseconds(1));
            wait(waits, no_deadline, [](waiter&) noexcept { return false; });
        }
        unpark(parked);
    });
    const auto turns = [&] {
        for (int i = 0; i < 100; ++i) {
            s.run_until_blocked();
            clock.advance(std::chrono::milliseconds(1));
        }
    };
    turns();  // the first may: stacks, buffers, lists
    const long counted = allocations_of(turns);
    end = true;
    turns();
    return counted;
}

}  // namespace

WEFT_TEST(
    "no allocation: fibers that yield, sleep, park, suspend and wait, on each kind of stack") {
    using enum stack_kind;
    for (const stack_kind kind : {own, ucontext, thread, swapped})
        for (const bool external_wakes : {false, true})
            EXPECT_EQ(allocations_of_fibers(kind, external_wakes), 0)
                << static_cast<int>(kind) << external_wakes;
}

WEFT_TEST("no allocation: a fiber started from a fiber, once the caches are warm") {
    loop s({.external_wakes = false});
    long counted = -1;
    go(s, [&] {
        int ended = 0;
        const auto start_many = [&] {
            for (int i = 0; i < 50; ++i) go([&] { ++ended; });
            yield();
        };
        start_many();
        counted = allocations_of(start_many);
        yield();
        EXPECT_EQ(ended, 100);
    });
    s.run();
    EXPECT_EQ(counted, 0);
}

namespace {

// Every primitive, with somebody to wait for each time, by an event and by a deadline.
long allocations_of_sync(stack_kind kind) {
    manual_clock clock;
    loop s({.external_wakes = false, .clock = &clock});
    struct {
        mutex m;
        fair_mutex fair;
        timed_mutex timed;
        shared_mutex shared;
        condition_variable changed;
        binary_semaphore permit{0};
        event happened{event_reset::automatic};
        wait_group group;
        barrier<> meeting{2};
    } all;
    bool end = false;
    const auto turn = [&](bool first) {
        all.m.lock();
        yield();
        if (first) {
            std::unique_lock held(all.m, std::adopt_lock);
            all.changed.wait_for(held, std::chrono::milliseconds(1));
            all.permit.acquire();
            all.happened.wait();
        } else {
            all.m.unlock();
            all.changed.notify_one();
            all.permit.release();
            yield();
            all.happened.set();
        }
        {
            const std::lock_guard fair(all.fair);
            const std::shared_lock shared(all.shared);
            yield();
        }
        {
            const std::lock_guard exclusive(all.shared);
            if (all.timed.try_lock_for(std::chrono::milliseconds(1))) {
                yield();
                all.timed.unlock();
            }
        }
        all.group.add();
        all.group.done();
        all.group.wait();
        all.meeting.arrive_and_wait();
    };
    for (const bool first : {true, false})
        go(s, {.kind = kind}, [&, first] {
            while (!end) {
                turn(first);
                sleep_for(std::chrono::milliseconds(1));
            }
        });
    const auto turns = [&] {
        for (int i = 0; i < 100; ++i) {
            s.run_until_blocked();
            clock.advance(std::chrono::milliseconds(1));
        }
    };
    turns();
    const long counted = allocations_of(turns);
    end = true;
    turns();
    EXPECT_EQ(s.alive(), 0U);
    return counted;
}

// Ping-pong over capacity 0, a stream through a bounded channel, a select that waits, for an item
// that is plain and for one that is moved.
template <class T>
long allocations_of_channels(stack_kind kind, bool external_wakes) {
    loop s({.external_wakes = external_wakes});
    channel<T> there;
    channel<T> back;
    channel<T> stream(4);
    bool end = false;
    go(s, {.kind = kind}, [&] {
        while (!end) {
            static_cast<void>(there.send(T()));
            static_cast<void>(
                select(on_receive(stream, [](auto&&) {}), on_receive(back, [](auto&&) {})));
            for (int i = 0; i < 6; ++i) static_cast<void>(stream.send(T()));
            yield();
        }
        there.close();
        stream.close();
    });
    go(s, {.kind = kind}, [&] {
        while (there.receive()) {
            static_cast<void>(back.send(T()));
            for (int i = 0; i < 6; ++i) static_cast<void>(stream.receive());
        }
    });
    const auto turns = [&] {
        for (int i = 0; i < 200; ++i) s.step();
    };
    turns();  // the first may: nodes
    const long counted = allocations_of(turns);
    end = true;
    s.run();
    return counted;
}

}  // namespace

WEFT_TEST("no allocation: locks, condition variables and the rest, on each kind of stack") {
    using enum stack_kind;
    for (const stack_kind kind : {own, ucontext, thread, swapped})
        EXPECT_EQ(allocations_of_sync(kind), 0) << static_cast<int>(kind);
}

WEFT_TEST("no allocation: channels and select, but for fibers on a shared stack") {
    using enum stack_kind;
    for (const stack_kind kind : {own, ucontext, thread})
        for (const bool external_wakes : {false, true}) {
            EXPECT_EQ(allocations_of_channels<int>(kind, external_wakes), 0);
            EXPECT_EQ(allocations_of_channels<std::unique_ptr<int>>(kind, external_wakes), 0);
        }
}

WEFT_TEST("no allocation: actors, three deep, alone and against others, over waits") {
    using enum stack_kind;
    for (const stack_kind kind : {own, ucontext, thread, swapped}) {
        loop s({.external_wakes = false});
        actor_context actors[3];
        isolated<int> number(0);
        bool end = false;
        for (int i = 0; i < 3; ++i)
            go(s, {.kind = kind}, [&, i] {
                while (!end) {
                    number.with([](int& n) { ++n; });
                    const std::lock_guard first(actors[i]);
                    yield();
                    const std::lock_guard second(actors[(i + 1) % 3]);
                    const std::lock_guard third(actors[(i + 2) % 3]);
                    yield();
                }
            });
        const auto turns = [&] {
            for (const actor_context& one : actors) {
                for (int i = 0; i < 300; ++i) s.step();
                one.lock();  // now some have to wait
                for (int i = 0; i < 300; ++i) s.step();
                one.unlock();
            }
        };
        turns();  // the first may: stacks, lists, and buffers that grow
        turns();
        EXPECT_EQ(allocations_of(turns), 0) << static_cast<int>(kind);
        end = true;
        s.run();
    }
}

WEFT_TEST("no allocation: waiting for a future and setting its promise") {
    loop s({.external_wakes = false});
    promise<int> p;
    future<int> f = p.get_future();
    int got = 0;
    go(s, [&] { got = f.get(); });
    s.run_until_blocked();
    CHECK(allocations_of([&] {
              p.set_value(3);
              s.run_until_blocked();
          }) == 0);
    CHECK(got == 3);
}

WEFT_TEST("no allocation: asking fibers to stop, one of them or all of an executor") {
    loop s({.external_wakes = false});
    std::stop_token token;
    fiber one(s, [&] {
        token = get_stop_token();
        static_cast<void>(park());
    });
    for (int i = 0; i < 50; ++i) go(s, [] { static_cast<void>(park()); });
    s.run_until_blocked();
    CHECK(allocations_of([&] { one.request_stop(); }) == 0);
    CHECK(token.stop_requested());
    CHECK(allocations_of([&] { detail::stop_all_fibers(s); }) == 0);
    s.run();
    one.detach();
}

// As many at once as fill a heap, over and over: half of the waits end by an event, half by a
// cancellation, none by its deadline.
WEFT_TEST("no allocation: stress, a million deadlines that are armed and disarmed") {
    constexpr int at_once = 1000;
    const long rounds = weft_test::stress_count(1'000'000) / at_once;
    manual_clock clock;
    loop s({.external_wakes = false, .clock = &clock});
    struct one {
        fiber_handle handle;
        cancel_scope* scope = nullptr;
        long events = 0;
        long cancellations = 0;
    };
    std::vector<one> all(at_once);
    bool end = false;
    for (one& mine : all)
        go(s, [&] {
            mine.handle = this_fiber::handle();
            while (!end) {
                cancel_scope scope;
                mine.scope = &scope;
                ++(park_until(clock.now() + std::chrono::hours(1)) ? mine.events
                                                                   : mine.cancellations);
            }
        });
    s.run_until_blocked();
    const auto turn = [&] {
        for (int i = 0; i < at_once; ++i)
            if (i % 2 == 0)
                unpark(all[static_cast<std::size_t>(i)].handle);
            else
                all[static_cast<std::size_t>(i)].scope->cancel();
        s.run_until_blocked();
    };
    turn();  // the first may
    CHECK(allocations_of([&] {
              for (long i = 1; i < rounds; ++i) turn();
          }) == 0);
    CHECK(all[0].events == rounds && all[0].cancellations == 0);
    CHECK(all[1].events == 0 && all[1].cancellations == rounds);
    end = true;
    turn();
    CHECK(s.alive() == 0 && !s.next_deadline());
}

namespace {

// Four pairs whose fibers wake each other, also from one worker to the other, yield and sleep.
long allocations_on_pool(stack_kind kind) {
    constexpr int pairs = 4;
    struct {
        std::deque<counting_semaphore<>> begin;
        std::deque<counting_semaphore<>> there;
        std::deque<counting_semaphore<>> back;
        mutex m;
        std::atomic<int> done = 0;
        bool end = false;
    } all;
    for (int i = 0; i < pairs; ++i) {
        all.there.emplace_back(0);
        all.back.emplace_back(0);
        for (int j = 0; j < 2; ++j) all.begin.emplace_back(0);
    }
    pool p({.workers = 2});
    for (int i = 0; i < 2 * pairs; ++i)
        go(p, {.kind = kind}, [&all, i] {
            const auto pair = static_cast<std::size_t>(i / 2);
            auto& mine = i % 2 == 0 ? all.there[pair] : all.back[pair];
            auto& others = i % 2 == 0 ? all.back[pair] : all.there[pair];
            for (;;) {
                all.begin[static_cast<std::size_t>(i)].acquire();
                if (all.end) return;
                for (int turn = 0; turn < 20; ++turn) {
                    others.release();
                    mine.acquire();
                    const std::lock_guard lock(all.m);
                    yield();
                }
                sleep_for(std::chrono::microseconds(1));
                if (++all.done == 2 * pairs) all.done.notify_one();
            }
        });
    const auto begin = [&] {
        for (counting_semaphore<>& one : all.begin) one.release();
    };
    const auto turns = [&] {
        all.done = 0;
        begin();
        for (int seen = 0; seen != 2 * pairs; seen = all.done) all.done.wait(seen);
    };
    for (int i = 0; i < 10; ++i) turns();  // the first may: stacks, buffers, lists, of each worker
    const long counted = allocations_of([&] {
        for (int i = 0; i < 10; ++i) turns();
    });
    all.end = true;
    begin();
    p.drain();
    return counted;
}

}  // namespace

WEFT_TEST("no allocation: fibers on a pool of two workers, once it is warm") {
    using enum stack_kind;
    for (const stack_kind kind : {own, ucontext, thread, swapped})
        EXPECT_EQ(allocations_on_pool(kind), 0) << static_cast<int>(kind);
}
