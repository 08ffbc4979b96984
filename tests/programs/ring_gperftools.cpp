// ring_gperftools.cpp - profiles a ring of coroutines with Google's profiler.
//
//     ring_gperftools FILE own|ucontext|thread|swapped
//
// A token goes round; each coroutine adds its number and yields. FILE gets the profile. It says
// "right, with samples" if the token is right and the profiler has seen enough, and ends with 0.
//
// SPDX-License-Identifier: Apache-2.0
#include <gperftools/profiler.h>

#include <weft/coroutine/coroutine.hpp>
#include <weft/coroutine/shared_stack.hpp>
#include <weft/coroutine/thread_cache.hpp>

#include <cstdint>
#include <cstdio>
#include <string_view>
#include <vector>

namespace {

constexpr unsigned ring_size = 16;
constexpr long most_laps = 20'000'000;
constexpr int enough_samples = 20;

int samples() {
    ProfilerState state{};
    ProfilerGetCurrentState(&state);
    return state.samples_gathered;
}

template <class Coroutine>
int run(const char* file, const weft::coroutine_options& options) {
    std::uint64_t token = 0;
    std::vector<Coroutine> ring;
    for (unsigned i = 0; i < ring_size; ++i) {
        ring.emplace_back(options, [&token, i] {
            for (std::uint64_t local = i;; ++local) {
                token += local;
                weft::this_coroutine::yield();
            }
        });
    }
    if (ProfilerStart(file) == 0) return std::puts("the profiler does not start"), 2;
    std::uint64_t expected = 0;
    long lap = 0;
    int seen = 0;
    for (; lap < most_laps && seen < enough_samples; ++lap) {
        for (unsigned i = 0; i < ring_size; ++i) {
            ring[i].resume();
            expected += i + static_cast<std::uint64_t>(lap);
        }
        if (lap % 64 == 0) seen = samples();
    }
    ProfilerStop();
    std::printf("%s, %s samples\n", token == expected ? "right" : "wrong",
                seen >= enough_samples ? "with" : "without");
    return token == expected && seen >= enough_samples ? 0 : 1;
}

}  // namespace

int main(int argc, char** argv) {
    if (argc != 3) return 2;
    const std::string_view backend = argv[2];
    if (backend == "ucontext") return run<weft::ucontext_coroutine>(argv[1], {});
    if (backend == "thread") {
        weft::thread_cache threads;
        return run<weft::thread_coroutine>(argv[1], {.threads = &threads});
    }
    if (backend == "swapped") {
        weft::shared_stack shared;
        return run<weft::swapped_coroutine>(argv[1], {.shared = &shared});
    }
    return run<weft::coroutine>(argv[1], {});
}
