// inline_child_test.cpp - children that nobody has started run on the stack of the fiber that waits
// for them, and notice nothing of it.
//
// With one worker it is certain which children those are: all, until one waits.
//
// Long, for whatever a fiber can do is done once by a child that has no stack of its own.
//
// SPDX-License-Identifier: Apache-2.0
#include <atomic>
#include <cstdint>
#include <exception>
#include <stdexcept>
#include <thread>
#include <utility>

#include <weft/exec/loop.hpp>
#include <weft/exec/post.hpp>
#include <weft/fiber/fiber_local.hpp>
#include <weft/fiber/suspend_hook.hpp>
#include <weft/scope/deadline.hpp>
#include <weft/scope/task_group.hpp>
#include <weft/scope/task_local.hpp>
#include <weft/sync/event.hpp>

#include "pools.hpp"
#include "test_points.hpp"

using namespace weft;
using namespace std::chrono_literals;

namespace {

[[gnu::noinline]] std::uintptr_t here() {
    return reinterpret_cast<std::uintptr_t>(__builtin_frame_address(0));
}

bool on_one_stack(std::uintptr_t a, std::uintptr_t b) {
    return (a < b ? b - a : a - b) < default_stack_size() / 4;
}

template <class F>
void on_one_worker(F&& function) {
    pool p({.workers = 1});
    fiber f(p, {.name = "parent"}, std::forward<F>(function));
    f.join();
}

}  // namespace

WEFT_TEST("inline child: runs on the stack of its parent") {
    on_one_worker([] {
        const std::uintptr_t parent = here();
        std::uintptr_t children[2] = {};
        with_task_group<void>([&](task_group<void>& g) {
            for (std::uintptr_t& child : children) g.add([&child] { child = here(); });
            CHECK(children[0] == 0);
            g.wait();
        });
        CHECK(on_one_stack(children[0], parent));
        CHECK(on_one_stack(children[1], parent));
    });
}

WEFT_TEST("inline child: has its own identity, locals and values, and the parent has its again") {
    static fiber_local<int> local;
    static const task_local<int> value{0};
    on_one_worker([] {
        const auto me = this_fiber::get_id();
        *local = 1;
        const auto bound = value.bind(5);
        with_task_group<void>([&](task_group<void>& g) {
            g.add({.name = "child"}, [&] {
                CHECK(this_fiber::get_id() != me);
                CHECK(this_fiber::name() == "child");
                CHECK(*local == 0);
                *local = 2;
                CHECK(value.get() == 5);
                const auto again = value.bind(6);
                CHECK(value.get() == 6);
            });
            g.wait();
            CHECK(this_fiber::get_id() == me);
            CHECK(this_fiber::name() == "parent");
            CHECK(*local == 1);
            CHECK(value.get() == 5);
        });
    });
}

WEFT_TEST("inline child: may wait, and its siblings go on meanwhile") {
    on_one_worker([] {
        event quick_ran;
        bool slow_ran = false;
        with_task_group<void>([&](task_group<void>& g) {
            g.add([&] {
                CHECK(!slow_ran);
                quick_ran.set();
            });
            g.add([&] {  // the last one is the first to be taken
                quick_ran.wait();
                slow_ran = true;
            });
            g.wait();
            CHECK(slow_ran);
        });
    });
}

WEFT_TEST("inline child: a tree whose leaves wait at random is counted right") {
    struct tree {
        static unsigned count(unsigned depth, std::atomic<unsigned>& leaves) {
            if (depth == 0) {
                const unsigned n = leaves++;
                if (n % 3 == 0) yield();
                if (n % 7 == 0) sleep_for(10us);
                return 1;
            }
            unsigned parts[3] = {};
            const auto me = this_fiber::get_id();
            with_task_group<void>([&](task_group<void>& g) {
                for (unsigned& part : parts)
                    g.add([&part, &leaves, depth] { part = count(depth - 1, leaves); });
                g.wait();
            });
            CHECK(this_fiber::get_id() == me);
            return parts[0] + parts[1] + parts[2];
        }
    };
    for (const unsigned workers : {1U, 2U, 8U}) {
        pool p({.workers = workers});
        std::atomic<unsigned> leaves = 0;
        fiber f(p, [&] { CHECK(tree::count(6, leaves) == 729); });
        f.join();
        CHECK(leaves == 729);
    }
}

WEFT_TEST("inline child: stress: a tree with yields injected") {
    const weft_test::with_test_points points;
    const long rounds = weft_test::stress_count(200);
    struct tree {
        static unsigned count(unsigned depth) {
            if (depth == 0) return 1;
            unsigned parts[2] = {};
            with_task_group<void>([&](task_group<void>& g) {
                for (unsigned& part : parts) g.add([&part, depth] { part = count(depth - 1); });
                g.wait();
            });
            return parts[0] + parts[1];
        }
    };
    for (const unsigned workers : {1U, 2U, 8U}) {
        pool p({.workers = workers});
        for (long round = 0; round < rounds; ++round) {
            fiber f(p, [] { REQUIRE(tree::count(8) == 256); });
            f.join();
        }
    }
}

WEFT_TEST("inline child: what it throws comes out of wait, and the others are cancelled") {
    on_one_worker([] {
        bool cancelled_before = false;
        std::string what;
        try {
            with_task_group<void>([&](task_group<void>& g) {
                g.add([&] { cancelled_before = this_fiber::stop_requested(); });
                g.add([] { throw std::runtime_error("the second"); });
                g.wait();
            });
        } catch (const std::runtime_error& e) { what = e.what(); }
        CHECK(what == "the second");
        CHECK(cancelled_before);
        CHECK(!this_fiber::stop_requested());
    });
}

WEFT_TEST("inline child: one that ends on another executor leaves its parent where it was") {
    loop other;
    pool p({.workers = 2});
    fiber keeper(other, [] { static_cast<void>(park()); });
    std::thread runs([&] { other.run(); });
    fiber f(p, [&] {
        for (int i = 0; i < 50; ++i) {
            with_task_group<void>([&](task_group<void>& g) {
                g.add([&] {
                    switch_to(other);
                    CHECK(&this_fiber::executor() == &other);
                });
                g.wait();
            });
            CHECK(&this_fiber::executor() == &p);
            yield();
        }
    });
    f.join();
    unpark(keeper.handle());
    runs.join();
}

WEFT_TEST("inline child: a deep tree of them does not overflow the stack") {
    struct chain {
        static int length(int left) {
            char frame[512];
            __builtin_memset(frame, left, sizeof frame);
            int below = 0;
            if (left != 0)
                with_task_group<void>([&](task_group<void>& g) {
                    g.add([&] { below = length(left - 1); });
                    g.wait();
                });
            return below + (frame[100] == static_cast<char>(left) ? 1 : 0);
        }
    };
    on_one_worker([] { CHECK(chain::length(2000) == 2001); });
}

WEFT_TEST("inline child: does not see the exception that its parent handles") {
    on_one_worker([] {
        bool sees = true;
        try {
            throw 1;
        } catch (int) {
            with_task_group<void>([&](task_group<void>& g) {
                g.add([&] { sees = std::current_exception() != nullptr; });
                g.wait();
            });
            CHECK(std::current_exception() != nullptr);
        }
        CHECK(!sees);
    });
}

WEFT_TEST("inline child: the hooks of its parent run before it does") {
    struct counting final : suspend_hook {
        void suspend() override {
            away = true;
            suspend_hook::suspend();
            away = false;
        }
        bool away = false;
    };
    on_one_worker([] {
        counting hook;
        this_fiber::set_suspend_hook(&hook);
        with_task_group<void>([&](task_group<void>& g) {
            g.add([&] { CHECK(hook.away); });
            g.wait();
            CHECK(!hook.away);
        });
        this_fiber::set_suspend_hook(nullptr);
    });
}

WEFT_TEST("inline child: an endless row of them keeps nobody from running") {
    on_one_worker([] {
        std::atomic<bool> slept = false;
        std::atomic<bool> posted = false;
        fiber sleeper([&] {
            sleep_for(1ms);
            slept = true;
        });
        std::thread outside(
            [&, &home = this_fiber::executor()] { post(home, [&] { posted = true; }); });
        while (!slept || !posted)
            with_task_group<void>([&](task_group<void>& g) {
                for (int i = 0; i < 100; ++i) g.add([] {});
                g.wait();
            });
        outside.join();
    });
}

WEFT_TEST("inline child: obeys a deadline around its parent's wait") {
    on_one_worker([] {
        const auto result = with_timeout(2ms, [] {
            with_task_group<void>([&](task_group<void>& g) {
                g.add([] { CHECK(!sleep_for(1h)); });
                g.wait();
            });
        });
        CHECK(!result);
    });
}

WEFT_TEST("inline child: a deadline in the group's body ends a wait for one that goes on waiting") {
    on_one_worker([] {
        event goes_on;
        int ended = 0;
        with_task_group<void>([&](task_group<void>& g) {
            g.add([&] {
                goes_on.wait();
                ++ended;
            });
            CHECK(!with_timeout(2ms, [&] { g.wait(); }));
            CHECK(ended == 0);
            goes_on.set();
            g.wait();
        });
        CHECK(ended == 1);
    });
}

WEFT_TEST("inline child: what it called is destroyed in the child, and may wait there") {
    struct leaver {
        explicit leaver(fiber_id& where) : seen(&where) {}
        leaver(leaver&& other) noexcept : seen(std::exchange(other.seen, nullptr)) {}
        leaver& operator=(leaver&&) = delete;
        ~leaver() {
            if (seen == nullptr) return;
            yield();
            *seen = this_fiber::get_id();
        }
        fiber_id* seen;
    };
    on_one_worker([] {
        fiber_id ran;
        fiber_id destroyed;
        with_task_group<void>([&](task_group<void>& g) {
            g.add([held = leaver(destroyed), &ran] { ran = this_fiber::get_id(); });
            g.wait();
            CHECK(ran);
            CHECK(ran != this_fiber::get_id());
            CHECK(destroyed == ran);
        });
    });
}

WEFT_TEST("inline child: one whose callable cannot be made was not added, and keeps no place") {
    struct unmade {
        unmade() = default;
        unmade(const unmade&) { throw std::runtime_error("not made"); }
        unmade& operator=(const unmade&) = delete;
        void operator()() const {}
    };
    on_one_worker([] {
        for (const std::size_t limit : {0U, 1U}) {
            int ran = 0;
            with_task_group<void>({.limit = limit}, [&](task_group<void>& g) {
                const unmade call;
                int refused = 0;
                for (int i = 0; i < 2; ++i) try {
                        g.add(call);
                    } catch (const std::runtime_error&) { ++refused; }
                CHECK(refused == 2);
                CHECK(g.size() == 0);
                g.add([&] { ++ran; });
                g.wait();
            });
            CHECK(ran == 1);
        }
    });
}

WEFT_TEST("inline child: its callable has its alignment") {
    struct alignas(64) wide {
        void operator()() const {
            *right = reinterpret_cast<std::uintptr_t>(this) % alignof(wide) == 0;
        }
        bool* right;
    };
    on_one_worker([] {
        bool right = false;
        with_task_group<void>([&](task_group<void>& g) {
            g.add(wide{&right});
            g.wait();
        });
        CHECK(right);
    });
}

WEFT_TEST("inline child: a result that nobody wants is destroyed before the group ends") {
    struct counted {
        explicit counted(int& n) : alive(&n) { ++n; }
        counted(counted&& other) noexcept : alive(other.alive) { ++*alive; }
        counted& operator=(counted&&) = delete;
        ~counted() { --*alive; }
        int* alive;
    };
    on_one_worker([] {
        int alive = 0;
        with_task_group<counted>({.discard = true}, [&](task_group<counted>& g) {
            for (int i = 0; i < 20; ++i) g.add([&] { return counted(alive); });
            g.wait();
            CHECK(alive == 0);
        });
        with_task_group<counted>([&](task_group<counted>& g) {
            for (int i = 0; i < 20; ++i) g.add([&] { return counted(alive); });
            g.wait();
            CHECK(alive == 20);
        });
        CHECK(alive == 0);
    });
}

POOL_TEST("task_group: has not ended before its child's fiber locals have") {
    struct counted {
        ~counted() {
            yield();
            if (count != nullptr) ++*count;
        }
        std::atomic<int>* count = nullptr;
    };
    static fiber_local<counted> local;
    std::atomic<int> ended[2] = {};
    for (const bool waits : {true, false})
        spawn([&mine = ended[waits ? 1 : 0], waits, k = kind] {
            task_group_options how{.shares_locals = false};
            how.fiber.kind = k;
            with_task_group<void>(how, [&mine, waits](task_group<void>& g) {
                for (int i = 0; i < 3; ++i) g.add([&mine] { local->count = &mine; });
                if (waits) return g.wait();
                for (int i = 0; i < 3; ++i) g.next();
            });
            CHECK(mine == 3);
        });
    p.drain();
}

WEFT_TEST("inline child: what its worker keeps back runs elsewhere while the worker is busy") {
    for (int round = 0; round < 20; ++round) {
        pool p({.workers = 2});
        constexpr int children = 100;
        std::atomic<int> ran = 0;
        fiber parent(p, [&] {
            const std::thread::id busy = std::this_thread::get_id();
            with_task_group<void>({.discard = true}, [&](task_group<void>& g) {
                for (int i = 0; i < children; ++i)
                    g.add([&] {
                        ran.fetch_add(1);
                        if (std::this_thread::get_id() != busy) return;
                        while (ran.load() != children) std::this_thread::yield();
                    });
                g.wait();
            });
        });
        parent.join();
        CHECK(ran.load() == children);
    }
}

WEFT_TEST("inline child: one that never waited is cancelled with its group") {
    on_one_worker([] {
        int asked = 0;
        with_task_group<void>({.discard = true}, [&](task_group<void>& g) {
            g.add([&] {
                cancel_scope seen;
                g.cancel();
                CHECK(seen.is_cancelled());
                {
                    cancel_scope hidden(cancel_scope::shield::yes);
                    CHECK(!hidden.is_cancelled());
                }
                ++asked;
                CHECK(this_fiber::stop_requested());
                CHECK(this_fiber::stop_reason() == cancel_reason::requested);
                CHECK(!sleep_for(1h).has_value());
                ++asked;
            });
            g.wait();
        });
        CHECK(asked == 2);
        with_task_group<void>({.discard = true}, [&](task_group<void>& g) {
            g.add([&] {
                g.cancel();
                CHECK(this_fiber::get_stop_token().stop_requested());
                ++asked;
            });
            g.wait();
        });
        CHECK(asked == 3);
        with_task_group<void>({.discard = true}, [&](task_group<void>& g) {
            g.add([&] {
                const auto late = with_timeout(1h, [&] {
                    g.cancel(cancel_reason::timed_out);
                    return 1;
                });
                CHECK(!late.has_value());
                ++asked;
            });
            g.wait();
        });
        CHECK(asked == 4);
        with_task_group<void>({.discard = true}, [&](task_group<void>& g) {
            g.add([&] {
                with_task_group<void>({.discard = true}, [&](task_group<void>& inner) {
                    g.cancel();
                    inner.add([&] {
                        CHECK(this_fiber::stop_requested());
                        ++asked;
                    });
                    inner.wait();
                });
            });
            g.wait();
        });
        CHECK(asked == 5);
    });
}

WEFT_TEST("inline child: another than the parent waits for a group that keeps no results") {
    pool p({.workers = 2});
    for (long round = weft_test::stress_count(2000); round > 0; --round) {
        std::atomic<int> ran = 0;
        fiber parent(p, [&] {
            with_task_group<void>({.discard = true}, [&](task_group<void>& g) {
                for (int i = 0; i < 5; ++i) g.add([&] { ran.fetch_add(1); });
                fiber other(p, [&] {
                    g.wait();
                    CHECK(ran.load() == 5);
                });
                other.join();
                CHECK(g.size() == 0);
            });
        });
        parent.join();
    }
}
