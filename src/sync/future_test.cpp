// future_test.cpp - promise, future, shared_future and packaged_task, as std's.
//
// SPDX-License-Identifier: Apache-2.0
#include <weft/sync/future.hpp>

#include <memory>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include <weft/fiber/cancel.hpp>
#include <weft/sync/packaged_task.hpp>

#include "loops.hpp"

using namespace weft;
using namespace std::chrono_literals;

namespace {

/// The code of the std::future_error that f throws; 0: it throws none.
template <class F>
future_errc code_of(F f) {
    try {
        f();
    } catch (const future_error& e) { return static_cast<future_errc>(e.code().value()); }
    return {};
}

}  // namespace

static_assert(std::is_same_v<decltype(std::declval<future<int>&>().get()), int>);
static_assert(std::is_same_v<decltype(std::declval<future<int&>&>().get()), int&>);
static_assert(std::is_same_v<decltype(std::declval<future<void>&>().get()), void>);
static_assert(std::is_same_v<decltype(std::declval<shared_future<int>&>().get()), const int&>);
static_assert(std::is_same_v<decltype(std::declval<shared_future<int&>&>().get()), int&>);
static_assert(std::is_same_v<decltype(std::declval<shared_future<void>&>().get()), void>);
static_assert(std::is_nothrow_move_constructible_v<future<int>>);
static_assert(!std::is_copy_constructible_v<future<int>>);
static_assert(std::is_copy_constructible_v<shared_future<int>>);
static_assert(!std::is_copy_constructible_v<promise<int>>);
static_assert(!std::is_copy_constructible_v<packaged_task<int()>>);

MATRIX_TEST("future: get waits for the value and takes it") {
    promise<std::unique_ptr<int>> p;
    auto f = p.get_future();
    std::string log;
    spawn([&] {
        log += 'a';
        log += *f.get() == 5 ? 'c' : '?';
        CHECK(!f.valid());
    });
    run_until_blocked();
    CHECK(log == "a");
    spawn([&] {
        log += 'b';
        p.set_value(std::make_unique<int>(5));
    });
    run();
    CHECK(log == "abc");
}

MATRIX_TEST("future: void, references and exceptions") {
    promise<void> nothing;
    promise<int&> reference;
    promise<int> thrown;
    int here = 0;
    int caught = 0;
    spawn([&, a = nothing.get_future(), b = reference.get_future(),
           c = thrown.get_future()]() mutable {
        a.get();
        b.get() = 7;
        try {
            c.get();
        } catch (const std::runtime_error&) { ++caught; }
        CHECK(!c.valid());
    });
    run_until_blocked();
    nothing.set_value();
    reference.set_value(here);
    thrown.set_exception(std::make_exception_ptr(std::runtime_error("x")));
    run();
    CHECK(here == 7);
    CHECK(caught == 1);
}

MATRIX_TEST("future: a shared one lets everybody go on, in the order they came") {
    promise<std::string> p;
    const shared_future<std::string> f = p.get_future().share();
    std::string log;
    for (const char name : {'a', 'b', 'c'}) spawn([&, f, name] { log += name + f.get(); });
    run_until_blocked();
    p.set_value("1");
    run();
    CHECK(log == "a1b1c1");
    CHECK(f.get() == "1");
}

MATRIX_TEST("future: the timed waits say what came, a cancelled one throws and can be repeated") {
    promise<int> p;
    auto f = p.get_future();
    std::string log;
    const auto note = [&](future_status status) {
        log += status == future_status::ready ? 'r' : status == future_status::timeout ? 't' : 'd';
    };
    fiber waits(s, options(), [&] {
        note(f.wait_for(5ms));
        note(f.wait_until(clock.now() + 5ms));
        try {
            note(f.wait_for(1h));
        } catch (const cancelled&) { log += 'c'; }
        try {
            f.wait();
        } catch (const cancelled&) { log += 'C'; }
        CHECK(f.valid());
    });
    run_until_blocked();
    advance(5ms);
    CHECK(log == "t");
    advance(5ms);
    CHECK(log == "tt");
    waits.request_stop();
    run();
    CHECK(log == "ttcC");
    waits.detach();
    p.set_value(1);
    spawn([&] {
        note(f.wait_for(0s));
        note(f.wait_until(std::chrono::system_clock::now()));
        CHECK(f.get() == 1);
    });
    run();
    CHECK(log == "ttcCrr");
}

WEFT_TEST("future: its errors are std's") {
    auto p = std::make_unique<promise<int>>();
    auto f = p->get_future();
    CHECK(code_of([&] { static_cast<void>(p->get_future()); }) ==
          future_errc::future_already_retrieved);
    p.reset();
    CHECK(code_of([&] { f.get(); }) == future_errc::broken_promise);
    CHECK(code_of([&] { f.get(); }) == future_errc::no_state);
    CHECK(code_of([&] { future<void>().wait(); }) == future_errc::no_state);
    promise<int> once;
    once.set_value(1);
    CHECK(code_of([&] { once.set_value(2); }) == future_errc::promise_already_satisfied);
    CHECK(code_of([&] { once.set_exception(nullptr); }) == future_errc::promise_already_satisfied);
    CHECK(once.get_future().get() == 1);
    promise<int> moved(std::move(once));
    CHECK(code_of([&] { once.set_value(2); }) == future_errc::no_state);
    promise<int> other;
    auto last = other.get_future();
    other = std::move(moved);
    CHECK(code_of([&] { last.get(); }) == future_errc::broken_promise);
}

WEFT_TEST("future: a value whose construction throws can be set again") {
    struct picky {
        explicit picky(int n) : value(n) {}
        picky(const picky& other) : value(other.value) {
            if (value < 0) throw value;
        }
        int value;
    };
    promise<picky> p;
    auto f = p.get_future();
    EXPECT_THROW(p.set_value(picky(-1)), int);
    CHECK(f.wait_for(0s) == future_status::timeout);
    p.set_value(picky(3));
    CHECK(f.get().value == 3);
}

namespace {

// Counts what it has given out.
template <class T>
struct counting_allocator {
    using value_type = T;
    explicit counting_allocator(int& count) : given(&count) {}
    template <class U>
    counting_allocator(const counting_allocator<U>& other) : given(other.given) {}
    T* allocate(std::size_t n) {
        T* const memory = std::allocator<T>().allocate(n);
        ++*given;
        return memory;
    }
    void deallocate(T* memory, std::size_t n) {
        --*given;
        std::allocator<T>().deallocate(memory, n);
    }
    template <class U>
    bool operator==(const counting_allocator<U>& other) const {
        return given == other.given;
    }
    int* given;
};

}  // namespace

static_assert(std::uses_allocator_v<promise<int>, counting_allocator<int>>);

WEFT_TEST("promise: takes the memory that it shares from an allocator, if there is one") {
    int given = 0;
    const counting_allocator<char> allocator(given);
    future<std::string> f;
    {
        promise<std::string> p(std::allocator_arg, allocator);
        CHECK(given == 1);
        f = p.get_future();
        p.set_value("kept");
    }
    CHECK(given == 1);  // the future has it
    CHECK(f.get() == "kept");
    CHECK(given == 0);
    int n = 0;
    promise<int&> reference(std::allocator_arg, allocator);
    reference.set_value(n);
    CHECK(&reference.get_future().get() == &n);
    promise<void> nothing(std::allocator_arg, allocator);
    auto broken = nothing.get_future();
    CHECK(given == 2);
    nothing = promise<void>();
    CHECK(code_of([&] { broken.get(); }) == future_errc::broken_promise);
    CHECK(given == 1);
}

MATRIX_TEST("packaged_task: its result goes to the future, and it can be reset") {
    packaged_task<int(int)> task([](int n) {
        if (n < 0) throw n;
        return 2 * n;
    });
    auto f = task.get_future();
    int got = 0;
    spawn([&] { got = f.get(); });
    run_until_blocked();
    spawn([&] { task(21); });
    run();
    CHECK(got == 42);
    CHECK(code_of([&] { task(1); }) == future_errc::promise_already_satisfied);
    task.reset();
    f = task.get_future();
    task(-1);
    EXPECT_THROW(f.get(), int);
}

WEFT_TEST("packaged_task: breaks its promise, is empty, holds what can only be moved") {
    auto broken = packaged_task<void()>([] {}).get_future();
    CHECK(code_of([&] { broken.get(); }) == future_errc::broken_promise);
    packaged_task<void()> empty;
    CHECK(!empty.valid());
    CHECK(code_of([&] { empty(); }) == future_errc::no_state);
    packaged_task<int()> owner([p = std::make_unique<int>(3)] { return *p; });
    packaged_task<int()> moved(std::move(owner));
    CHECK(moved.valid() && !owner.valid());
    auto f = moved.get_future();
    std::thread(std::move(moved)).join();
    CHECK(f.get() == 3);
}

WEFT_TEST("packaged_task: its signature is that of the callable") {
    packaged_task task([](int n) { return n + 1; });
    static_assert(std::is_same_v<decltype(task), packaged_task<int(int)>>);
    future<int> result = task.get_future();
    task(1);
    CHECK(result.get() == 2);
}
