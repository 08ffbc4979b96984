// back_ends_table_test.cpp - where the back ends differ: a test for each cell of the table in
// docs/back_ends.md.
//
// The rows are the tests, the columns their four variants. Who changes a row changes the page, too.
// A build with the portable switch uses ucontext for own and swapped; their cells are then those of
// ucontext.
//
// SPDX-License-Identifier: Apache-2.0
#include <weft/coroutine/coroutine.hpp>

#include <pthread.h>

#include <cerrno>
#include <cfenv>
#include <csignal>
#include <thread>
#include <vector>

#include "backends.hpp"

using namespace weft_test;
using weft::this_coroutine::yield;

namespace {

template <class Coroutine>
constexpr bool on_swapcontext = std::same_as<Coroutine, weft::ucontext_coroutine> ||
                                (!WEFT_NATIVE_SWITCH && !is_thread<Coroutine>);

/// Whether the body has a state of its own for what a switch can keep, without being told to.
template <class Coroutine>
constexpr bool keeps_its_own = on_swapcontext<Coroutine> || is_thread<Coroutine>;

/// Whose state a body starts with that has its own: a swapped one is made ready at its first
/// resume.
template <class Coroutine>
constexpr bool starts_with_makers = keeps_its_own<Coroutine> && !is_swapped<Coroutine>;

// Compilers take it for granted that a function stays on its thread, and keep what these return.
[[gnu::noinline]] int get_errno() {
    asm volatile("");
    return errno;
}
[[gnu::noinline]] void set_errno(int value) {
    asm volatile("");
    errno = value;
}
[[gnu::noinline]] pthread_t self() {
    asm volatile("");
    return ::pthread_self();
}
[[gnu::noinline]] int& variable() {
    static thread_local int value = 0;
    int* address = &value;
    asm volatile("" : "+r"(address) : : "memory");
    return *address;
}

bool is_blocked() {
    sigset_t mask;
    ::pthread_sigmask(SIG_SETMASK, nullptr, &mask);
    return ::sigismember(&mask, SIGUSR2) == 1;
}
void set_blocked(bool blocked) {
    sigset_t mask;
    ::sigemptyset(&mask);
    ::sigaddset(&mask, SIGUSR2);
    ::pthread_sigmask(blocked ? SIG_BLOCK : SIG_UNBLOCK, &mask, nullptr);
}

bool rounds_up() { return std::fegetround() == FE_UPWARD; }
void set_rounds_up(bool up) { std::fesetround(up ? FE_UPWARD : FE_TONEAREST); }

// A state that is off, and off again in the end.
class switchable {
public:
    switchable(bool (*get)(), void (*set)(bool)) : get_(get), set_(set) { set_(false); }
    switchable(const switchable&) = delete;
    switchable& operator=(const switchable&) = delete;
    ~switchable() { set_(false); }
    bool get() const { return get_(); }
    void set(bool on) const { set_(on); }

private:
    bool (*get_)();
    void (*set_)(bool);
};

// Whether a body keeps a state apart from its resumer's, and whose it finds at its start.
struct ownership {
    bool own;
    bool makers;
    bool operator==(const ownership&) const = default;
};

template <class Coroutine>
ownership ownership_of(const switchable& state, const weft::coroutine_options& options) {
    bool on_at_start = false;
    bool on_later = false;
    state.set(true);
    Coroutine c(options, [&] {
        on_at_start = state.get();
        state.set(true);
        yield();
        on_later = state.get();
    });
    state.set(false);
    c.resume();
    const bool own = !state.get();
    state.set(false);
    c.resume();
    EXPECT_EQ(on_later, own) << "neither the one nor the other";
    EXPECT_FALSE(state.get()) << "the end of the body changed it";
    return {.own = own, .makers = on_at_start};
}

// Any access, wherever it points.
[[gnu::noinline]] WEFT_NO_SANITIZE int read_raw(const volatile int* address) { return *address; }

}  // namespace

BACKEND_TEST("back ends: the signal mask") {
    const switchable mask(is_blocked, set_blocked);
    const ownership found = ownership_of<Coroutine>(mask, options());
    CHECK(found.own == keeps_its_own<Coroutine>);
    CHECK(found.makers == starts_with_makers<Coroutine>);
}

BACKEND_TEST("back ends: the FP control words") {
    const switchable rounding(rounds_up, set_rounds_up);
    const ownership found = ownership_of<Coroutine>(rounding, options());
    CHECK(found.own == keeps_its_own<Coroutine>);
    CHECK(found.makers == starts_with_makers<Coroutine>);
}

BACKEND_TEST("back ends: the FP control words, if they are to be kept") {
    const switchable rounding(rounds_up, set_rounds_up);
    const ownership found = ownership_of<Coroutine>(rounding, options({.keep_fp_control = true}));
    CHECK(found.own);
    CHECK(found.makers == !is_swapped<Coroutine>);
}

BACKEND_TEST("back ends: errno") {
    int seen = 0;
    Coroutine c(options(), [&] {
        yield();  // so that nothing happens for the first time
        set_errno(ERANGE);
        yield();
        seen = get_errno();
    });
    c.resume();
    set_errno(EDOM);
    c.resume();
    CHECK((get_errno() == ERANGE) == !is_thread<Coroutine>);
    set_errno(EILSEQ);
    c.resume();
    CHECK((seen == EILSEQ) == !is_thread<Coroutine>);
}

BACKEND_TEST("back ends: thread_local variables") {
    int seen = 0;
    variable() = 1;
    Coroutine c(options(), [&] {
        seen = variable();
        variable() = 2;
        yield();
        seen = variable();
    });
    c.resume();
    CHECK(seen == (is_thread<Coroutine> ? 0 : 1));
    CHECK(variable() == (is_thread<Coroutine> ? 1 : 2));
    variable() = 3;
    c.resume();
    CHECK(seen == (is_thread<Coroutine> ? 2 : 3));
}

BACKEND_TEST("back ends: errno and thread_local variables when another thread resumes") {
    int seen_errno = 0;
    int seen_variable = 0;
    variable() = 1;
    Coroutine c(options(), [&] {
        variable() = 2;
        yield();  // so that nothing happens for the first time
        set_errno(ERANGE);
        yield();
        seen_errno = get_errno();
        seen_variable = variable();
    });
    c.resume();
    c.resume();
    std::thread([&] {
        Coroutine(options(), [] {}).resume();  // the first of a thread makes system calls
        set_errno(EDOM);
        variable() = 3;
        c.resume();
    }).join();
    CHECK((seen_errno == EDOM) == !is_thread<Coroutine>);
    CHECK(seen_variable == (is_thread<Coroutine> ? 2 : 3));
}

BACKEND_TEST("back ends: pthread_self") {
    pthread_t seen{};
    Coroutine c(options(), [&] { seen = self(); });
    c.resume();
    CHECK((::pthread_equal(seen, self()) != 0) == !is_thread<Coroutine>);
}

BACKEND_TEST("back ends: pointers to the locals of a parked one") {
    const volatile int* pointers[2] = {};
    int seen = 0;
    const auto body = [&](int which) {
        return [&, which] {
            volatile int local = 41 + which;
            pointers[which] = &local;
            yield();
            seen = local;
        };
    };
    Coroutine c(options(), body(0));
    Coroutine other(options(), body(1));
    c.resume();
    other.resume();
    CHECK((pointers[0] == pointers[1]) == is_swapped<Coroutine>);
    CHECK((read_raw(pointers[0]) == 41) == !is_swapped<Coroutine>);
    c.resume();
    CHECK(seen == 41);
}

BACKEND_TEST("back ends: resumed by another thread, it goes on there, or stays on its own") {
    std::vector<pthread_t> seen;
    Coroutine c(options(), [&] {
        for (int i = 0; i < 2; ++i) {
            seen.push_back(self());
            yield();
        }
    });
    c.resume();
    pthread_t resumer{};
    std::thread([&] {
        resumer = self();
        c.resume();
    }).join();
    CHECK((::pthread_equal(seen[1], resumer) != 0) == !is_thread<Coroutine>);
    CHECK((::pthread_equal(seen[0], seen[1]) != 0) == is_thread<Coroutine>);
}

// A footnote of the table: a cached thread is not made new for each coroutine.
WEFT_TEST("back ends: a cached thread has what the coroutine before left in it") {
    weft::thread_cache threads;
    const switchable mask(is_blocked, set_blocked);
    weft::thread_coroutine first({.threads = &threads}, [] {
        set_blocked(true);
        set_rounds_up(true);
        variable() = 7;
    });
    first.resume();
    bool blocked = false;
    bool up = false;
    int value = 0;
    weft::thread_coroutine second({.threads = &threads}, [&] {
        blocked = is_blocked();
        up = rounds_up();
        value = variable();
    });
    second.resume();
    bool up_if_kept = false;
    weft::thread_coroutine third({.keep_fp_control = true, .threads = &threads},
                                 [&] { up_if_kept = rounds_up(); });
    third.resume();
    CHECK(up_if_kept);
    CHECK(threads.started() == 1);
    CHECK(blocked);
    CHECK(up);
    CHECK(value == 7);
}
