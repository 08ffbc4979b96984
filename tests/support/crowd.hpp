// crowd.hpp - bodies that run at once: fibers on several threads, and plain threads.
//
//     CROWD_TEST("mutex: stress, two are never inside") {
//         const with_test_points points;
//         mutex m;
//         crowd(6, [&](int i) { const std::lock_guard lock(m); ... });
//     }
//
// That makes eleven tests: for each kind of stack on two loops, each on a thread of its own, and
// for each of pool_variants (pools.hpp) on a pool. Every third body is a plain thread, the others
// are fibers. What they share must not be a local of one of them. A test fails if a fiber, a stack
// or a timer is left at its end, as a POOL_TEST does.
//
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <functional>
#include <optional>
#include <thread>
#include <vector>

#include <weft/fiber/cancel.hpp>

#include "loops.hpp"
#include "pools.hpp"
#include "test_points.hpp"

namespace weft_test {

/// Cancel scopes that another thread cancels while their fibers wait in them. They lie outside of
/// all stacks, for those of swapped fibers go away.
class scope_slots {
public:
    explicit scope_slots(int count) : slots_(static_cast<std::size_t>(count)) {}

    /// A scope of the fiber that calls, until what is returned is destroyed.
    [[nodiscard]] auto enter(int slot) {
        struct leaver {
            explicit leaver(slot_state& state) : mine(state) {}
            leaver(const leaver&) = delete;
            ~leaver() {
                while (mine.offered.exchange(nullptr) == nullptr) std::this_thread::yield();
                mine.scope.reset();
            }
            slot_state& mine;
        };
        slot_state& mine = slots_[static_cast<std::size_t>(slot)];
        mine.scope.emplace();
        mine.offered = &*mine.scope;
        return leaver(mine);
    }

    /// From one other thread: cancels the scope of the next slot, if there is one.
    void cancel_one() {
        slot_state& one = slots_[turn_++ % slots_.size()];
        if (weft::cancel_scope* const scope = one.offered.exchange(nullptr)) {
            scope->cancel();
            one.offered = scope;
        }
    }

private:
    struct slot_state {
        std::optional<weft::cancel_scope> scope;
        std::atomic<weft::cancel_scope*> offered = nullptr;
    };
    std::vector<slot_state> slots_;
    std::size_t turn_ = 0;
};

/// Runs body(0) to body(count - 1) at once, and returns when all have ended.
using gathering = std::function<void(int count, const std::function<void(int)>& body)>;

class crowd_fixture {
public:
    crowd_fixture(weft::stack_kind k, const pool_variant* on) : kind(k), pool_(on) {}

    const weft::stack_kind kind;

    /// Runs body(0) to body(count - 1) at once, and returns when all have ended.
    void crowd(int count, const std::function<void(int)>& body) const {
        if (pool_ != nullptr)
            crowd_on_pool(count, body);
        else
            crowd_on_loops(count, body);
    }

    /// The same, for a function that several tests share.
    [[nodiscard]] gathering gather() const {
        return [this](int count, const std::function<void(int)>& body) { crowd(count, body); };
    }

    /// A count for stress; fewer on threads, whose switches are slow.
    [[nodiscard]] long rounds(long full) const {
        return stress_count(kind == weft::stack_kind::thread ? full / 5 : full);
    }

private:
    static void crowd_on_threads(int count, const std::function<void(int)>& body,
                                 std::vector<std::thread>& threads) {
        for (int i = 2; i < count; i += 3) threads.emplace_back([&body, i] { body(i); });
    }

    void crowd_on_loops(int count, const std::function<void(int)>& body) const {
        weft::loop loops[2];
        for (int i = 0; i < count; ++i)
            if (i % 3 != 2) weft::go(loops[i % 3], {.kind = kind}, [&body, i] { body(i); });
        std::vector<std::thread> threads;
        for (weft::loop& one : loops) threads.emplace_back([&one] { one.run(); });
        crowd_on_threads(count, body, threads);
        for (std::thread& one : threads) one.join();
        for (const weft::loop& one : loops) {
            EXPECT_EQ(one.alive(), 0U) << "a fiber is left";
            EXPECT_FALSE(one.next_deadline()) << "a timer is left";
        }
    }

    void crowd_on_pool(int count, const std::function<void(int)>& body) const {
        std::vector<std::thread> threads;
        weft::pool p({.workers = pool_->workers, .force_migrate = pool_->moved});
        for (int i = 0; i < count; ++i)
            if (i % 3 != 2) weft::go(p, {.kind = kind}, [&body, i] { body(i); });
        crowd_on_threads(count, body, threads);
        for (std::thread& one : threads) one.join();
        p.drain();
        EXPECT_EQ(p.alive(), 0U) << "a fiber is left";
    }

    const pool_variant* pool_;
};

template <class Test>
void run_crowd_test(weft::stack_kind kind, const pool_variant* on) {
    const std::size_t before = stacks_in_use();
    Test(kind, on).body();
    EXPECT_EQ(fibers_left(), "");
    EXPECT_EQ(stacks_in_use(), before) << "a stack was not given back";
}

template <class Test, weft::stack_kind Kind>
void run_crowd_on_loops() {
    run_crowd_test<Test>(Kind, nullptr);
}

template <class Test, std::size_t Variant>
void run_crowd_on_pool() {
    run_crowd_test<Test>(pool_variants[Variant].kind, &pool_variants[Variant]);
}

template <class Test>
bool add_crowd_test(std::string_view sentence, const char* file, int line) {
    using enum weft::stack_kind;
    add(sentence, "own, loops", file, line, &run_crowd_on_loops<Test, own>);
    add(sentence, "ucontext, loops", file, line, &run_crowd_on_loops<Test, ucontext>);
    add(sentence, "thread, loops", file, line, &run_crowd_on_loops<Test, thread>);
    add(sentence, "swapped, loops", file, line, &run_crowd_on_loops<Test, swapped>);
    [&]<std::size_t... I>(std::index_sequence<I...>) {
        (add(sentence, pool_variants[I].name, file, line, &run_crowd_on_pool<Test, I>), ...);
    }
    (std::make_index_sequence<std::size(pool_variants)>());
    return true;
}

/// Lets others run, fibers and threads, for the body of a crowd, which may be a plain thread.
inline void yield_or_pass() {
    if (weft::this_fiber::get_id()) weft::yield();
    std::this_thread::yield();
}

}  // namespace weft_test

#define WEFT_CROWD_TEST_AT(sentence, name)                             \
    namespace {                                                        \
    struct name : weft_test::crowd_fixture {                           \
        using crowd_fixture::crowd_fixture;                            \
        void body();                                                   \
    };                                                                 \
    }                                                                  \
    [[maybe_unused]] static const bool WEFT_TEST_NAME(name, _added) =  \
        weft_test::add_crowd_test<name>(sentence, __FILE__, __LINE__); \
    void name::body()
#define CROWD_TEST(sentence) \
    WEFT_CROWD_TEST_AT(sentence, WEFT_TEST_NAME(crowd_test_at_line_, __LINE__))
