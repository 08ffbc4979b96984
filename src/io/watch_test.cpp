// watch_test.cpp - what a reactor does with a report, without a kernel.
//
// SPDX-License-Identifier: Apache-2.0
#include "io/watch.hpp"

#include <set>

#include <weft/exec/loop.hpp>
#include <weft/exec/worker.hpp>

#include "io/reactor.hpp"
#include "weft_test.hpp"

using namespace weft;
using detail::watch;
using detail::watch_table;

namespace {

class told_by_hand final : public detail::reactor {
public:
    explicit told_by_hand(const detail::worker& owner) : reactor(owner, io::reactor_kind::none) {}
    using reactor::tell;

    [[nodiscard]] std::error_code submit(int, std::uint64_t) noexcept override { return {}; }
    void cancel(int, std::uint64_t) noexcept override {}
    bool poll(std::chrono::nanoseconds) noexcept override { return false; }
    void interrupt() noexcept override { ++interrupts; }
    void deliver() noexcept override {}
    [[nodiscard]] int descriptor() const noexcept override { return -1; }

    int interrupts = 0;
};

struct desk {
    loop s;
    detail::worker owner{s};
    told_by_hand reactor{owner};
};

bool is_ready(watch& one, io::direction which) { return one.of(which).ready; }

}  // namespace

WEFT_TEST("watch: a report for a descriptor that is gone is not one for the next in its place") {
    desk d;
    watch& first = d.reactor.watches.take();
    const std::uint64_t old = first.key();
    CHECK(watch_table::retire(first) == old);
    d.reactor.watches.give_back(first);
    watch& second = d.reactor.watches.take();
    CHECK(&second == &first);
    CHECK(second.key() != old);
    d.reactor.tell(old, true, true, true);
    CHECK(!is_ready(second, io::direction::read));
    CHECK(!is_ready(second, io::direction::write));
    CHECK(!second.of(io::direction::read).ended);
    d.reactor.tell(second.key(), true, false, true);
    CHECK(is_ready(second, io::direction::read));
    CHECK(!is_ready(second, io::direction::write));
    CHECK(second.of(io::direction::read).ended);
}

WEFT_TEST("watch: thousands have each a place of their own, found by its number") {
    desk d;
    std::set<std::uint32_t> seen;
    for (std::uint32_t i = 0; i < 5000; ++i) {
        watch& one = d.reactor.watches.take();
        CHECK(seen.insert(one.index).second);
        REQUIRE(&d.reactor.watches.at(one.index) == &one);
        CHECK(one.home == &d.reactor);
    }
}

WEFT_TEST("watch: a reactor is interrupted only if it sleeps, and a wake before that counts") {
    desk d;
    d.reactor.wake();
    CHECK(d.reactor.interrupts == 0);
    CHECK(!d.reactor.fall_asleep());
    d.reactor.wake_up();
    CHECK(d.reactor.fall_asleep());
    d.reactor.wake();
    d.reactor.wake();
    CHECK(d.reactor.interrupts == 1);
    d.reactor.wake_up();
    CHECK(d.reactor.fall_asleep());
}
