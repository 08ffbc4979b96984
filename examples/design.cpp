// design.cpp - the programs of weft's design, as they were written down before there was any code.
//
// One function each, which says whether it came to what it must; the larger examples are about one
// of them each.
//
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <array>
#include <cstdio>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <thread>
#include <vector>

#include <weft/weft.hpp>

using namespace weft;
using namespace std::chrono_literals;

// A scheduler is an object, N:1 and deterministic.
bool in_order() {
    loop s;
    std::vector<int> out;
    go(s, [&] {
        out.push_back(1);
        yield();
        out.push_back(2);
    });
    go(s, [&] {
        out.push_back(3);
        yield();
        out.push_back(4);
    });
    s.run();  // out: 1, 3, 2, 4
    return out == std::vector{1, 3, 2, 4};
}

// It can be stepped; each step runs one fiber until it waits or ends.
bool by_steps() {
    loop s;
    std::vector<std::string> out;
    go(s, [&] {
        out.push_back("foo");
        yield();
        out.push_back("bar");
    });
    go(s, [&] { out.push_back("baz"); });
    for (std::size_t alive : s.steps()) out.push_back(std::to_string(alive));
    // foo, 2, baz, 1, bar, 0
    return out == std::vector<std::string>{"foo", "2", "baz", "1", "bar", "0"};
}

// M:N: the same fibers over a pool of threads.
bool on_a_pool() {
    pool p({.workers = 4});
    wait_group wg;
    for (int i = 0; i < 128; ++i) {
        wg.add();
        go(p, [&] {
            auto done = wg.guard();
            for (int j = 0; j < 7; ++j) yield();
        });
    }
    wg.wait();  // from a plain thread or from a fiber
    p.drain();
    return p.alive() == 0;
}

// Suspending is one generic operation: the callback says what the thread runs next.
executor* sleeps_on = nullptr;
std::thread alarm_clock;
void sleep(std::chrono::microseconds t) {
    weft::suspend([t](runnable* r) noexcept -> runnable* {
        if (t.count() <= 0) return r;
        alarm_clock = std::thread([t, r] {  // arrange for r to be posted later
            std::this_thread::sleep_for(t);
            sleeps_on->post(r);
        });
        return nullptr;
    });
}

bool sleeps() {
    loop s;
    sleeps_on = &s;
    const auto began = std::chrono::steady_clock::now();
    go(s, [] {
        sleep(0us);
        sleep(1ms);
    });
    s.run();
    alarm_clock.join();
    return std::chrono::steady_clock::now() - began >= 1ms;
}

// Structured concurrency: children never outlive the group.
struct MyData {
    int one = 1;
    int two = 2;
};
int perform_one(MyData& data) { return data.one; }
int perform_two(MyData& data) {
    sleep_for(1h);
    this_fiber::throw_if_cancelled();
    return data.two;
}

bool first_of_two() {
    MyData data;
    int result = with_task_group<int>([&](task_group<int>& g) {
        g.add([&] { return perform_one(data); });
        g.add([&] { return perform_two(data); });
        return g.next();  // the other child is cancelled and waited for
    });
    return result == 1;
}

std::string fetch(const std::string& url) {
    sleep_for(1ms);
    this_fiber::throw_if_cancelled();
    return "the page of " + url;
}

bool in_time() {
    const std::string url = "weft";
    auto page = with_timeout(2s, [&] { return fetch(url); });  // every wait obeys the deadline
    return page == "the page of weft" && !with_timeout(0s, [&] { return fetch(url); });
}

// Actor isolation: a context is let go while its fiber waits.
class counter {
public:
    int get() const noexcept {
        std::lock_guard guard(context);
        return value_;
    }
    void set(int value) noexcept {
        std::lock_guard guard(context);
        value_ = value;
    }
    int increment() noexcept {
        std::lock_guard guard(context);
        return ++value_;
    }

private:
    actor_context context;  // not mutable: lock() and unlock() are const
    int value_ = 0;
};

bool isolated_counter() {
    counter c;
    c.set(2);
    std::vector<fiber> clients;
    for (int i = 0; i < 40; ++i) clients.emplace_back([&] { c.increment(); });
    for (fiber& one : clients) one.join();
    return c.get() == 42;
}

// Generators on a stack of their own, so recursion needs no help.
struct tree {
    int value = 0;
    std::unique_ptr<tree> left, right;
};
template <class Yield>
void walk(const tree& t, Yield& yield) {
    if (!t.left && !t.right) yield(t.value);
    if (t.left) walk(*t.left, yield);
    if (t.right) walk(*t.right, yield);
}

generator<int> leaves(const tree& t) {
    return generator<int>([&t](auto& yield) { walk(t, yield); });  // yield(v) from any depth
}

bool same_fringe() {
    const auto leaf = [](int v) { return std::make_unique<tree>(tree{v, nullptr, nullptr}); };
    const auto join = [](auto l, auto r) {
        return std::make_unique<tree>(tree{0, std::move(l), std::move(r)});
    };
    const tree a{0, join(leaf(1), leaf(2)), leaf(3)};
    const tree b{0, leaf(1), join(leaf(2), leaf(3))};
    bool same = std::ranges::equal(leaves(a), leaves(b));  // the same-fringe problem
    return same && !std::ranges::equal(leaves(a), leaves(*b.right));
}

// I/O looks blocking and is not.
bool echoes() {
    io::tcp_listener listener = io::tcp_listener::bind(io::address("127.0.0.1", 0)).value();
    fiber server([&] {
        while (auto peer = listener.accept())
            go([s = std::move(*peer)]() mutable {
                std::array<std::byte, 4096> buffer;
                while (auto n = s.read_some(buffer)) {
                    if (*n == 0 || !s.write_all(std::span(buffer).first(*n))) break;
                }
            });
    });
    auto client = io::tcp_stream::connect(listener.local_address().value()).value();
    std::array<std::byte, 5> sent{std::byte{7}}, received{};
    const bool came = client.write_all(sent) && client.read_exactly(received);
    return came && received == sent;  // ~fiber asks the server to stop
}

// The whole program on fibers.
int on_fibers() {
    return weft::run([] {
        const bool fine = first_of_two() && in_time() && isolated_counter() && echoes();
        return fine ? 0 : 1;
    });
}

int main() {
    const bool fine = in_order() && by_steps() && on_a_pool() && sleeps() && same_fringe();
    const int status = fine ? on_fibers() : 1;
    std::puts(status == 0 ? "all as designed" : "not as designed");
    return status;
}
