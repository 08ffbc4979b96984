// loop_test.cpp - the loop with plain runnables: order, stepping, posts from outside, timers, ends.
//
// SPDX-License-Identifier: Apache-2.0
#include <weft/exec/loop.hpp>

#include <poll.h>

#include <algorithm>
#include <atomic>
#include <cmath>
#include <deque>
#include <memory>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include <weft/base/thread_block.hpp>
#include <weft/exec/post.hpp>

#include "weft_test.hpp"

using namespace weft;
using namespace std::chrono_literals;

namespace {

// A runnable that returns what it is told, so many times.
struct scripted final : runnable {
    runnable* run() noexcept override {
        log += name;
        return --times > 0 ? this : following;
    }
    scripted(std::string& l, char n) : log(l), name(n) {}
    std::string& log;
    char name;
    int times = 1;
    runnable* following = nullptr;
};

struct bell final : runnable {
    bell() : timer(&fire) {}
    runnable* run() noexcept override {
        ++rang;
        return nullptr;
    }
    static runnable* fire(timer_node& node) noexcept {
        return reinterpret_cast<bell*>(reinterpret_cast<char*>(&node) - offset());
    }
    static std::ptrdiff_t offset() {
        static bell example;
        return reinterpret_cast<char*>(&example.timer) - reinterpret_cast<char*>(&example);
    }
    timer_node timer;
    int rang = 0;
};

// Runs so many times, and says then how often the reactor had been asked.
struct turns final : runnable {
    turns(loop& l, int n, const int& looks) : where(l), left(n), asked(looks) {}
    runnable* run() noexcept override {
        if (--left > 0) where.post(this);
        if (clock != nullptr) clock->advance(takes);
        seen = asked;
        return nullptr;
    }
    loop& where;
    int left;
    const int& asked;
    int seen = 0;
    manual_clock* clock = nullptr;
    std::chrono::microseconds takes{0};
};

// Finds all of those when it is first asked.
struct prepared_reactor final : driver {
    prepared_reactor(std::deque<turns>& found, int& looks) : ready(found), asked(looks) {}
    void wait(std::chrono::nanoseconds) noexcept override {}
    void wake() noexcept override {}
    void poll() noexcept override {
        if (asked++ == 0)
            for (turns& one : ready) one.where.post(&one);
    }
    std::deque<turns>& ready;
    int& asked;
};

}  // namespace

WEFT_TEST("loop: the reactor is asked again when as many have run as it found last") {
    manual_clock clock;  // which stands still: nobody takes long
    loop s({.clock = &clock});
    int looks = 0;
    std::deque<turns> found;
    for (int i = 0; i < 200; ++i) found.emplace_back(s, 1, looks);
    turns busy(s, 1000, looks);
    CHECK(s.attach(std::make_unique<prepared_reactor>(found, looks)));
    s.post(&busy);
    s.run();
    for (const turns& one : found) CHECK(one.seen == 1);
    CHECK(busy.seen > 1);  // it is asked, though there is always somebody ready
}

WEFT_TEST("loop: the reactor is asked within a millisecond, however many it found") {
    manual_clock clock;
    loop s({.clock = &clock});
    int looks = 0;
    std::deque<turns> found;
    for (int i = 0; i < 2000; ++i) {
        turns& one = found.emplace_back(s, 1, looks);
        one.clock = &clock;
        one.takes = 50us;
    }
    turns busy(s, 1000, looks);
    CHECK(s.attach(std::make_unique<prepared_reactor>(found, looks)));
    s.post(&busy);
    s.run();
    int turns_since = 0;
    int most = 0;
    for (std::size_t i = 64; i < found.size(); ++i) {  // by then it knows how long they take
        turns_since = found[i].seen == found[i - 1].seen ? turns_since + 1 : 1;
        most = std::max(most, turns_since);
    }
    CHECK(most * 50us < 1ms);
}

WEFT_TEST("loop: after nothing to do at the eighth dispatch the reactor is asked within 16 more") {
    manual_clock clock;
    loop s({.clock = &clock});
    int looks = 0;
    std::deque<turns> none;
    CHECK(s.attach(std::make_unique<prepared_reactor>(none, looks)));
    s.run();  // nothing to do
    std::deque<turns> later;
    for (int i = 0; i < 100; ++i) later.emplace_back(s, 1, looks);
    struct posts_from_outside final : runnable {
        explicit posts_from_outside(std::deque<turns>& all) : posted(all) {}
        runnable* run() noexcept override {
            std::thread([this] {
                for (turns& one : posted) one.where.post(&one);
            }).join();
            return nullptr;
        }
        std::deque<turns>& posted;
    } last(later);
    std::deque<turns> first;
    for (int i = 0; i < 7; ++i) s.post(&first.emplace_back(s, 1, looks));
    s.post(&last);
    s.run();
    // The first of a round is not counted.
    CHECK(std::ranges::count(later, 0, &turns::seen) <= 1 + 16);
}

WEFT_TEST("loop: runs what was posted in the order of posting") {
    loop s;
    std::string log;
    scripted a(log, 'a');
    scripted b(log, 'b');
    scripted c(log, 'c');
    for (scripted* one : {&a, &b, &c}) s.post(one);
    CHECK(!s.run());
    CHECK(log == "abc");
    s.post(&b);  // and can be used again
    s.run();
    CHECK(log == "abcb");
}

WEFT_TEST("loop: what run() returns runs next, itself included, without recursion") {
    loop s;
    std::string log;
    scripted a(log, 'a');
    scripted b(log, 'b');
    scripted c(log, 'c');
    a.times = 3;
    a.following = &c;
    s.post(&a);
    s.post(&b);
    s.run();
    CHECK(log == "aaacb");
}

WEFT_TEST("loop: a long chain of transfers lets what comes from outside in") {
    loop s;
    std::string log;
    std::atomic<bool> came = false;
    struct chain final : runnable {
        runnable* run() noexcept override {
            ++length;
            return came ? nullptr : this;
        }
        explicit chain(std::atomic<bool>& c) : came(c) {}
        std::atomic<bool>& came;
        long length = 0;
    } endless(came);
    s.post(&endless);
    std::thread poster([&] { post(s, [&] { came = true; }); });
    s.run();
    poster.join();
    CHECK(came);
}

WEFT_TEST("loop: a step runs one runnable, and puts a transfer's target at the head") {
    loop s;
    std::string log;
    scripted a(log, 'a');
    scripted b(log, 'b');
    scripted c(log, 'c');
    a.following = &c;
    s.post(&a);
    s.post(&b);
    CHECK(s.step());
    CHECK(log == "a");
    CHECK(s.step());
    CHECK(log == "ac");
    CHECK(s.step());
    CHECK(!s.step());
    CHECK(log == "acb");
}

WEFT_TEST("loop: posted callables run, large and move-only ones too") {
    loop s;
    int sum = 0;
    post(s, [&, big = std::vector<int>(1000, 1)] { sum += static_cast<int>(big.size()); });
    post(s, [&, one = std::make_unique<int>(7)] { sum += *one; });
    CHECK(s.alive() == 2);
    s.run();
    CHECK(sum == 1007);
    CHECK(s.alive() == 0);
}

WEFT_TEST("loop: an exception of a posted callable goes to the handler") {
    std::string said;
    loop s({.unhandled = [&](std::exception_ptr error, runnable&) {
        try {
            std::rethrow_exception(error);
        } catch (const std::runtime_error& e) { said = e.what(); }
    }});
    post(s, [] { throw std::runtime_error("nobody's"); });
    s.run();
    CHECK(said == "nobody's");
}

WEFT_TEST("loop: posts from other threads arrive, and wake it, in stress") {
    loop s;
    constexpr int threads = 3;
    const long each = weft_test::stress_count(1'000'000);
    long count = 0;
    s.add_work(1);  // until all have come
    std::vector<std::thread> posters;
    for (int t = 0; t < threads; ++t)
        posters.emplace_back([&] {
            for (long i = 0; i < each; ++i)
                post(s, [&] {
                    if (++count == threads * each) s.add_work(-1);
                });
        });
    s.run();
    for (std::thread& poster : posters) poster.join();
    CHECK(count == threads * each);
}

WEFT_TEST("loop: outstanding work that ends in another thread ends run()") {
    loop s;
    s.add_work(1);
    std::thread ender([&] { s.add_work(-1); });
    s.run();
    ender.join();
    CHECK(s.alive() == 0);
}

WEFT_TEST("loop: two loops post to each other from their threads in stress") {
    const long rounds = weft_test::stress_count(500'000);
    loop one;
    loop two;
    one.add_work(1);
    two.add_work(1);
    struct ball final : runnable {
        runnable* run() noexcept override {
            if (--left == 0) {
                from->add_work(-1);
                to->add_work(-1);
                return nullptr;
            }
            std::swap(from, to);
            from->post(this);
            return nullptr;
        }
        loop* from;
        loop* to;
        long left;
    } b;
    b.from = &one;
    b.to = &two;
    b.left = rounds;
    one.post(&b);
    std::thread other([&] { two.run(); });
    one.run();
    other.join();
    CHECK(b.left == 0);
}

WEFT_TEST("loop: without external wakes, work that nobody finishes is reported") {
    loop s({.external_wakes = false});
    s.add_work(1);
    const stuck_report report = s.run();
    CHECK(report);
    CHECK(report.text().find("1 units of work") != std::string::npos);
    s.add_work(-1);
    CHECK(!s.run());
}

WEFT_TEST("loop: what came while somebody awaited others runs, also when nobody does any more") {
    struct awaits final : runnable {
        awaits(loop& l, runnable& r) : where(l), posted(r) {}
        runnable* run() noexcept override {
            const detail::awaits_others meanwhile(detail::worker_of_this_thread());
            std::thread([this] { where.post(&posted); }).join();
            return nullptr;
        }
        loop& where;
        runnable& posted;
    };
    loop s({.external_wakes = false});
    std::string log;
    scripted last(log, 'l');
    awaits first(s, last);
    s.post(&first);
    CHECK(!s.run());
    CHECK(log == "l");
}

WEFT_TEST("stuck_report: tells so many lines, and how many more there are") {
    const stuck_report report{{"a", "b", "c"}};
    CHECK(report.text() == "a\nb\nc\n");
    CHECK(report.text(3) == report.text());
    CHECK(report.text(1) == "a\nand 2 more\n");
    CHECK(stuck_report{}.text(0).empty());
}

WEFT_TEST("loop: a manual clock moves only by hand") {
    manual_clock clock;
    loop s({.external_wakes = false, .clock = &clock});
    CHECK(&s.clock() == &clock);
    const time_point before = s.clock().now();
    clock.advance(3s);
    CHECK(s.clock().now() - before == 3s);
}

WEFT_TEST("loop: the same seed gives the same numbers") {
    loop a({.seed = 42});
    loop b({.seed = 42});
    loop c({.seed = 43});
    const auto first = a.random().next();
    CHECK(first == b.random().next());
    CHECK(first != c.random().next());
}

WEFT_TEST("loop: a descriptor becomes readable when another thread posts") {
    loop s;
    const int descriptor = s.descriptor();
    const auto readable = [&](int limit) {
        pollfd watched{.fd = descriptor, .events = POLLIN, .revents = 0};
        return ::poll(&watched, 1, limit) == 1;
    };
    s.poll();
    CHECK(!readable(0));
    bool ran = false;
    std::thread poster([&] { post(s, [&] { ran = true; }); });
    CHECK(readable(-1));
    poster.join();
    CHECK(s.poll());
    CHECK(ran);
    CHECK(!readable(0));
}

WEFT_TEST("loop misuse: a post from another thread without external wakes aborts") {
    if (WEFT_TSAN) GTEST_FLAG_SET(death_test_style, "threadsafe");  // no threads after a fork
    const auto misuse = [] {
        loop s({.external_wakes = false});
        post(s, [&] {
            std::thread other([&] { post(s, [] {}); });
            other.join();
        });
        s.run();
    };
    EXPECT_DEATH(misuse(), "external_wakes is false");
}

WEFT_TEST("loop misuse: running a loop from inside itself aborts") {
    const auto misuse = [] {
        loop s;
        post(s, [&] { s.run(); });
        s.run();
    };
    EXPECT_DEATH(misuse(), "loop: run from inside itself");
}

WEFT_TEST("timer queue: fires in the order of deadlines, never early") {
    timer_queue timers(false);
    std::vector<bell> bells(100);
    const time_point start{};
    for (int i = 0; i < 100; ++i)
        timers.arm(bells[static_cast<std::size_t>(i * 37 % 100)].timer,
                   start + std::chrono::milliseconds(i * 37 % 100));
    CHECK(timers.size() == 100);
    CHECK(timers.earliest() == start);
    std::vector<std::ptrdiff_t> order;
    for (int now = 0; now < 100; ++now) {
        timers.expire(start + std::chrono::milliseconds(now),
                      [&](runnable* r) { order.push_back(static_cast<bell*>(r) - bells.data()); });
        CHECK(order.size() == static_cast<std::size_t>(now) + 1);
    }
    CHECK(std::ranges::is_sorted(order));
    CHECK(timers.earliest() == no_deadline);
}

WEFT_TEST("timer queue: of those of one deadline the one that was armed first fires first") {
    timer_queue timers(false);
    std::vector<bell> bells(300);
    const auto deadline = [](std::size_t i) { return time_point(std::chrono::hours(i % 3)); };
    for (std::size_t i = 0; i < bells.size(); ++i) timers.arm(bells[i].timer, deadline(i));
    for (std::size_t i = 0; i < bells.size(); i += 7) {  // again: now it is the last
        CHECK(timer_queue::disarm(bells[i].timer));
        timers.arm(bells[i].timer, deadline(i));
    }
    std::vector<std::size_t> wanted;
    for (std::size_t hour = 0; hour < 3; ++hour) {
        for (std::size_t i = hour; i < bells.size(); i += 3)
            if (i % 7 != 0) wanted.push_back(i);
        for (std::size_t i = hour; i < bells.size(); i += 3)
            if (i % 7 == 0) wanted.push_back(i);
    }
    std::vector<std::size_t> order;
    timers.expire(deadline(2), [&](runnable* r) {
        order.push_back(static_cast<std::size_t>(static_cast<bell*>(r) - bells.data()));
    });
    CHECK(order == wanted);
}

WEFT_TEST("timer queue: a disarmed node is out at once, wherever it is in the heap") {
    timer_queue timers(true);
    std::vector<bell> bells(1000);
    std::uint64_t random = 1;
    const auto next = [&] { return random = random * 6364136223846793005U + 1442695040888963407U; };
    for (int round = 0; round < 50; ++round) {
        for (bell& one : bells)
            timers.arm(one.timer, time_point(std::chrono::nanoseconds(next() >> 50)));
        std::vector<bool> gone(bells.size());
        for (std::size_t i = 0; i < bells.size(); ++i)
            if (next() >> 63) {
                CHECK(timer_queue::disarm(bells[i].timer));
                CHECK(!timer_queue::disarm(bells[i].timer));
                gone[i] = true;
            }
        std::size_t fired = 0;
        timers.expire(no_deadline - 1ns, [&](runnable* r) {
            CHECK(!gone[static_cast<std::size_t>(static_cast<bell*>(r) - bells.data())]);
            ++fired;
        });
        CHECK(fired == static_cast<std::size_t>(std::ranges::count(gone, false)));
        REQUIRE(timers.size() == 0);
    }
}

WEFT_TEST("timer queue: disarm and fire from two threads in stress, one of them wins") {
    const long rounds = weft_test::stress_count(1'000'000);
    timer_queue timers(true);
    bell one;
    std::atomic<long> armed = 0;
    std::atomic<long> settled = 0;
    long disarmed = 0;
    long fired = 0;
    std::thread other([&] {
        for (long i = 1; i <= rounds; ++i) {
            while (armed.load(std::memory_order_acquire) < i) std::this_thread::yield();
            if (timer_queue::disarm(one.timer)) ++disarmed;
            settled.store(i, std::memory_order_release);
        }
    });
    for (long i = 1; i <= rounds; ++i) {
        timers.arm(one.timer, time_point{});
        armed.store(i, std::memory_order_release);
        timers.expire(time_point{}, [&](runnable*) { ++fired; });
        while (settled.load(std::memory_order_acquire) < i) std::this_thread::yield();
    }
    other.join();
    CHECK(disarmed + fired == rounds);
}

WEFT_TEST("deadline: durations saturate, and what is not positive has passed") {
    const time_point now = std::chrono::steady_clock::now();
    CHECK(deadline_after(now, 0s) == now);
    CHECK(deadline_after(now, -5h) == now);
    CHECK(deadline_after(now, std::chrono::hours::max()) == no_deadline);
    CHECK(deadline_after(now, std::chrono::nanoseconds::max()) == no_deadline);
    CHECK(deadline_after(now, std::chrono::duration<double>(1e300)) == no_deadline);
    CHECK(deadline_after(now, std::chrono::duration<double>(std::nan(""))) == now);
    CHECK(deadline_after(now, std::chrono::hours::min()) == now);
    CHECK(deadline_after(now, 3ms) == now + 3ms);
    CHECK(deadline_after(time_point(-1h), 3ms) == time_point(-1h + 3ms));
    CHECK(deadline_after(time_point::min(), std::chrono::hours::max()) == no_deadline);
    CHECK(deadline_after(now, std::chrono::duration<double, std::nano>(0.5)) == now + 1ns);
}
