// signal_test.cpp - a profiler's signal may arrive at any moment of a switch, a copy or a
// hand-over.
//
// SIGPROF comes a thousand times a second of processor time, and its handler walks the stack. The
// same for the bare switch is in src/context.
//
// SPDX-License-Identifier: Apache-2.0
#include <weft/coroutine/coroutine.hpp>

#include <execinfo.h>
#include <link.h>
#include <sys/time.h>
#include <ucontext.h>
#include <unwind.h>

#include <atomic>
#include <cerrno>
#include <csignal>
#include <cstdint>
#include <vector>

#include "backends.hpp"
#include "exception_support.hpp"
#include "swapped_support.hpp"

using namespace weft_test;
using weft::this_coroutine::yield;

namespace {

constexpr int most_frames = 100;
constexpr int enough_walks = 20;

// What the handler has seen, in whatever thread it ran.
std::atomic<int> walks = 0;
std::atomic<int> longest_walk = 0;
static_assert(std::atomic<int>::is_always_lock_free);

// Code that is not ours and cannot be walked at each of its instructions: libgcc where it installs
// the context of a landing pad, glibc where it does that of a ucontext.
struct unwalkable {
    std::uintptr_t unwinder_low = 0;
    std::uintptr_t unwinder_high = 0;

    void find() {
        ::dl_iterate_phdr(
            [](dl_phdr_info* object, std::size_t, void* found) {
                const auto within = reinterpret_cast<std::uintptr_t>(&::_Unwind_Backtrace);
                for (int i = 0; i < object->dlpi_phnum; ++i) {
                    const auto& segment = object->dlpi_phdr[i];
                    const std::uintptr_t low = object->dlpi_addr + segment.p_vaddr;
                    if (segment.p_type != PT_LOAD || within < low ||
                        within >= low + segment.p_memsz)
                        continue;
                    // In a static build that is the whole program, and then all is walked.
                    if (object->dlpi_name[0] == '\0') return 1;
                    static_cast<unwalkable*>(found)->unwinder_low = low;
                    static_cast<unwalkable*>(found)->unwinder_high = low + segment.p_memsz;
                    return 1;
                }
                return 0;
            },
            this);
    }
    [[nodiscard]] bool holds(std::uintptr_t at) const {
        const auto near = [at](auto* function) {
            const auto low = reinterpret_cast<std::uintptr_t>(function);
            return at >= low && at < low + 1024;
        };
        return (at >= unwinder_low && at < unwinder_high) || near(&::swapcontext) ||
               near(&::setcontext) || near(&::makecontext);
    }
};
unwalkable others_code;

std::uintptr_t interrupted_at(const void* context) {
    const auto& registers = static_cast<const ucontext_t*>(context)->uc_mcontext;
#if defined(__x86_64__)
    return static_cast<std::uintptr_t>(registers.gregs[REG_RIP]);
#else
    return registers.pc;
#endif
}

void walk_the_stack(int, siginfo_t*, void* context) {
    if (others_code.holds(interrupted_at(context))) return;
    const int saved_errno = errno;
    void* addresses[most_frames];
    const int frames = ::backtrace(addresses, most_frames);
    walks.fetch_add(1, std::memory_order_relaxed);
    if (frames > longest_walk.load(std::memory_order_relaxed))
        longest_walk.store(frames, std::memory_order_relaxed);
    errno = saved_errno;
}

// While it lives, every millisecond of processor time is a signal.
class profiled {
public:
    profiled() {
        void* address;
        ::backtrace(&address, 1);  // loads libgcc, which a handler may not
        walks = 0;
        longest_walk = 0;
        struct sigaction action {};
        others_code.find();
        action.sa_sigaction = &walk_the_stack;
        action.sa_flags = SA_RESTART | SA_SIGINFO;
        ::sigaction(SIGPROF, &action, nullptr);
        set_timer(1000);
    }
    profiled(const profiled&) = delete;
    profiled& operator=(const profiled&) = delete;
    // The action stays: a last signal may be on its way.
    ~profiled() { set_timer(0); }

    /// Bounded by count, and until the signals have had their chance.
    [[nodiscard]] bool goes_on(long step, long steps) const {
        return step < steps || walks.load(std::memory_order_relaxed) < enough_walks;
    }

private:
    static void set_timer(int microseconds) {
        const itimerval every{{0, microseconds}, {0, microseconds}};
        ::setitimer(ITIMER_PROF, &every, nullptr);
    }
};

// A sequence that shows if anything was lost or repeated.
std::uint64_t next(std::uint64_t x) { return x * 6364136223846793005U + 1442695040888963407U; }

// Yields from a depth that changes, so that stacks of many sizes are left, copied and walked.
[[gnu::noinline]] std::uint64_t advance_at_depth(unsigned depth, std::uint64_t x) {
    if (depth == 0) {
        yield();
        return next(x);
    }
    volatile std::uint64_t kept = x;
    const std::uint64_t result = advance_at_depth(depth - 1, x);
    return kept == x ? result : 0;
}

}  // namespace

BACKEND_TEST("signals: SIGPROF walks the stack during stress on resume and yield") {
    const long steps = stress_count(is_thread<Coroutine> ? 100'000 : 1'000'000);
    bool stop = false;
    std::vector<std::uint64_t> results(4);
    std::vector<Coroutine> all;
    for (std::uint64_t& result : results) {
        all.emplace_back(options(), [&stop, &result] {
            std::uint64_t x = 1;
            while (!stop) x = advance_at_depth(static_cast<unsigned>(x >> 60), x);
            result = x;
        });
    }
    std::uint64_t expected = 1;
    {
        const profiled here;
        for (Coroutine& c : all) c.resume();
        for (long step = 0; here.goes_on(step, steps); ++step) {
            for (Coroutine& c : all) c.resume();
            expected = next(expected);
        }
    }
    stop = true;
    for (Coroutine& c : all) c.resume();
    CHECK((results == std::vector<std::uint64_t>(4, next(expected))));
    CHECK(longest_walk < most_frames);
}

BACKEND_TEST("signals: SIGPROF walks the stack during stress on start, throw, unwind and end") {
    const long steps = stress_count(is_thread<Coroutine> ? 50'000 : 200'000);
    long thrown = 0;
    long unwound = 0;
    long done = 0;
    {
        const profiled here;
        for (; here.goes_on(done, steps); ++done) {
            Coroutine throws(options(), [] {
                yield();
                throw problem{1};
            });
            Coroutine waits(options(), [&] {
                const at_exit note{[&] { ++unwound; }};
                yield_holding(3000);
            });
            waits.resume();
            throws.resume();
            try {
                throws.resume();
            } catch (const problem& p) { thrown += p.number; }
        }
    }
    CHECK(thrown == done);
    CHECK(unwound == done);
    CHECK(longest_walk < most_frames);
}

BACKEND_TEST("signals: SIGPROF walks the stack during stress on one coroutine inside another") {
    const long steps = stress_count(is_thread<Coroutine> ? 100'000 : 500'000);
    bool stop = false;
    long inner_turns = 0;
    long outer_turns = 0;
    Coroutine inner(options(), [&] {
        while (!stop) {
            ++inner_turns;
            yield_holding(500);
        }
    });
    Coroutine outer(options(), [&] {
        while (!stop) {
            inner.resume();
            ++outer_turns;
            yield();
        }
    });
    long done = 0;
    {
        const profiled here;
        for (; here.goes_on(done, steps); ++done) outer.resume();
    }
    CHECK(inner_turns == done);
    CHECK(outer_turns == done);
    CHECK(longest_walk < most_frames);
}
