// signal_test.cpp - a signal may arrive at any moment of a switch, and its handler may walk the
// stack.
//
// As a profiler does, with SIGPROF, and as nothing does: after every single instruction.
//
// SPDX-License-Identifier: Apache-2.0
#include <weft/context/context.hpp>
#include <weft/context/swap_in_frame.hpp>

#include <execinfo.h>
#include <sys/time.h>

#include <cerrno>
#include <csignal>
#include <cstdint>
#include <cstring>
#include <type_traits>

#include "context/switch.hpp"
#include "context_support.hpp"

using namespace weft_test;

namespace {

constexpr int most_frames = 64;

// What the handler has seen.
volatile std::sig_atomic_t walks = 0;
volatile std::sig_atomic_t longest_walk = 0;

void walk_the_stack(int) {
    const int saved_errno = errno;
    void* addresses[most_frames];
    const int frames = ::backtrace(addresses, most_frames);
    walks = walks + 1;
    if (frames > longest_walk) longest_walk = frames;
    errno = saved_errno;
}

// Walks the stack at every signal of this kind, while it lives.
class walk_at_signal {
public:
    explicit walk_at_signal(int signal) : signal_(signal) {
        void* address;
        ::backtrace(&address, 1);  // loads libgcc, which a handler may not
        walks = 0;
        longest_walk = 0;
        struct sigaction action {};
        action.sa_handler = &walk_the_stack;
        action.sa_flags = SA_RESTART;
        ::sigaction(signal_, &action, &before_);
    }
    walk_at_signal(const walk_at_signal&) = delete;
    walk_at_signal& operator=(const walk_at_signal&) = delete;
    ~walk_at_signal() { ::sigaction(signal_, &before_, nullptr); }

private:
    int signal_;
    struct sigaction before_ {};
};

void set_profiling_timer(int microseconds) {
    const itimerval every{{0, microseconds}, {0, microseconds}};
    ::setitimer(ITIMER_PROF, &every, nullptr);
}

// TSan puts signals by until the thread calls a function that it intercepts. This is one.
void let_signals_in() {
#if WEFT_TSAN
    static std::size_t (*volatile function)(const char*) = &std::strlen;
    static_cast<void>(function(""));
#endif
}

// A sequence that shows if a switch lost or repeated anything.
struct sequence {
    std::uint64_t whole = 1;
    double fraction = 1;

    void advance() {
        whole = whole * 6364136223846793005U + 1442695040888963407U;
        fraction = fraction * 0.75 + static_cast<double>(whole >> 40);
    }
    bool operator==(const sequence&) const = default;
};

}  // namespace

CONTEXT_TEST("signals: a profiler's SIGPROF walks the stack during stress on the switch") {
    const long steps = stress_count(5'000'000);
    const std::sig_atomic_t enough_walks = 20;
    sequence first;
    sequence second;
    bool stop = false;
    const auto advance = [&stop](sequence& mine) {
        return [&stop, &mine](auto& me) {
            sequence local;
            while (!stop) {
                local.advance();
                let_signals_in();
                me.pause();
            }
            mine = local;
        };
    };
    stepper<Context> one(advance(first));
    stepper<Context> two(advance(second));
    sequence expected;

    const walk_at_signal handler(SIGPROF);
    set_profiling_timer(1000);
    for (long step = 0; step < steps || walks < enough_walks; ++step) {
        expected.advance();
        one.step();
        two.step();
        let_signals_in();
    }
    set_profiling_timer(0);
    stop = true;
    one.step();
    two.step();
    CHECK(first == expected);
    CHECK(second == expected);
    CHECK(longest_walk < most_frames);
}

// Without sanitizers: they would have hundreds of instructions of their own at each switch.
#if defined(__x86_64__) && !WEFT_ASAN && !WEFT_TSAN

// The processor traps after each instruction while its flag 0x100 is set. Functions of their own,
// whose frames are described at each of their instructions: they are walked, too. Global, for with
// g++ link-time optimisation puts the asm into another object than those who call.
asm(R"(
    .text
    .globl weft_test_trap_each_instruction
    .globl weft_test_trap_no_more
    .p2align 4
weft_test_trap_each_instruction:
    .cfi_startproc
    endbr64
    pushfq
    .cfi_adjust_cfa_offset 8
    orq $0x100, (%rsp)
    popfq
    .cfi_adjust_cfa_offset -8
    ret
    .cfi_endproc
    .p2align 4
weft_test_trap_no_more:
    .cfi_startproc
    endbr64
    pushfq
    .cfi_adjust_cfa_offset 8
    andq $~0x100, (%rsp)
    popfq
    .cfi_adjust_cfa_offset -8
    ret
    .cfi_endproc
)");

extern "C" {
void weft_test_trap_each_instruction();
void weft_test_trap_no_more();
}

CONTEXT_TEST("signals: the stack can be walked after every single instruction of every switch") {
    const auto switch_often = [](int& count, bool trap) {
        stepper<Context> inner([&count](auto& me) {
            ++count;
            me.pause();
            ++count;
        });
        stepper<Context> outer([&](auto& me) {
            inner.step();
            me.pause();
            weft_test_trap_no_more();  // the unwinder itself cannot be walked everywhere
            try {
                throw 1;
            } catch (int) {
                if (trap) weft_test_trap_each_instruction();
                inner.step();
                me.pause();
            }
        });
        if (trap) weft_test_trap_each_instruction();
        while (!outer.done()) outer.step();
        weft_test_trap_no_more();
    };
    int count = 0;
    switch_often(count, false);  // so that all symbols are bound
    const walk_at_signal handler(SIGTRAP);
    switch_often(count, true);
    CHECK(count == 4);
    CHECK(walks > 200);
    CHECK(longest_walk < most_frames);
}

namespace {

using weft::detail::framed_context;

[[gnu::noinline]] void swap_in_its_frame(framed_context& from, framed_context& to) {
    static_cast<void>(weft::detail::swap_in_frame(&from, &to));
}

}  // namespace

WEFT_TEST("signals: the same for a switch in the frame of who waits") {
    const auto switch_often = [](int& count, bool trap) {
        stepper<framed_context> body([&count](auto& me) {
            for (int i = 0; i < 3; ++i) {
                ++count;
                swap_in_its_frame(me.inside(), me.outside());
            }
        });
        if (trap) weft_test_trap_each_instruction();
        for (int i = 0; i < 3; ++i) swap_in_its_frame(body.outside(), body.inside());
        weft_test_trap_no_more();
        body.step();
    };
    int count = 0;
    switch_often(count, false);
    const walk_at_signal handler(SIGTRAP);
    switch_often(count, true);
    CHECK(count == 6);
    CHECK(walks > 100);
    CHECK(longest_walk < most_frames);
}

#endif

CONTEXT_TEST("signals: the mask belongs to the thread, but a portable context keeps its own") {
    const auto blocked = [] {
        sigset_t mask;
        ::pthread_sigmask(SIG_SETMASK, nullptr, &mask);
        return ::sigismember(&mask, SIGUSR2) == 1;
    };
    const auto block = [](int how) {
        sigset_t mask;
        ::sigemptyset(&mask);
        ::sigaddset(&mask, SIGUSR2);
        ::pthread_sigmask(how, &mask, nullptr);
    };
    const bool own = std::is_same_v<Context, weft::portable_context>;
    bool seen = false;
    stepper<Context> body([&](auto& me) {
        block(SIG_BLOCK);
        me.pause();
        seen = blocked();
    });
    REQUIRE(!blocked());
    body.step();
    CHECK(blocked() == !own);
    block(SIG_UNBLOCK);
    body.step();
    CHECK(seen == own);
    CHECK(!blocked());
}
