// shutdown_test.cpp - a pool ends while its fibers are blocked in every way, and others come.
//
// Of all parts at once: what waits in io, in sync and in a join is asked to stop by exec.
//
// SPDX-License-Identifier: Apache-2.0
#include <array>
#include <atomic>
#include <mutex>
#include <span>
#include <string_view>
#include <system_error>
#include <thread>

#include <weft/base/errc.hpp>
#include <weft/fiber/cancel.hpp>
#include <weft/fiber/dump.hpp>
#include <weft/io/pipe.hpp>
#include <weft/sync/channel.hpp>
#include <weft/sync/condition_variable.hpp>
#include <weft/sync/future.hpp>
#include <weft/sync/mutex.hpp>
#include <weft/sync/semaphore.hpp>

#include "pools.hpp"

using namespace weft;
using namespace std::chrono_literals;

namespace {

// Nothing of it ever comes.
struct never {
    mutex held;  // by one that sleeps
    mutex beside_condition;
    condition_variable condition;
    counting_semaphore<> permits{0};
    channel<int> items;
    channel<int> room;
    promise<int> value;
    future<int> result = value.get_future();
    io::pipe bytes = io::pipe::make().value();
    std::array<std::byte, 16> buffer{};
};

struct counts {
    std::atomic<int> begun = 0;
    std::atomic<int> waiting = 0;
    std::atomic<int> ended = 0;
};

std::size_t fibers_alive() {
    std::size_t count = 0;
    dump([&](std::string_view) { ++count; });
    return count;
}

}  // namespace

POOL_TEST("pool: shutdown ends all that are blocked in some way, while others are started") {
    never n;
    counts c;
    const std::size_t alive_before = fibers_alive();
    const auto start = [&](auto body) {
        ++c.begun;
        spawn([&c, body] {
            try {
                body();
            } catch (const cancelled&) {}
            ++c.ended;
        });
    };
    const auto block = [&](auto body) {
        start([&c, body] {
            ++c.waiting;
            body();
        });
    };
    std::atomic<bool> is_held = false;
    block([&] {
        const std::lock_guard lock(n.held);
        is_held = true;
        static_cast<void>(sleep_for(1h));
    });
    while (!is_held) std::this_thread::yield();
    block([&] { const std::lock_guard lock(n.held); });
    block([&] { static_cast<void>(sleep_for(1h)); });
    block([] { static_cast<void>(park()); });
    block([&] { CHECK(!n.items.receive()); });
    block([&] { CHECK(!n.room.send(1)); });
    block([&] {
        std::unique_lock lock(n.beside_condition);
        n.condition.wait(lock);
    });
    block([&] { n.permits.acquire(); });
    block([&] { n.result.wait(); });
    block([&] { CHECK(!n.bytes.reader.read_some(n.buffer)); });
    block([this] {
        fiber child(options(), [] { static_cast<void>(park()); });
        child.join();
    });
    constexpr int ways = 11;
    // Inside, also after they were asked to stop; few are alive at a time.
    for (int i = 0; i < 3; ++i)
        start([&] {
            for (int after = 0; after < 20;) {
                if (this_fiber::stop_requested()) ++after;
                if (c.begun - c.ended < 100) start([] { static_cast<void>(sleep_for(10us)); });
                yield();
            }
        });
    // From outside, until it is refused.
    std::atomic<int> accepted = 0;
    std::atomic<int> accepted_ended = 0;
    std::error_code refused;
    std::thread outside([&] {
        try {
            for (;; std::this_thread::yield()) {
                if (accepted - accepted_ended >= 100) continue;
                spawn([&] {
                    static_cast<void>(sleep_for(10us));
                    ++accepted_ended;
                });
                ++accepted;
            }
        } catch (const std::system_error& error) { refused = error.code(); }
    });
    while (c.waiting < ways || accepted < 10) std::this_thread::yield();
    const stuck_report late = p.shutdown(60s);
    EXPECT_FALSE(late) << late.text(100);
    outside.join();
    p.drain();
    CHECK(refused == errc::shutdown);
    CHECK(c.ended == c.begun);
    CHECK(accepted_ended == accepted);
    CHECK(p.alive() == 0);
    CHECK(fibers_alive() == alive_before);
}
