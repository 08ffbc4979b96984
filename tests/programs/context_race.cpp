// context_race.cpp - a data race between a context and a thread, for ThreadSanitizer to find.
//
//     context_race native|portable
//
// SPDX-License-Identifier: Apache-2.0
#include <weft/context/context.hpp>

#include <atomic>
#include <string_view>
#include <thread>
#include <vector>

namespace {

long counter = 0;
std::atomic<bool> written = false;

template <class Context>
struct pair {
    Context outside;
    Context inside;
};

}  // namespace

extern "C" [[gnu::noinline]] void weft_test_racer() { ++counter; }

template <class Context>
static void run() {
    // Relaxed: they take turns, and nothing orders the one before the other.
    std::thread other([] {
        ++counter;
        written.store(true, std::memory_order_relaxed);
    });
    while (!written.load(std::memory_order_relaxed)) std::this_thread::yield();
    std::vector<std::byte> stack(std::size_t{64} * 1024);
    pair<Context> p;
    const auto entry = +[](void* argument) {
        auto& me = *static_cast<pair<Context>*>(argument);
        Context::swap(me.inside, me.outside);
        weft_test_racer();
        Context::jump(me.outside);
    };
    p.inside = Context::make(stack, entry, &p);
    Context::swap(p.outside, p.inside);
    Context::swap(p.outside, p.inside);
    other.join();
}

int main(int argc, char** argv) {
    if (argc == 2 && std::string_view(argv[1]) == "portable") {
        run<weft::portable_context>();
    } else {
        run<weft::context>();
    }
}
