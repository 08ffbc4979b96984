// cpp20.cpp - the ring on C++20 coroutines by hand: the least that a scheduler can be.
//
// The ready ones are linked through their promises; one that waits takes the next from the queue
// and transfers to it symmetrically. First in first out, or last in first out, which keeps one
// cycle in the cache as a wake slot does.
//
// SPDX-License-Identifier: Apache-2.0
#include <coroutine>
#include <utility>

#include "cases/ring/workload.hpp"

namespace {

using namespace bench::ring;

template <bool Lifo>
class scheduler {
public:
    class task {
    public:
        struct promise_type;
        using handle = std::coroutine_handle<promise_type>;

        struct to_the_next {
            scheduler* mine;
            bool await_ready() const noexcept { return false; }
            std::coroutine_handle<> await_suspend(handle) const noexcept { return mine->next(); }
            void await_resume() const noexcept {}
        };

        struct promise_type {
            template <class... Args>
            explicit promise_type(scheduler& s, Args&&...) : mine(&s) {}
            task get_return_object() { return task(handle::from_promise(*this)); }
            std::suspend_always initial_suspend() noexcept { return {}; }
            to_the_next final_suspend() noexcept { return {mine}; }
            void return_void() noexcept {}
            void unhandled_exception() noexcept { std::terminate(); }

            promise_type* following = nullptr;
            scheduler* mine;
        };

        explicit task(handle h) : handle_(h) {}
        task(task&& other) noexcept : handle_(std::exchange(other.handle_, nullptr)) {}
        ~task() {
            if (handle_) handle_.destroy();
        }
        [[nodiscard]] promise_type* promise() const { return &handle_.promise(); }

    private:
        handle handle_;
    };
    using promise = typename task::promise_type;

    class gate {
    public:
        struct passing {
            gate& at;
            scheduler& mine;
            bool await_ready() noexcept {
                if (at.messages_ == 0) return false;
                --at.messages_;
                return true;
            }
            std::coroutine_handle<> await_suspend(typename task::handle me) noexcept {
                ++mine.suspended;
                at.waiting_ = &me.promise();
                return mine.next();
            }
            void await_resume() const noexcept {}
        };
        [[nodiscard]] passing pass(scheduler& mine) { return {*this, mine}; }

        void wake(scheduler& mine) {
            if (promise* const woken = std::exchange(waiting_, nullptr))
                mine.push(woken);
            else
                ++messages_;
        }

    private:
        promise* waiting_ = nullptr;
        std::uint64_t messages_ = 0;
    };

    void push(promise* p) noexcept {
        if constexpr (Lifo) {
            p->following = head_;
            head_ = p;
        } else {
            p->following = nullptr;
            if (head_ == nullptr)
                head_ = p;
            else
                tail_->following = p;
            tail_ = p;
        }
    }

    [[nodiscard]] std::coroutine_handle<> next() noexcept {
        promise* const p = head_;
        if (p == nullptr) return std::noop_coroutine();
        head_ = p->following;
        return task::handle::from_promise(*p);
    }

    std::uint64_t suspended = 0;

private:
    promise* head_ = nullptr;
    promise* tail_ = nullptr;
};

template <bool Lifo>
class cpp20_part final : public part {
public:
    explicit cpp20_part(const shape& s) : ring_(s), gates_(s.fibers()) {
        bench::require(s.frame == 0, "coroutines have no frame to enlarge");
        tasks_.reserve(s.fibers());
    }

    void prepare() override {
        for (std::uint64_t cycle = 0; cycle < ring_.cycles; ++cycle)
            for (std::uint64_t place = ring_.length; place-- > 0;) {
                gate* const first = &gates_[cycle * ring_.length];
                tasks_.push_back(go_round(scheduler_, *this, first[place],
                                          first[(place + 1) % ring_.length], place));
                scheduler_.push(tasks_.back().promise());
            }
        scheduler_.next().resume();
    }

    void run() override {
        for (std::uint64_t cycle = 0; cycle < ring_.cycles; ++cycle)
            gates_[cycle * ring_.length].wake(scheduler_);
        scheduler_.next().resume();
    }

    [[nodiscard]] tally result() const override {
        tally all = sum_;
        all.suspended =
            scheduler_.suspended - ring_.cycles;  // without those that wait for the start
        return all;
    }

private:
    using mine = scheduler<Lifo>;
    using gate = typename mine::gate;

    static typename mine::task go_round(mine& s, cpp20_part& whole, gate& me, gate& next,
                                        std::uint64_t place) {
        if (place == 0) co_await me.pass(s);
        const std::uint64_t rounds = whole.ring_.rounds;
        const std::uint64_t last = whole.ring_.strict ? 0 : whole.ring_.length - 1;
        std::uint64_t turn = 0;
        for (std::uint64_t round = 0; round < rounds; ++round) {
            if (turn == place) {
                next.wake(s);
                co_await me.pass(s);
            } else {
                co_await me.pass(s);
                next.wake(s);
            }
            turn = turn == last ? 0 : turn + 1;
        }
        whole.sum_.add(rounds, 0);
    }

    const shape ring_;
    mine scheduler_;
    std::vector<gate> gates_;
    std::vector<typename mine::task> tasks_;
    tally sum_;
};

template <bool Lifo>
std::unique_ptr<part> make(const shape& s) {
    return std::make_unique<cpp20_part<Lifo>>(s);
}

constexpr row rows[] = {
    {.key = "fifo", .title = "C++20 coroutines, FIFO", .make = make<false>},
    {.key = "lifo", .title = "C++20 coroutines, LIFO", .make = make<true>},
};

}  // namespace

int main(int argc, char** argv) { return bench::ring::main(argc, argv, rows); }
