// coroutine_failure_test.cpp - no memory, no stack, no thread: nothing is lost, and life goes on.
//
// And what a coroutine takes when it succeeds: stacks of a user's source, how much of one it used.
//
// SPDX-License-Identifier: Apache-2.0
#include <weft/coroutine/coroutine.hpp>

#include <cstdint>
#include <cstring>
#include <new>
#include <stdexcept>
#include <string>
#include <system_error>
#include <vector>

#include <alloca.h>

#include "backends.hpp"
#include "subprocess.hpp"

using namespace weft_test;
using weft::this_coroutine::yield;

namespace {

// Stacks of the depot, counted; on request there are none.
class counting_source final : public weft::stack_source {
public:
    weft::stack take(std::size_t size) override {
        if (empty) throw std::bad_alloc();
        ++taken;
        last_size = size;
        return weft::shared_stacks().take(size);
    }
    void give_back(weft::stack s) noexcept override {
        ++returned;
        weft::shared_stacks().give_back(s);
    }

    bool empty = false;
    int taken = 0;
    int returned = 0;
    std::size_t last_size = 0;
};

// Fails the test unless a coroutine can be made, resumed and destroyed.
template <class Coroutine>
void expect_usable(backend_fixture<Coroutine>& options) {
    int steps = 0;
    Coroutine c(options(), [&] {
        ++steps;
        yield();
        ++steps;
    });
    c.resume();
    c.resume();
    CHECK(steps == 2);
    CHECK(c.done());
}

#if !WEFT_ASAN && !WEFT_TSAN
// What is done and checked is in tests/programs/coroutine_failures.cpp.
void check_failure(const std::string& name) {
    const subprocess_result result = run_program("coroutine_failures", {name});
    SCOPED_TRACE(name + ": " + result.describe());
    CHECK(result.exited_with(0));
    CHECK(result.says("right"));
}
#endif

[[gnu::noinline]] void use_stack(std::size_t bytes) {
    void* const room = ::alloca(bytes);
    std::memset(room, 1, bytes);
    asm volatile("" : : "r"(room) : "memory");
}

}  // namespace

BACKEND_TEST("failure: stacks come from the user's source and go back at the end of the body") {
    counting_source source;
    if constexpr (!has_own_stack<Coroutine>) {
        Coroutine c(options({.stacks = &source}), [] {});
        c.resume();
        CHECK(source.taken == 0);  // this back end takes no stack for each coroutine
        return;
    }
    {
        Coroutine ends(options({.stack_size = 100'000, .stacks = &source}), [] {});
        CHECK(source.taken == 1);
        CHECK(source.last_size == 100'000);
        ends.resume();
        CHECK(source.returned == 1);

        Coroutine abandoned(options({.stacks = &source}), [] { yield(); });
        abandoned.resume();
        const Coroutine never_started(options({.stacks = &source}), [] {});
        CHECK(source.taken == 3);
        CHECK(source.returned == 1);
    }
    CHECK(source.returned == 3);
}

BACKEND_TEST("failure: no stack to be had is the source's exception from the constructor") {
    counting_source source;
    source.empty = true;
    if constexpr (is_thread<Coroutine>) {
        Coroutine c(options({.stacks = &source}), [] {});  // asks the system for its stack
        c.resume();
        return;
    }
    if constexpr (is_swapped<Coroutine>) {
        EXPECT_THROW(weft::shared_stack({.stacks = &source}), std::bad_alloc);
        return;
    }
    auto callable = [value = std::make_unique<int>(1)] { return *value; };
    EXPECT_THROW(Coroutine(options({.stacks = &source}), std::move(callable)), std::bad_alloc);
    CHECK(callable() == 1);  // it was not moved from
    CHECK(source.returned == 0);
    source.empty = false;
    Coroutine c(options({.stacks = &source}), [] {});
    c.resume();
    CHECK(c.done());
    expect_usable(options);
}

BACKEND_TEST("failure: a stack of no sensible size is refused, and said so") {
    for (const std::size_t size : {std::size_t{0}, std::size_t{1}, std::size_t{4095}}) {
        if constexpr (is_swapped<Coroutine>) {
            EXPECT_THROW(weft::shared_stack({.size = size}), std::invalid_argument);
        } else {
            EXPECT_THROW(Coroutine(options({.stack_size = size}), [] {}), std::invalid_argument);
        }
    }
    expect_usable(options);
}

BACKEND_TEST("failure: a size that is refused is named") {
    for (const std::size_t size : {std::size_t{4095}, (std::size_t{1} << 40) + 1}) {
        std::string said;
        try {
            if constexpr (is_swapped<Coroutine>)
                weft::shared_stack({.size = size});
            else
                Coroutine(options({.stack_size = size}), [] {});
        } catch (const std::invalid_argument& error) { said = error.what(); }
        CHECK(said.find("weft: a stack of " + std::to_string(size) + " bytes") == 0);
    }
}

BACKEND_TEST("failure: a stack larger than any memory is refused") {
    for (const std::size_t size : {std::size_t{1} << 62, SIZE_MAX, SIZE_MAX - 4096}) {
        if constexpr (is_swapped<Coroutine>) {
            EXPECT_THROW(weft::shared_stack({.size = size}), std::invalid_argument);
        } else {
            EXPECT_THROW(Coroutine(options({.stack_size = size}), [] {}), std::invalid_argument);
        }
        if constexpr (is_thread<Coroutine>) CHECK(options.threads.started() == 0);
    }
    expect_usable(options);
}

#if !WEFT_ASAN && !WEFT_TSAN

WEFT_TEST("failure: a getcontext that fails is an error with errno, and the stack goes back") {
    check_failure("getcontext_fails");
}

WEFT_TEST("failure: a thread that cannot be started is an error with errno") {
    check_failure("pthread_create_fails");
    check_failure("pthread_create_fails_for_a_cache");
}

#endif

BACKEND_TEST("failure: in the middle of others, harms none of them") {
    std::vector<Coroutine> all;
    std::vector<int> counts(8);
    for (int& count : counts) {
        all.emplace_back(options(), [&count] {
            for (;;) {
                ++count;
                yield();
            }
        });
        all.back().resume();
        weft::coroutine_options senseless = options();
        senseless.stack_size = 1;
        senseless.shared = nullptr;
        EXPECT_THROW(Coroutine(senseless, [] {}), std::invalid_argument);
    }
    for (Coroutine& c : all) c.resume();
    CHECK((counts == std::vector<int>(8, 2)));
}

BACKEND_TEST("failure: inside a coroutine it is an exception there, like any other") {
    std::string log;
    Coroutine c(options(), [&] {
        try {
            weft::coroutine_options senseless = options();
            senseless.stack_size = 1;
            senseless.shared = nullptr;
            const Coroutine inner(senseless, [] {});
        } catch (const std::invalid_argument&) { log += 'c'; }
        yield();
        log += 'd';
    });
    c.resume();
    c.resume();
    CHECK(log == "cd");
}

BACKEND_TEST("stack use: the high-water mark tells the deepest use, also after the end") {
    if constexpr (is_swapped<Coroutine>) {
        EXPECT_THROW(Coroutine(options({.measure_stack = true}), [] {}), std::invalid_argument);
    } else {
        Coroutine c(options({.measure_stack = true}), [] {
            use_stack(5'000);
            yield();
            use_stack(20'000);
            yield();
            use_stack(10'000);
        });
        CHECK(c.stack_high_water() == 0);
        c.resume();
        const std::size_t first = c.stack_high_water();
        CHECK(first >= 5'000);
        CHECK(first < 20'000);
        c.resume();
        const std::size_t second = c.stack_high_water();
        CHECK(second >= 20'000);
        CHECK(second < first + 20'000);
        c.resume();
        CHECK(c.done());
        CHECK(c.stack_high_water() == second);
    }
}

BACKEND_TEST("stack use: is not measured unless asked") {
    Coroutine c(options(), [] {
        use_stack(5'000);
        yield();
    });
    c.resume();
    CHECK(c.stack_high_water() == 0);
}

BACKEND_TEST("stack use: the whole size that was asked for can be used") {
    const std::size_t size = 1'000'000;
    bool used = false;
    const auto body = [&used] {
        use_stack(size - 10'000);
        yield();
        used = true;
    };
    const auto run = [&used](Coroutine c) {
        c.resume();
        c.resume();
        CHECK(used);
    };
    if constexpr (is_swapped<Coroutine>) {
        weft::shared_stack large({.size = size});
        run(Coroutine({.shared = &large}, body));
    } else {
        run(Coroutine(options({.stack_size = size}), body));
    }
}
