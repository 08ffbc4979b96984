// weft.cpp - the case `pool` on a weft pool. See workload.hpp.
//
// SPDX-License-Identifier: Apache-2.0
#include <alloca.h>

#include <algorithm>
#include <atomic>
#include <cstring>
#include <memory>
#include <utility>
#include <vector>

#include <weft/base/thread_block.hpp>
#include <weft/exec/pool.hpp>
#include <weft/fiber/fiber.hpp>
#include <weft/fiber/go.hpp>
#include <weft/fiber/suspend.hpp>
#include <weft/fiber/this_fiber.hpp>
#include <weft/sync/detail/biased_lock.hpp>
#include <weft/sync/wait_group.hpp>

#include "cases/pool/workload.hpp"

namespace {

using namespace bench::pools;
using weft::stack_kind;

// --- yields

double yields(unsigned workers, std::uint64_t fibers, std::uint64_t total) {
    weft::pool p({.workers = workers});
    const std::uint64_t each = total / fibers;
    std::atomic<std::uint64_t> turns = 0;
    bench::stopwatch clock;
    clock.start();
    for (std::uint64_t i = 0; i < fibers; ++i)
        weft::go(p, [&turns, each] {
            std::uint64_t mine = 0;
            for (; mine < each; ++mine) weft::yield();
            turns += mine;
        });
    p.drain();
    clock.stop();
    bench::require(turns == each * fibers, "yields");
    return clock.nanoseconds() / static_cast<double>(each * fibers);
}

// What the slowest of a thousand fibers has done when a million yields are over, as a part of what
// the fastest has.
double fairness(unsigned workers, std::uint64_t total) {
    weft::pool p({.workers = workers});
    std::vector<std::atomic<std::uint64_t>> work(1000);
    std::atomic<std::int64_t> left = static_cast<std::int64_t>(total);
    std::atomic<bool> all_there = false;
    for (auto& mine : work)
        weft::go(p, [&] {
            while (!all_there) weft::yield();
            while (left.fetch_sub(1, std::memory_order_relaxed) > 0) {
                mine.fetch_add(1, std::memory_order_relaxed);
                weft::yield();
            }
        });
    all_there = true;
    p.drain();
    std::uint64_t least = total;
    std::uint64_t most = 1;
    for (const auto& one : work) {
        least = std::min(least, one.load());
        most = std::max(most, one.load());
    }
    return static_cast<double>(least) / static_cast<double>(most);
}

// --- spawn

double spawn(weft::pool& p, stack_kind kind, std::uint64_t total) {
    bench::stopwatch clock;
    weft::fiber starter(p, [&] {
        clock.start();
        for (std::uint64_t left = total; left != 0; left -= batch) {
            weft::wait_group done(batch);  // which does not come to 0 unless all have run
            for (std::uint64_t i = 0; i < batch; ++i)
                weft::go({.kind = kind}, [&] { done.done(); });
            done.wait();
        }
        clock.stop();
    });
    starter.join();
    return clock.nanoseconds() / static_cast<double>(total);
}

// --- skynet

std::uint64_t tree(std::uint64_t first, std::uint64_t size) {
    if (size == 1) return first;
    std::uint64_t parts[10];
    weft::wait_group done(10);
    for (std::uint64_t i = 0; i < 10; ++i)
        weft::go([&, i] {
            parts[i] = tree(first + i * (size / 10), size / 10);
            done.done();
        });
    done.wait();
    std::uint64_t sum = 0;
    for (const std::uint64_t part : parts) sum += part;
    return sum;
}

double skynet(weft::pool& p, std::uint64_t size) {
    bench::stopwatch clock;
    std::uint64_t sum = 0;
    weft::fiber root(p, [&] {
        clock.start();
        sum = tree(0, size);
        clock.stop();
    });
    root.join();
    bench::require(sum == size * (size - 1) / 2, "the sum of the tree");
    return clock.nanoseconds() / 1e6;
}

// --- ring

// A count, and who waits for it, under the lock that channels have, too: fibers that meet on one
// worker need no locked instruction.
class gate {
public:
    void pass() {
        if (sent_.load(std::memory_order_acquire) == taken_) wait();
        ++taken_;
    }
    void wake() {
        lock_.lock(&weft::detail::this_thread_block());
        sent_.store(sent_.load(std::memory_order_relaxed) + 1, std::memory_order_release);
        weft::waiter* const woken = std::exchange(waiting_, nullptr);
        lock_.unlock();
        if (woken != nullptr && woken->claim()) woken->wake();
    }

private:
    [[gnu::noinline]] void wait() {
        static constexpr weft::wait_reason waits{"waits for a message", false};
        weft::wait(waits, weft::no_deadline, [this](weft::waiter& me) noexcept {
            lock_.lock(&weft::detail::this_thread_block());
            const bool none = sent_.load(std::memory_order_relaxed) == taken_;
            if (none) waiting_ = &me;
            lock_.unlock();
            return none;
        });
    }

    alignas(64) std::atomic<std::uint64_t> sent_ = 0;
    std::uint64_t taken_ = 0;  // the waiting fiber's
    weft::detail::biased_lock lock_;
    weft::waiter* waiting_ = nullptr;  // guarded by the lock
};

[[gnu::noinline]] void go_round(gate& mine, gate& next, std::uint64_t place, std::uint64_t rounds) {
    std::uint64_t turn = 0;
    for (std::uint64_t round = 0; round < rounds; ++round) {
        if (turn == place) {
            next.wake();
            mine.pass();
        } else {
            mine.pass();
            next.wake();
        }
        turn = turn + 1 == length ? 0 : turn + 1;
    }
}

struct ring {
    stack_kind kind;
    std::uint64_t cycles;
    std::uint64_t rounds;
    std::size_t frame;  // D
};

double messages(unsigned workers, const ring& r) {
    weft::pool p({.workers = workers});
    const auto gates = std::make_unique<gate[]>(length * r.cycles);
    weft::wait_group ready(length * r.cycles);
    weft::wait_group done(length * r.cycles);
    std::atomic<std::uint64_t> ended = 0;
    // A swapped fiber stays where it starts: so a ring of them is kept together.
    for (std::uint64_t i = 0; i < length * r.cycles; ++i) {
        weft::fiber_options options{.kind = r.kind};
        if (r.kind == stack_kind::swapped)
            options.worker = static_cast<unsigned>(i / length % workers);
        weft::go(p, options, [&, i] {
            const std::uint64_t place = i % length;
            gate& mine = gates[i];
            gate& next = gates[i - place + (place + 1) % length];
            void* const more = ::alloca(r.frame + 1);
            std::memset(more, 1, r.frame + 1);
            ready.done();
            if (place == 0) mine.pass();
            go_round(mine, next, place, r.rounds);
            bench::keep(*static_cast<char*>(more));
            ended.fetch_add(1, std::memory_order_relaxed);
            done.done();
        });
    }
    ready.wait();
    bench::stopwatch clock;
    clock.start();
    for (std::uint64_t cycle = 0; cycle < r.cycles; ++cycle) gates[cycle * length].wake();
    done.wait();
    clock.stop();
    bench::require(ended == length * r.cycles, "every fiber of the ring has ended");
    const auto sent = static_cast<double>(length * r.cycles * r.rounds);
    return sent / clock.nanoseconds() * 1e3;
}

}  // namespace

int main(int argc, char** argv) {
    const bench::settings how = bench::read_arguments(argc, argv);
    const std::uint64_t fibers = how.quick ? batch : 976 * batch;
    const std::uint64_t tree_size = how.quick ? 1000 : leaves;
    for (const unsigned p : {1U, 2U}) {
        const std::string at = workers(p);
        bench::report({"weft, 1,000 yield", "ns", at}, yields(p, 1000, how.count(10'000'000) * 10));
        bench::report({"weft, 16 yield", "ns", at}, yields(p, 16, how.count(10'000'000) * 10));
        bench::report({"weft, fairness", "of the fastest", at},
                      fairness(p, how.quick ? 10'000 : 1'000'000));
        {
            weft::pool warm({.workers = p});
            spawn(warm, stack_kind::own, fibers);
            bench::report({"weft, spawn", "ns", at}, spawn(warm, stack_kind::own, fibers));
        }
        {
            weft::pool warm({.workers = p});
            skynet(warm, tree_size);
            bench::report({"weft, skynet", "ms", at}, skynet(warm, tree_size));
        }
        const std::uint64_t rounds = how.quick ? 10 : 500'000;
        for (const auto& [name, kind] :
             {std::pair{"own", stack_kind::own}, std::pair{"swapped", stack_kind::swapped}})
            for (const std::size_t frame : {std::size_t{0}, std::size_t{1000}}) {
                const std::string row =
                    std::string("weft, ring, ") + name + (frame != 0 ? ", D = 1000" : "");
                bench::report({row + ", 16 fibers", "M/s", at},
                              messages(p, {kind, 2, rounds, frame}));
                bench::report({row + ", 8,000 fibers", "M/s", at},
                              messages(p, {kind, 1000, rounds / 500 + 1, frame}));
            }
    }
}
