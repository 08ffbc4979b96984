// loops.cpp - the snippets of docs/loops.md.
//
// SPDX-License-Identifier: Apache-2.0
#include <poll.h>

#include <algorithm>
#include <chrono>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include <weft/weft.hpp>

#include "check.hpp"

using namespace weft;

namespace {

void order() {
    // [order]
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
    // [/order]
    check(out == std::vector{1, 3, 2, 4}, "order");
}

void stuck() {
    fiber_handle parked;
    // [stuck]
    loop s({.external_wakes = false});
    go(s, {.name = "reader"}, [&] {
        parked = this_fiber::handle();
        (void)park();
    });
    const stuck_report report = s.run();
    std::fputs(report.text().c_str(), stdout);  // fiber reader: is parked, started at main.cpp:12
    // [/stuck]
    check(report.text().find("reader: is parked") != std::string::npos, "stuck report");
    unpark(parked);
    s.run();
}

void time_that_stands() {
    bool woken = false;
    // [manual_clock]
    manual_clock clock;
    loop s({.external_wakes = false, .clock = &clock});
    go(s, [&] { woken = sleep_for(std::chrono::hours(1)).has_value(); });
    s.run_until_blocked();  // it sleeps
    clock.advance(std::chrono::hours(1));
    s.run();  // it has woken, and no time has passed
    // [/manual_clock]
    check(woken, "woken");
}

int milliseconds_until(std::optional<time_point> deadline) {
    if (!deadline) return -1;
    const auto left = *deadline - steady_clock_source().now();
    const auto whole = std::chrono::ceil<std::chrono::milliseconds>(left).count();
    return static_cast<int>(std::max<decltype(whole)>(whole, 0));
}

void hosted() {
    loop guest;
    bool slept = false;
    bool posted = false;
    go(guest, [&] { slept = sleep_for(std::chrono::milliseconds(2)).has_value(); });
    std::jthread other([&] { go(guest, [&] { posted = true; }); });
    // [host]
    pollfd watched{.fd = guest.descriptor(), .events = POLLIN, .revents = 0};
    while (guest.alive() != 0) {
        ::poll(&watched, 1, milliseconds_until(guest.next_deadline()));
        guest.poll();
    }
    // [/host]
    other.join();
    guest.run();
    check(slept && posted, "hosted");
}

}  // namespace

int main() {
    order();
    stuck();
    time_that_stands();
    hosted();
    return 0;
}
