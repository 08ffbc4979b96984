// futures.cpp - the snippets of docs/futures.md.
//
// SPDX-License-Identifier: Apache-2.0
#include <string>
#include <utility>
#include <vector>

#include <weft/weft.hpp>

#include "check.hpp"

using namespace weft;

namespace {

using page = std::string;

page fetch(const std::string& url) { return "page of " + url; }

int shown = 0;

void show(const page& one, const page& two) {
    check(one == "page of a" && two == "page of b", "pages");
    ++shown;
}

}  // namespace

int main() {
    return run([] {
        pool workers({.workers = 1});
        const std::string first = "a";
        const std::string second = "b";
        // [async]
        future<page> one = async([&] { return fetch(first); });            // this executor's fiber
        future<page> two = async(workers, [&] { return fetch(second); });  // another's
        show(one.get(), two.get());
        // [/async]
        const auto f = [] { return 1; };
        const auto g = [] { return 2; };
        std::vector<future<int>> futures;
        futures.push_back(async(f));
        futures.push_back(async(g));
        // [when]
        auto [a, b] = when_all(async(f), async(g)).get();  // two futures, both ready
        auto any = when_any(std::move(futures)).get();     // any.index is ready; .futures are all
        // [/when]
        check(a.get() == 1 && b.get() == 2 && any.index < 2, "both");
        return shown == 1 ? 0 : 1;
    });
}
