// first_of_two.cpp - two ways to the same answer: the faster one counts, the other is cancelled.
//
// The children of a task group never outlive it, so they may use the locals of the function that
// opened it; a deadline around all of it holds for them, too.
//
// SPDX-License-Identifier: Apache-2.0
#include <cstdio>
#include <string>

#include <weft/weft.hpp>

using namespace weft;
using namespace std::chrono_literals;

struct replica {
    std::string name;
    std::chrono::milliseconds latency;
    bool gave_up = false;
};

// The answer, unless somebody does not want it any more.
std::string ask(replica& one, const std::string& question) {
    if (!sleep_for(one.latency)) one.gave_up = true;
    this_fiber::throw_if_cancelled();
    return question + " from " + one.name;
}

int main() {
    return run([] {
        replica near{"near", 1ms};
        replica far{"far", 1h};

        const std::string answer = with_task_group<std::string>([&](task_group<std::string>& g) {
            g.add([&] { return ask(near, "weather"); });
            g.add([&] { return ask(far, "weather"); });
            return g.next();
        });
        std::printf("%s; far %s\n", answer.c_str(), far.gave_up ? "gave up" : "goes on");

        far.gave_up = false;
        const auto late = with_timeout(1ms, [&] { return ask(far, "news"); });
        std::printf("within 1 ms: %s\n", late ? late->c_str() : late.error().message().c_str());

        return answer == "weather from near" && far.gave_up && !late ? 0 : 1;
    });
}
