// cpp20.cpp - suspended C++20 coroutines: a frame each, and nothing else.
//
// SPDX-License-Identifier: Apache-2.0
#include <coroutine>
#include <exception>
#include <vector>

#include "cases/memory/workload.hpp"

namespace {

struct task {
    struct promise_type {
        task get_return_object() { return {}; }
        std::suspend_never initial_suspend() noexcept { return {}; }
        std::suspend_never final_suspend() noexcept { return {}; }
        void return_void() noexcept {}
        void unhandled_exception() noexcept { std::terminate(); }
    };
};

class cpp20_player {
public:
    explicit cpp20_player(std::uint64_t count) : waiting_(count) {}

    void park() {
        for (std::uint64_t i = 0; i < waiting_.size(); ++i) wait(*this, i);
    }

    std::uint64_t wake() {
        for (const std::coroutine_handle<> each : waiting_) each.resume();
        return ended_;
    }

private:
    struct parking {
        std::coroutine_handle<>& into;
        bool await_ready() const noexcept { return false; }
        void await_suspend(std::coroutine_handle<> me) const noexcept { into = me; }
        void await_resume() const noexcept {}
    };

    [[gnu::noinline]] static task wait(cpp20_player& mine, std::uint64_t i) {
        co_await parking{mine.waiting_[i]};
        ++mine.ended_;
    }

    std::vector<std::coroutine_handle<>> waiting_;
    std::uint64_t ended_ = 0;
};

}  // namespace

int main(int argc, char** argv) {
    const bench::settings how = bench::read_arguments(argc, argv);
    bench::parked::measure(how, "C++20 coroutine frames", 200,
                           [](std::uint64_t count) { return cpp20_player(count); });
}
