// cppcoro.cpp - the ring with the events of cppcoro, if CPPCORO_DIR named a checkout of it whose
// headers compile here when the build was configured.
//
// A set() resumes whoever waits, inside of it: there is no queue, and a message goes round as calls
// within calls. Its event holds one message; what is more is counted beside it.
//
// SPDX-License-Identifier: Apache-2.0
#include <coroutine>
#include <utility>

#include <cppcoro/single_consumer_async_auto_reset_event.hpp>

#include "cases/ring/workload.hpp"

namespace {

using namespace bench::ring;

// Begins at once, and lasts until it is destroyed.
class walk {
public:
    struct promise_type {
        walk get_return_object() {
            return walk(std::coroutine_handle<promise_type>::from_promise(*this));
        }
        std::suspend_never initial_suspend() noexcept { return {}; }
        std::suspend_always final_suspend() noexcept { return {}; }
        void return_void() noexcept {}
        void unhandled_exception() noexcept { std::terminate(); }
    };

    walk(walk&& other) noexcept : handle_(std::exchange(other.handle_, nullptr)) {}
    ~walk() {
        if (handle_) handle_.destroy();
    }

private:
    explicit walk(std::coroutine_handle<promise_type> handle) : handle_(handle) {}
    std::coroutine_handle<promise_type> handle_;
};

struct gate {
    cppcoro::single_consumer_async_auto_reset_event event;
    std::uint64_t messages = 0;

    void wake() {
        ++messages;
        event.set();
    }
};

class cppcoro_part final : public part {
public:
    explicit cppcoro_part(const shape& s) : ring_(s), gates_(s.fibers()) {
        bench::require(s.frame == 0, "coroutines have no frame to enlarge");
        walks_.reserve(s.fibers());
    }

    void prepare() override {
        for (std::uint64_t i = 0; i < ring_.fibers(); ++i) {
            gate* const first = &gates_[i / ring_.length * ring_.length];
            const std::uint64_t place = i % ring_.length;
            walks_.push_back(
                go_round(*this, first[place], first[(place + 1) % ring_.length], place));
        }
    }

    void run() override {
        for (std::uint64_t cycle = 0; cycle < ring_.cycles; ++cycle)
            gates_[cycle * ring_.length].wake();
    }

    [[nodiscard]] tally result() const override { return sum_; }

private:
    static walk go_round(cppcoro_part& whole, gate& me, gate& next, std::uint64_t place) {
        const std::uint64_t waits = place == 0 ? 1 : 0;  // for the start
        for (std::uint64_t round = 0; round < whole.ring_.rounds + waits; ++round) {
            const std::uint64_t turn =
                whole.ring_.strict ? 0 : (round - waits) % whole.ring_.length;
            const bool begins = round >= waits && turn == place;
            if (begins) next.wake();
            while (me.messages == 0) co_await me.event;
            --me.messages;
            if (!begins && round >= waits) next.wake();
        }
        whole.sum_.add(whole.ring_.rounds, 0);
    }

    const shape ring_;
    std::vector<gate> gates_;
    std::vector<walk> walks_;
    tally sum_;
};

constexpr row rows[] = {
    {.key = "cppcoro",
     .title = "cppcoro, events",
     .make = [](const shape& s) -> std::unique_ptr<part> {
         return std::make_unique<cppcoro_part>(s);
     },
     .sparse = true,
     .exact = false,
     .counts = false},
};

}  // namespace

#ifndef CPPCORO_VERSION
#define CPPCORO_VERSION "cppcoro"
#endif

int main(int argc, char** argv) {
    bench::about(CPPCORO_VERSION);
    return bench::ring::main(argc, argv, rows);
}
