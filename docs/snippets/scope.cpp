// scope.cpp - the snippets of docs/scope.md, and of the README.
//
// SPDX-License-Identifier: Apache-2.0
#include <chrono>
#include <string>

#include <weft/weft.hpp>

#include "check.hpp"

using namespace weft;
using namespace std::chrono_literals;

namespace {

struct my_data {
    int number = 7;
};

int perform_one(const my_data& data) { return data.number; }

int perform_two(const my_data& data) {
    if (!sleep_for(1h)) this_fiber::throw_if_cancelled();
    return -data.number;
}

std::string fetch(const std::string& url) {
    if (!sleep_for(1h)) this_fiber::throw_if_cancelled();
    return url;
}

int grouped(my_data data) {
    // [group]
    int first = with_task_group<int>([&](task_group<int>& g) {
        g.add([&] { return perform_one(data); });
        g.add([&] { return perform_two(data); });
        return g.next();  // the first result; the other is cancelled and waited for
    });
    // [/group]
    return first;
}

bool timed_out() {
    const std::string url = "https://example.org";
    const auto limit = 2ms;
    // [timeout]
    auto page = with_timeout(limit, [&] { return fetch(url); });
    // [/timeout]
    return !page && page.error() == std::errc::timed_out;
}

void bound() {
    wait_group logged;
    logged.add();
    const auto log = [&](const std::string& text) {
        check(text == "GET /", "bound");
        logged.done();
    };
    // [local]
    static task_local<std::string> request{"none"};
    const auto bound = request.bind("GET /");  // until the end of this block
    go([&] { log(*request); });                // "GET /", whenever that runs
    // [/local]
    logged.wait();
}

}  // namespace

int main() {
    return run([] {
        check(grouped({}) == 7, "the first");
        check(timed_out(), "the deadline");
        bound();
        return 0;
    });
}
