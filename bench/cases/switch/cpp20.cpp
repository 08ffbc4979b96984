// cpp20.cpp - two C++20 coroutines that transfer control to each other, in their best form.
//
// Each finds the other's handle in its own promise, at a fixed place in its frame, and co_await
// transfers to it symmetrically: the compiler makes a tail call of it. Loop counters live in the
// frames. Nothing is allocated while they play, and there is no suspension point but the one in the
// loop and the two that every coroutine has: with more of them resumption takes longer.
//
// SPDX-License-Identifier: Apache-2.0
#include <coroutine>
#include <exception>

#include "cases/switch/workload.hpp"

namespace {

struct side {
    // At its end a side goes on to another coroutine: the first to the second, so that that can
    // end, too, and the second to nobody, which is back to resume().
    struct to_the_next {
        bool await_ready() const noexcept { return false; }
        template <class Promise>
        std::coroutine_handle<> await_suspend(std::coroutine_handle<Promise> self) const noexcept {
            return self.promise().next;
        }
        void await_resume() const noexcept {}
    };

    struct promise_type {
        std::coroutine_handle<promise_type> other;
        std::coroutine_handle<> next = std::noop_coroutine();

        side get_return_object() { return {handle::from_promise(*this)}; }
        std::suspend_always initial_suspend() noexcept { return {}; }
        to_the_next final_suspend() noexcept { return {}; }
        void return_void() noexcept {}
        void unhandled_exception() noexcept { std::terminate(); }
    };
    using handle = std::coroutine_handle<promise_type>;

    handle coroutine;
};

struct to_the_other {
    bool await_ready() const noexcept { return false; }
    side::handle await_suspend(side::handle self) const noexcept { return self.promise().other; }
    void await_resume() const noexcept {}
};

[[gnu::noinline]] side take_turns(std::uint64_t turns, std::uint64_t& counted) {
    std::uint64_t count = 0;
    while (count < turns) {
        ++count;
        co_await to_the_other{};
    }
    counted = count;
}

void play(bench::match& m) {
    const side first = take_turns(m.turns, m.first);
    const side second = take_turns(m.turns, m.second);
    first.coroutine.promise().other = second.coroutine;
    second.coroutine.promise().other = first.coroutine;
    first.coroutine.promise().next = second.coroutine;
    m.begin();
    first.coroutine.resume();
    m.end();
    first.coroutine.destroy();
    second.coroutine.destroy();
}

}  // namespace

int main(int argc, char** argv) {
    const bench::settings how = bench::read_arguments(argc, argv);
    bench::play_row(how, "C++20 coroutines, symmetric transfer", 20'000'000, play);
}
