// waiting.cpp - the snippets of docs/waiting.md.
//
// SPDX-License-Identifier: Apache-2.0
#include <chrono>
#include <expected>
#include <string>
#include <system_error>
#include <thread>

#include <weft/weft.hpp>

#include "check.hpp"

using namespace weft;
using namespace std::chrono_literals;

namespace {

void reported() {
    bool stopped = false;
    // [report]
    fiber sleeper([&] {
        if (auto slept = sleep_for(1h); !slept)
            stopped = slept.error() == std::errc::operation_canceled;
    });
    sleeper.request_stop();
    sleeper.join();
    // [/report]
    check(stopped, "reported");
}

void thrown() {
    bool cleaned_up = false;
    binary_semaphore permit(0);
    // [throw]
    fiber waiter([&] {
        const scope_exit clean([&] { cleaned_up = true; });
        permit.acquire();  // throws weft::cancelled: nothing was acquired
    });
    waiter.request_stop();
    waiter.join();  // the edge of every fiber catches it
    // [/throw]
    check(cleaned_up && !permit.try_acquire(), "thrown");
}

std::expected<std::string, std::error_code> answer_of(channel<std::string>& answers) {
    return answers.receive();
}

void limited() {
    channel<std::string> answers;
    const auto limit = 2ms;
    // [deadline]
    auto answer = with_timeout(limit, [&] { return answer_of(answers); });
    if (!answer) check(answer.error() == std::errc::timed_out, "too late");
    // [/deadline]
    check(!answer, "nobody answered");
}

void periodic() {
    int beats = 0;
    event enough;
    const auto beat = [&] {
        if (++beats == 3) enough.set();
    };
    // [periodic]
    fiber heart([&] {
        auto next = std::chrono::steady_clock::now();
        while (sleep_until(next += 2ms)) beat();  // false: it was asked to stop
    });
    // [/periodic]
    enough.wait();
}

void mixed() {
    // [threads]
    channel<int> numbers;
    std::jthread thread([&] {  // a plain thread blocks, a fiber suspends
        for (int i = 1; i <= 3; ++i) numbers.send(i).value();
        numbers.close();
    });
    int sum = 0;
    for (int n : numbers) sum += n;
    // [/threads]
    check(sum == 6, "sum");
}

}  // namespace

int main() {
    return run([] {
        reported();
        thrown();
        limited();
        periodic();
        mixed();
        return 0;
    });
}
