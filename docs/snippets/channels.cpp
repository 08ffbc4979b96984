// channels.cpp - the snippets of docs/channels.md.
//
// SPDX-License-Identifier: Apache-2.0
#include <chrono>
#include <cstdio>
#include <deque>
#include <memory>
#include <system_error>
#include <utility>
#include <vector>

#include <weft/weft.hpp>

#include "check.hpp"

using namespace weft;
using namespace std::chrono_literals;

namespace {

struct job_type {};

void numbers_through() {
    loop s;
    // [numbers]
    channel<int> numbers(16);
    go(s, [&] {
        for (int i = 0; i < 100; ++i)
            if (!numbers.send(i)) return;  // closed, or cancelled
        numbers.close();
    });
    go(s, [&] {
        for (int n : numbers) std::printf("%d\n", n);
    });
    // [/numbers]
    s.run();
    check(numbers.last_error() == errc::closed, "closed");
}

void here_or_there() {
    channel<std::unique_ptr<job_type>> quick;
    channel<std::unique_ptr<job_type>> slow(1);
    // [try]
    auto job = std::make_unique<job_type>();
    if (!quick.try_send(std::move(job))) slow.send(std::move(job)).value();
    // [/try]
    check(slow.receive().value() != nullptr, "sent elsewhere");
}

void selecting() {
    using job = int;
    channel<job> jobs(1);
    channel<int> results;
    jobs.send(3).value();
    bool done = false;
    bool sent = false;
    int ran = 0;
    int result = 4;
    const auto run = [&](job j) { ran = j; };
    const auto flush = [] {};
    // [select]
    auto taken =
        select(on_receive(jobs,
                          [&](std::expected<job, std::error_code> j) {
                              if (j)
                                  run(*j);
                              else
                                  done = true;
                          }),
               on_send(results, std::move(result),
                       [&](std::expected<void, std::error_code> r) { sent = r.has_value(); }),
               on_timeout(10ms, [&] { flush(); }));
    // [/select]
    check(taken == 0u && ran == 3 && !done && !sent, "the job was taken");
}

void any_number() {
    std::deque<channel<int>> channels(3);
    int got = 0;
    const auto f = [&](std::expected<int, std::error_code> n) { got = n.value(); };
    fiber sender([&] { channels[1].send(5).value(); });
    // [range]
    std::vector<std::unique_ptr<select_case>> cases;
    for (auto& c : channels)
        cases.push_back(std::make_unique<decltype(on_receive(c, f))>(on_receive(c, f)));
    cases.push_back(std::make_unique<decltype(on_timeout(1s))>(on_timeout(1s)));
    std::size_t which = select(cases).value();
    // [/range]
    check(which == 1 && got == 5, "the second");
    sender.join();
}

}  // namespace

int main() {
    numbers_through();
    return run([] {
        here_or_there();
        selecting();
        any_number();
        return 0;
    });
}
