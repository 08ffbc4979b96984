// consumer.cpp - a user's program: it sees weft only as installed or as a subdirectory.
//
// SPDX-License-Identifier: Apache-2.0
#include <array>
#include <chrono>
#include <cstddef>
#include <cstdio>
#include <stdexcept>
#include <string_view>

#include <weft/weft.hpp>

#if WEFT_VERSION < 100
#error "older than the first version"
#endif

// What throws, waits, is cancelled and does I/O over the library's border, on two threads.
const char* what_fails_on_a_pool() {
    weft::pool p({.workers = 2});
    weft::fiber thrower(p, [] { throw std::runtime_error("thrown"); });
    try {
        thrower.join();
        return "join threw nothing";
    } catch (const std::runtime_error&) {}

    bool woken = true;
    weft::fiber sleeper(p, [&] { woken = weft::sleep_for(std::chrono::hours(1)).has_value(); });
    sleeper.request_stop();
    sleeper.join();
    if (woken) return "a cancelled wait went on";

    int sum = 0;
    weft::channel<int> numbers(1);
    std::array<std::byte, 1> received{};
    weft::fiber parent(p, [&] {
        weft::with_task_group<void>([&](weft::task_group<void>& g) {
            g.add([&] {
                for (int i = 1; i <= 4; ++i) static_cast<void>(numbers.send(i));
                numbers.close();
            });
            for (int value : numbers) sum += value;
        });
        auto [reader, writer] = weft::io::pipe::make().value();
        weft::fiber writes([&] { static_cast<void>(writer.write_all(std::array{std::byte{7}})); });
        static_cast<void>(reader.read_exactly(received));
    });
    parent.join();
    if (sum != 10) return "the channel lost something";
    return received[0] == std::byte{7} ? nullptr : "the pipe lost something";
}

int main() {
    if (weft::version() != std::string_view(EXPECTED_VERSION)) {
        std::puts("the library's version is not the package's");
        return 1;
    }
    weft::generator<int> numbers([](auto& yield) {
        for (int i = 0; i < 3; ++i) yield(i);
    });
    int sum = 0;
    for (int value : numbers) sum += value;
    const char* const failed = sum == 3 ? what_fails_on_a_pool() : "the generator lost something";
    if (failed != nullptr) std::puts(failed);
    return failed == nullptr ? 0 : 1;
}
