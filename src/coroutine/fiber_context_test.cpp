// fiber_context_test.cpp - what P0876R22 says of fiber_context, and what weft adds: one test each.
//
// Long, for it goes through the proposal clause by clause, in its order: one place to hold the two
// against each other.
//
// SPDX-License-Identifier: Apache-2.0
#include <weft/coroutine/fiber_context.hpp>

#include <malloc.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <memory>
#include <semaphore>
#include <span>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <weft/base/thread_block.hpp>
#include <weft/coroutine/coroutine.hpp>
#include <weft/stack/stack_depot.hpp>

#include "weft_test.hpp"

namespace {

using weft::fiber_context;

static_assert(sizeof(fiber_context) == sizeof(void*));
static_assert(!std::is_copy_constructible_v<fiber_context>);
static_assert(!std::is_copy_assignable_v<fiber_context>);
static_assert(std::is_nothrow_move_constructible_v<fiber_context>);
static_assert(std::is_nothrow_move_assignable_v<fiber_context>);
static_assert(std::is_nothrow_swappable_v<fiber_context>);
static_assert(!std::is_convertible_v<fiber_context (*)(fiber_context&&), fiber_context>);
static_assert(!std::is_convertible_v<fiber_context, bool>);

std::span<std::byte> memory_of(std::vector<std::byte>& bytes) { return bytes; }

std::vector<std::byte> stack_memory() { return std::vector<std::byte>(256 * 1024); }

bool lies_in(const void* address, std::span<const std::byte> memory) {
    const auto* byte = static_cast<const std::byte*>(address);
    return byte >= memory.data() && byte < memory.data() + memory.size();
}

// Where the caller stands; the address of a local could be in one of ASan's fake frames.
const void* here() { return __builtin_frame_address(0); }

// Looked up anew at each call: std::this_thread::get_id() may be kept over a switch.
[[gnu::noinline]] std::thread::id this_thread_id() {
    asm volatile("");
    return std::this_thread::get_id();
}

fiber_context end_at_once(fiber_context&& resumer) { return std::move(resumer); }

// TSan cannot follow threads in a forked child; an emulator cannot start a program anew.
void die_in_a_process_of_its_own() {
    if (WEFT_TSAN) GTEST_FLAG_SET(death_test_style, "threadsafe");
}

// Fibers that resume each other and keep no one's fiber_context but their own.
struct filament {
    fiber_context waiting;

    void go_to(filament& other) {
        static_cast<void>(std::move(other.waiting).resume_with([this](fiber_context&& self) {
            waiting = std::move(self);
            return fiber_context();
        }));
    }
};

}  // namespace

WEFT_TEST("fiber_context: one is empty when default-made, moved from or resumed") {
    fiber_context a;
    CHECK(a.empty());
    CHECK(!a);
    CHECK(!a.can_resume());

    fiber_context b(end_at_once);
    CHECK(!b.empty());
    CHECK(static_cast<bool>(b));
    a = std::move(b);
    CHECK(b.empty());
    CHECK(a.can_resume());
    swap(a, b);
    CHECK(a.empty());
    b.swap(a);
    CHECK(b.empty());

    bool empty_meanwhile = false;
    fiber_context c([&](fiber_context&& resumer) {
        empty_meanwhile = c.empty();
        return std::move(resumer);
    });
    CHECK(std::move(c).resume().empty());
    CHECK(empty_meanwhile);
    CHECK(std::move(a).resume().empty());
}

WEFT_TEST("fiber_context: a fiber starts at its first resume and takes turns with its resumer") {
    std::string order;
    fiber_context f([&](fiber_context&& main) {
        order += "b";
        main = std::move(main).resume();
        order += "d";
        main = std::move(main).resume();
        order += "f";
        return std::move(main);
    });
    order += "a";
    f = std::move(f).resume();
    CHECK(!f.empty());
    order += "c";
    f = std::move(f).resume();
    CHECK(!f.empty());
    order += "e";
    f = std::move(f).resume();
    CHECK(f.empty());
    CHECK(order == "abcdef");
}

WEFT_TEST("fiber_context: locals on both sides survive the switch") {
    long sum = 0;
    fiber_context f([&](fiber_context&& main) {
        for (long i = 0; i < 1000; ++i) {
            const long squared = i * i;
            main = std::move(main).resume();
            sum += squared;
        }
        return std::move(main);
    });
    long turns = 0;
    while (f) {
        f = std::move(f).resume();
        ++turns;
    }
    CHECK(turns == 1001);
    CHECK(sum == 332'833'500);
}

WEFT_TEST("fiber_context: a ring of fibers passes control round without a scheduler") {
    constexpr int laps = 100;
    std::array<filament, 10> ring;
    filament main;
    std::string order;
    for (std::size_t i = 0; i < ring.size(); ++i)
        ring[i].waiting = fiber_context([&, i](fiber_context&&) {
            for (int lap = 0; lap < laps; ++lap) {
                order += static_cast<char>('0' + i);
                if (lap + 1 < laps || i + 1 < ring.size()) ring[i].go_to(ring[(i + 1) % 10]);
            }
            // The last one ends first; it, and each after it, goes on with the one before.
            return std::move(i > 0 ? ring[i - 1].waiting : main.waiting);
        });
    main.go_to(ring[0]);

    std::string expected;
    for (int lap = 0; lap < laps; ++lap) expected += "0123456789";
    CHECK(order == expected);
    for (const filament& one : ring) CHECK(one.waiting.empty());
}

WEFT_TEST("fiber_context: one that ends goes on with the fiber it returns, who gets an empty one") {
    std::string order;
    fiber_context main;
    fiber_context a([&](fiber_context&& resumer) {
        order += "a";
        CHECK(std::move(resumer).resume().empty());
        order += "c";
        return std::move(main);
    });
    a = std::move(a).resume();
    fiber_context b([&](fiber_context&& resumer) {
        order += "b";
        main = std::move(resumer);
        return std::move(a);
    });
    CHECK(std::move(b).resume().empty());
    CHECK(order == "abc");
}

WEFT_TEST("fiber_context: one that ends may go on with a fiber that never ran") {
    std::string order;
    fiber_context main;
    fiber_context b([&](fiber_context&& resumer) {
        CHECK(resumer.empty());
        order += "b";
        return std::move(main);
    });
    fiber_context a([&](fiber_context&& resumer) {
        order += "a";
        main = std::move(resumer);
        return std::move(b);
    });
    CHECK(std::move(a).resume().empty());
    CHECK(order == "ab");
}

WEFT_TEST("fiber_context: resume_with calls its function on the stack of the other fiber") {
    std::vector<std::byte> bytes = stack_memory();
    bool returned_empty = false;
    fiber_context main;
    fiber_context f(
        [&](fiber_context&& resumer) {
            returned_empty = std::move(resumer).resume().empty();
            return std::move(main);
        },
        memory_of(bytes), [](std::span<std::byte>) {});
    f = std::move(f).resume();
    const void* where = nullptr;
    CHECK(!lies_in(here(), bytes));
    f = std::move(f).resume_with([&](fiber_context&& self) {
        where = here();
        main = std::move(self);
        return fiber_context();
    });
    CHECK(lies_in(where, bytes));
    CHECK(returned_empty);
    CHECK(f.empty());
}

WEFT_TEST("fiber_context: resume returns what the function given to resume_with returned") {
    fiber_context main;
    fiber_context third(end_at_once);
    bool got_third = false;
    fiber_context f([&](fiber_context&& resumer) {
        fiber_context got = std::move(resumer).resume();
        got_third =
            std::move(got).resume_with([](fiber_context&& f) { return std::move(f); }).empty();
        return std::move(main);
    });
    f = std::move(f).resume();
    f = std::move(f).resume_with([&](fiber_context&& self) {
        main = std::move(self);
        return std::move(third);
    });
    CHECK(got_third);
    CHECK(f.empty());
}

WEFT_TEST("fiber_context: resume_with on a fiber that never ran feeds its entry function") {
    fiber_context main;
    std::string order;
    fiber_context f([&](fiber_context&& given) {
        CHECK(given.empty());
        order += "entry";
        return std::move(main);
    });
    struct {
        fiber_context& main;
        std::string& order;
        std::unique_ptr<int> move_only = std::make_unique<int>(1);
        fiber_context operator()(fiber_context&& self) && {
            order += "injected ";
            main = std::move(self);
            return {};
        }
    } once{main, order};
    CHECK(std::move(f).resume_with(std::move(once)).empty());
    CHECK(order == "injected entry");
}

WEFT_TEST("fiber_context: what a function given to resume_with throws comes out of resume") {
    fiber_context main;
    std::string caught;
    fiber_context f([&](fiber_context&& resumer) {
        try {
            static_cast<void>(std::move(resumer).resume());
        } catch (const std::runtime_error& error) { caught = error.what(); }
        return std::move(main);
    });
    f = std::move(f).resume();
    f = std::move(f).resume_with([&](fiber_context&& self) -> fiber_context {
        main = std::move(self);
        throw std::runtime_error("stop");
    });
    CHECK(f.empty());
    CHECK(caught == "stop");
}

WEFT_TEST("fiber_context: each fiber handles its own exception, whoever handles one meanwhile") {
    std::string seen;
    auto rethrow_after_a_switch = [&seen](const char* text) {
        return fiber_context([&seen, text](fiber_context&& main) {
            try {
                try {
                    throw std::runtime_error(text);
                } catch (...) {
                    main = std::move(main).resume();
                    CHECK(std::uncaught_exceptions() == 0);
                    throw;
                }
            } catch (const std::runtime_error& error) { seen += error.what(); }
            return std::move(main);
        });
    };
    fiber_context a = rethrow_after_a_switch("a");
    fiber_context b = rethrow_after_a_switch("b");
    try {
        throw std::runtime_error("c");
    } catch (const std::runtime_error& error) {
        a = std::move(a).resume();
        b = std::move(b).resume();
        a = std::move(a).resume();
        b = std::move(b).resume();
        seen += error.what();
        CHECK(std::current_exception() != nullptr);
    }
    CHECK(seen == "abc");
    CHECK(std::current_exception() == nullptr);
}

WEFT_TEST("fiber_context: a destructor may switch while an exception unwinds its fiber") {
    std::vector<int> counts;
    struct switches {
        fiber_context& other;
        std::vector<int>& counts;
        ~switches() {
            counts.push_back(std::uncaught_exceptions());
            other = std::move(other).resume();
            counts.push_back(std::uncaught_exceptions());
        }
    };
    fiber_context f([&](fiber_context&& main) {
        counts.push_back(std::uncaught_exceptions());
        main = std::move(main).resume();
        return std::move(main);
    });
    try {
        const switches unwound{f, counts};
        throw 1;
    } catch (int) { counts.push_back(std::uncaught_exceptions()); }
    CHECK(std::move(f).resume().empty());
    CHECK((counts == std::vector<int>{1, 0, 1, 0}));
}

WEFT_TEST("fiber_context: the deleter is called once, with the span, by the fiber that goes on") {
    std::vector<std::byte> bytes = stack_memory();
    const std::span<std::byte> stack = memory_of(bytes).subspan(1);  // aligned to nothing
    std::string order;
    struct on_exit {
        std::string* order;
        explicit on_exit(std::string& o) : order(&o) {}
        on_exit(on_exit&& other) noexcept : order(std::exchange(other.order, nullptr)) {}
        ~on_exit() {
            if (order != nullptr) *order += "entry destroyed, ";
        }
    };
    fiber_context f(
        [&, destroyed = on_exit(order), text = std::make_unique<int>(7)](fiber_context&& main) {
            order += "entered, ";
            CHECK(lies_in(here(), stack));
            CHECK(*text == 7);
            main = std::move(main).resume();
            order += "left, ";
            return std::move(main);
        },
        stack,
        [&, text = std::make_unique<int>(8)](std::span<std::byte> given) {
            order += "deleted, ";
            CHECK(*text == 8);
            CHECK(given.data() == stack.data());
            CHECK(given.size() == stack.size());
            CHECK(!lies_in(here(), stack));
            std::ranges::fill(given, std::byte{0xff});  // nothing of the fiber is needed any more
        });
    f = std::move(f).resume();
    f = std::move(f).resume();
    order += "back";
    CHECK(f.empty());
    CHECK(order == "entered, left, entry destroyed, deleted, back");
}

WEFT_TEST("fiber_context: memory is plain memory again, and good for the next fiber") {
    alignas(64) static std::array<std::byte, 128 * 1024> memory;
    int deleted = 0;
    for (int i = 0; i < 3; ++i) {
        fiber_context f(
            [&](fiber_context&& main) {
                std::array<char, 1000> local{};
                try {
                    local[static_cast<std::size_t>(i)] = 1;
                    main = std::move(main).resume();
                    throw local[static_cast<std::size_t>(i)];
                } catch (char) {}
                return std::move(main);
            },
            memory, [&](std::span<std::byte>) { ++deleted; });
        while (f) f = std::move(f).resume();
        for (std::byte& byte : memory) byte = std::byte{0xff};
    }
    CHECK(deleted == 3);
}

#if !WEFT_ASAN && !WEFT_TSAN
WEFT_TEST("fiber_context: on a span it takes nothing from the heap") {
    static std::array<std::byte, 64 * 1024> memory;
    CHECK(std::move(fiber_context(end_at_once)).resume().empty());  // what a thread needs once
    const std::size_t before = ::mallinfo2().uordblks;
    fiber_context f(
        [](fiber_context&& main) {
            main = std::move(main).resume();
            return std::move(main);
        },
        memory, [](std::span<std::byte>) {});
    const std::size_t made = ::mallinfo2().uordblks;
    f = std::move(f).resume();
    const std::size_t resumed = ::mallinfo2().uordblks;
    f = std::move(f).resume();
    CHECK(made == before);
    CHECK(resumed == before);
    CHECK(::mallinfo2().uordblks == before);
}
#endif

WEFT_TEST("fiber_context: on memory of one's own, without a deleter") {
    alignas(16) static std::array<std::byte, 65536> memory;
    bool ran = false;
    fiber_context f(
        [&](fiber_context&& main) {
            ran = true;
            return std::move(main);
        },
        std::span(memory));
    CHECK(std::move(f).resume().empty());
    CHECK(ran);
}

WEFT_TEST("fiber_context: a stack too small is a length_error, and stays with its owner") {
    int deleted = 0;
    std::array<std::byte, 4096> small;
    auto make = [&](std::span<std::byte> stack) {
        return fiber_context(end_at_once, stack, [&](std::span<std::byte>) { ++deleted; });
    };
    EXPECT_THROW(static_cast<void>(make(small)), std::length_error);
    EXPECT_THROW(static_cast<void>(make({})), std::length_error);
    CHECK(deleted == 0);
}

WEFT_TEST("fiber_context: an entry function that cannot be copied leaves nothing behind") {
    struct stubborn {
        stubborn() = default;
        stubborn(const stubborn&) { throw std::runtime_error("no"); }
        fiber_context operator()(fiber_context&& main) { return std::move(main); }
    };
    const stubborn entry;
    int deleted = 0;
    std::vector<std::byte> bytes = stack_memory();
    const std::size_t live = weft::shared_stack_depot().counters().live;
    EXPECT_THROW(fiber_context{entry}, std::runtime_error);
    EXPECT_THROW(fiber_context(entry, memory_of(bytes), [&](std::span<std::byte>) { ++deleted; }),
                 std::runtime_error);
    CHECK(deleted == 0);
    CHECK(weft::shared_stack_depot().counters().live == live);
}

WEFT_TEST("fiber_context: a callable may be large, strictly aligned, or a plain function") {
    const std::size_t live = weft::shared_stack_depot().counters().live;
    struct alignas(256) aligned {
        bool& right;
        fiber_context operator()(fiber_context&& main) const {
            right = reinterpret_cast<std::uintptr_t>(this) % 256 == 0;
            return std::move(main);
        }
    };
    bool right = false;
    CHECK(std::move(fiber_context(aligned{right})).resume().empty());
    CHECK(right);
    std::vector<std::byte> bytes = stack_memory();
    for (const std::size_t offset : {1UL, 8UL, 16UL, 100UL}) {
        right = false;
        const std::span<std::byte> odd = memory_of(bytes).first(bytes.size() - offset);
        fiber_context f(aligned{right}, odd, [](std::span<std::byte>) {});
        CHECK(std::move(f).resume().empty());
        CHECK(right);
    }

    std::array<char, 200'000> large{};
    large.back() = 'x';
    char last = ' ';
    fiber_context f([&last, large](fiber_context&& main) {
        last = large.back();
        return std::move(main);
    });
    CHECK(weft::shared_stack_depot().counters().live == live + 1);
    CHECK(std::move(f).resume().empty());
    CHECK(last == 'x');
    CHECK(std::move(fiber_context(end_at_once)).resume().empty());
    CHECK(std::move(fiber_context(&end_at_once)).resume().empty());
    CHECK(weft::shared_stack_depot().counters().live == live);
}

WEFT_TEST("fiber_context: fibers and coroutines may stand on each other's stacks") {
    std::string order;
    fiber_context f([&](fiber_context&& resumer) {
        weft::coroutine inside([&] {
            order += "b";
            resumer = std::move(resumer).resume();
            order += "d";
            weft::this_coroutine::yield();
            order += "f";
        });
        inside.resume();
        order += "e";
        inside.resume();
        return std::move(resumer);
    });
    order += "a";
    f = std::move(f).resume();
    CHECK(weft::detail::this_thread_block().running == nullptr);
    order += "c";
    weft::coroutine outside([&] {
        f = std::move(f).resume();
        order += "g";
        weft::this_coroutine::yield();
        order += "i";
    });
    outside.resume();
    order += "h";
    outside.resume();
    CHECK(order == "abcdefghi");
    CHECK(f.empty());
    CHECK(outside.done());
}

WEFT_TEST("fiber_context: can_resume says on which thread a fiber is at home") {
    fiber_context f([](fiber_context&& resumer) {
        resumer = std::move(resumer).resume();
        return std::move(resumer);
    });
    CHECK(f.can_resume());
    std::thread first([&] {
        CHECK(f.can_resume());  // nobody has entered it
        f = std::move(f).resume();
        CHECK(f.can_resume());
        std::thread second([&] { CHECK(!f.can_resume()); });
        second.join();
        CHECK(std::move(f).resume().empty());
    });
    first.join();
    CHECK(!f.can_resume());
}

WEFT_TEST("fiber_context: a fiber moves between threads, an exception in hand") {
    std::vector<std::thread::id> ran_on;
    std::string caught;
    fiber_context f([&](fiber_context&& resumer) {
        try {
            try {
                ran_on.push_back(this_thread_id());
                throw std::runtime_error("carried");
            } catch (...) {
                resumer = std::move(resumer).resume();
                ran_on.push_back(this_thread_id());
                throw;
            }
        } catch (const std::runtime_error& error) { caught = error.what(); }
        resumer = std::move(resumer).resume();
        ran_on.push_back(this_thread_id());
        return std::move(resumer);
    });
    const std::thread::id here = this_thread_id();
    f = std::move(f).resume();
    std::thread::id there;
    std::thread other([&] {
        there = this_thread_id();
        CHECK(std::current_exception() == nullptr);
        f = std::move(f).resume();
        CHECK(std::current_exception() == nullptr);
    });
    other.join();
    CHECK(caught == "carried");
    CHECK(std::move(f).resume().empty());
    CHECK((ran_on == std::vector{here, there, here}));
}

WEFT_TEST("fiber_context: stress: two threads take turns with one fiber") {
    const long count = weft_test::stress_count(1'000'000);
    long sum = 0;
    fiber_context f([&](fiber_context&& resumer) {
        for (long i = 0; i < count; ++i) {
            sum += i;
            resumer = std::move(resumer).resume();
        }
        return std::move(resumer);
    });
    std::array<std::binary_semaphore, 2> turn{std::binary_semaphore(1), std::binary_semaphore(0)};
    auto resume_in_turn = [&](std::size_t mine) {
        for (bool more = true; more;) {
            turn[mine].acquire();
            if (f) f = std::move(f).resume();
            more = !f.empty();
            turn[1 - mine].release();
        }
    };
    std::thread other(resume_in_turn, 1);
    resume_in_turn(0);
    other.join();
    CHECK(sum == count * (count - 1) / 2);
}

WEFT_TEST("fiber_context: the stack of a thread is a fiber that no other thread can resume") {
    fiber_context f([](fiber_context&& main) {
        CHECK(main.can_resume());
        std::thread([&] { CHECK(!main.can_resume()); }).join();
        return std::move(main);
    });
    CHECK(std::move(f).resume().empty());
}

WEFT_TEST("fiber_context: stress: fibers come and go, their stacks are used again") {
    const long count = weft_test::stress_count(5'000'000);
    const std::size_t live = weft::shared_stack_depot().counters().live;
    long ended = 0;
    for (long i = 0; i < count; ++i) {
        fiber_context f([&](fiber_context&& main) {
            main = std::move(main).resume();
            ++ended;
            return std::move(main);
        });
        f = std::move(f).resume();
        static_cast<void>(std::move(f).resume());
    }
    CHECK(ended == count);
    CHECK(weft::shared_stack_depot().counters().live == live);
}

#if !WEFT_ASAN && !WEFT_TSAN
WEFT_TEST("fiber_context: an overflow of its stack is reported") {
    die_in_a_process_of_its_own();
    struct recursion {
        static long go(long depth) {
            volatile char frame[512] = {};
            frame[depth % 512] = 1;
            return depth < 0 ? 0 : go(depth + 1) + frame[depth % 512];
        }
    };
    auto overflow = [] {
        fiber_context f([](fiber_context&& main) {
            std::printf("%ld\n", recursion::go(0));
            return std::move(main);
        });
        static_cast<void>(std::move(f).resume());
    };
    EXPECT_DEATH(overflow(), "weft: stack overflow in fiber_context: address");
}
#endif

WEFT_TEST("fiber_context: a coroutine's yield on its stack aborts by name") {
    die_in_a_process_of_its_own();
    auto yield_in_a_fiber = [] {
        fiber_context f([](fiber_context&& main) {
            weft::this_coroutine::yield();
            return std::move(main);
        });
        static_cast<void>(std::move(f).resume());
    };
    EXPECT_DEATH(yield_in_a_fiber(), "weft: this_coroutine::yield: called in a fiber_context");
}

WEFT_TEST("fiber_context: resuming an empty one aborts by name") {
    die_in_a_process_of_its_own();
    const char* line = "weft: fiber_context: resumed an empty one";
    EXPECT_DEATH(static_cast<void>(fiber_context().resume()), line);
    EXPECT_DEATH(static_cast<void>(fiber_context().resume_with(end_at_once)), line);
}

WEFT_TEST("fiber_context: an entry function that returns an empty one terminates by name") {
    die_in_a_process_of_its_own();
    auto end_nowhere = [] {
        fiber_context main;
        fiber_context f([&](fiber_context&& resumer) {
            main = std::move(resumer);
            return fiber_context();
        });
        static_cast<void>(std::move(f).resume());
    };
    EXPECT_DEATH(end_nowhere(), "weft: fiber_context: an entry function returned an empty one");
}

WEFT_TEST("fiber_context: an exception that leaves an entry function terminates") {
    die_in_a_process_of_its_own();
    auto throw_out = [] {
        std::set_terminate([] {
            try {
                std::rethrow_exception(std::current_exception());
            } catch (const std::runtime_error& error) {
                std::fprintf(stderr, "terminated by: %s\n", error.what());
            }
            std::abort();
        });
        fiber_context f([](fiber_context&&) -> fiber_context {
            throw std::runtime_error("nobody catches this");
        });
        try {
            static_cast<void>(std::move(f).resume());
        } catch (...) {  // the resumer is another fiber: it does not see it
        }
    };
    EXPECT_DEATH(throw_out(), "terminated by: nobody catches this");
}

WEFT_TEST("fiber_context: destroying or overwriting one that is not empty terminates by name") {
    die_in_a_process_of_its_own();
    const char* line = "weft: fiber_context: destroyed or assigned to while it held a fiber";
    EXPECT_DEATH(fiber_context{end_at_once}, line);
    auto drop_a_suspended_one = [] {
        fiber_context f([](fiber_context&& main) {
            main = std::move(main).resume();
            return std::move(main);
        });
        static_cast<void>(std::move(f).resume());
    };
    EXPECT_DEATH(drop_a_suspended_one(), line);
    auto overwrite = [] {
        fiber_context f(end_at_once);
        f = fiber_context();
    };
    EXPECT_DEATH(overwrite(), line);
    auto forget_the_resumer = [] {
        fiber_context other(end_at_once);
        fiber_context f([&](fiber_context&&) { return std::move(other); });
        static_cast<void>(std::move(f).resume());
    };
    EXPECT_DEATH(forget_the_resumer(), line);
    auto run_a_handler = [] {
        std::set_terminate([] {
            std::fprintf(stderr, "the handler ran\n");
            std::abort();
        });
        fiber_context f(end_at_once);
    };
    EXPECT_DEATH(run_a_handler(), "held a fiber\nthe handler ran");
}

WEFT_TEST("fiber_context: resuming the own stack of another thread aborts by name") {
    die_in_a_process_of_its_own();
    const char* line = "weft: fiber_context: a thread's own stack resumed by another thread";
    auto resume_main_elsewhere = [] {
        fiber_context f([](fiber_context&& main) {
            std::thread([&] { static_cast<void>(std::move(main).resume()); }).join();
            return std::move(main);
        });
        static_cast<void>(std::move(f).resume());
    };
    EXPECT_DEATH(resume_main_elsewhere(), line);
    auto end_into_another_thread = [] {
        fiber_context f([](fiber_context&& main) {
            fiber_context g([&](fiber_context&& resumer) {
                static fiber_context kept = std::move(resumer);
                return std::move(main);
            });
            std::thread([&] { static_cast<void>(std::move(g).resume()); }).join();
            return std::move(main);
        });
        static_cast<void>(std::move(f).resume());
    };
    EXPECT_DEATH(end_into_another_thread(), line);
}
