// debugging.cpp - the snippets of docs/debugging.md.
//
// SPDX-License-Identifier: Apache-2.0
#include <atomic>
#include <chrono>
#include <cstdio>
#include <string>
#include <string_view>
#include <thread>

#include <weft/weft.hpp>

#include "check.hpp"

using namespace weft;
using namespace std::chrono_literals;

namespace {

void dumped() {
    pool p({.workers = 1});
    event stop;
    event waits;
    go(p, {.name = "reader"}, [&] {
        waits.set();
        stop.wait();
    });
    waits.wait();
    std::string seen;
    const auto log = [&](std::string_view line) { seen += line; };
    while (seen.find("reader") == std::string::npos) {  // once it waits
        seen.clear();
        // [dump]
        weft::dump([&](std::string_view line) { log(line); });
        // [/dump]
        std::this_thread::yield();
    }
    stop.set();
    p.drain();
    check(seen.find("reader") != std::string::npos, "the reader is in the dump");
}

void watched() {
    std::atomic<int> reports = 0;
    // [watchdog]
    pool p({.workers = 2, .watchdog = 5ms, .stalled = [&](const stall_report& stall) {
                std::fputs(stall.text().c_str(), stderr);  // who, for how long, and where
                ++reports;
            }});
    // [/watchdog]
    go(p, {.name = "greedy"}, [&] {
        while (reports == 0) {}
    });
    p.drain();
    check(reports == 1, "reported once");
}

}  // namespace

int main() {
    dumped();
    watched();
    return 0;
}
