// tour.cpp - what weft does, station by station, each with a figure measured just now (`make run`).
//
//   tour [--quick] [--list] [STATION...]      all stations, or those that are named
//
// --quick does a hundredth of the work, and is what the tests run; --list names the stations. A
// station is a function below, another program of examples/, which is started from the folder that
// this one lies in, or both; if that was not built there is no such station, or no such part of it.
//
// SPDX-License-Identifier: Apache-2.0
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

#include <weft/weft.hpp>

using namespace weft;

namespace {

bool quick = false;

int scaled(int full) { return quick ? std::max(full / 100, 2) : full; }

// --- measuring

class stopwatch {
public:
    [[nodiscard]] double nanoseconds() const {
        return std::chrono::duration<double, std::nano>(clock::now() - begun_).count();
    }

private:
    using clock = std::chrono::steady_clock;
    clock::time_point begun_ = clock::now();
};

double resident_bytes() {
    std::ifstream statm("/proc/self/statm");
    double size = 0;
    double resident = 0;
    statm >> size >> resident;
    return resident * static_cast<double>(::sysconf(_SC_PAGESIZE));
}

double free_bytes() {
    std::ifstream meminfo("/proc/meminfo");
    std::string key;
    double kilobytes = 0;
    std::string rest;
    while (meminfo >> key >> kilobytes && std::getline(meminfo, rest))
        if (key == "MemAvailable:") return kilobytes * 1024;
    return 1e9;
}

// What may still be mapped: stacks are address space, of which `ulimit -v` may leave little.
double free_addresses() {
    rlimit limit{};
    if (::getrlimit(RLIMIT_AS, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY) return 1e18;
    return static_cast<double>(limit.rlim_cur);
}

// In a process of its own, whose memory nobody has used before; whether it ended well.
bool apart(const std::function<bool()>& function) {
    std::fflush(stdout);
    const pid_t child = ::fork();
    if (child < 0) return false;
    if (child == 0) {
        const bool right = function();
        std::fflush(stdout);
        std::_Exit(right ? 0 : 1);
    }
    int status = 0;
    return ::waitpid(child, &status, 0) == child && status == 0;
}

// --- the stations

bool order() {
    loop s;
    std::string out;
    go(s, [&] {
        out += " 1";
        yield();
        out += " 2";
    });
    go(s, [&] {
        out += " 3";
        yield();
        out += " 4";
    });
    s.run();

    const int yields = scaled(1'000'000);
    for (int i = 0; i < 2; ++i)
        go(s, [&] {
            for (int j = 0; j < yields; ++j) yield();
        });
    const stopwatch watch;
    s.run();
    std::printf("  order:%s, the same each time\n", out.c_str());
    std::printf("  now:   %.1f ns a yield, over %d\n", watch.nanoseconds() / (2.0 * yields),
                2 * yields);
    return out == " 1 3 2 4";
}

bool stepping() {
    loop s;
    std::string out;
    go(s, [&] {
        out += " foo";
        yield();
        out += " bar";
    });
    go(s, [&] { out += " baz"; });
    for (const std::size_t alive : s.steps()) out += " " + std::to_string(alive);

    const int fibers = scaled(100'000);
    for (int i = 0; i < fibers; ++i) go(s, [] { yield(); });
    const stopwatch watch;
    const std::size_t steps = s.run_until_blocked();
    std::printf("  steps:%s\n", out.c_str());
    std::printf("  now:   %.0f ns a step, over %zu\n",
                watch.nanoseconds() / static_cast<double>(steps), steps);
    return out == " foo 2 baz 1 bar 0" && s.alive() == 0;
}

// The same program on one kind of stack: many park, and two yield to each other.
bool one_kind(const char* name, stack_kind kind, int parked, int yields) {
    loop s({.external_wakes = false});
    std::vector<fiber_handle> handles(static_cast<std::size_t>(parked));
    const double before = resident_bytes();
    for (fiber_handle& handle : handles)
        go(s, {.kind = kind}, [&handle] {
            handle = this_fiber::handle();
            (void)park();
        });
    s.run_until_blocked();
    const double bytes = (resident_bytes() - before) / parked;
    for (const fiber_handle& handle : handles) unpark(handle);
    s.run();

    for (int i = 0; i < 2; ++i)
        go(s, {.kind = kind}, [yields] {
            for (int j = 0; j < yields; ++j) yield();
        });
    const stopwatch watch;
    s.run();
    std::printf("  %-9s %7.0f bytes parked (of %d)   %8.1f ns a yield\n", name, bytes, parked,
                watch.nanoseconds() / (2.0 * yields));
    return s.alive() == 0;
}

bool back_ends() {
    struct row {
        const char* name;
        stack_kind kind;
        int parked;
        int yields;
    };
    bool right = true;
    for (const row& r : {row{"own", stack_kind::own, 20'000, 1'000'000},
                         row{"swapped", stack_kind::swapped, 20'000, 200'000},
                         row{"ucontext", stack_kind::ucontext, 20'000, 100'000},
                         row{"thread", stack_kind::thread, 500, 20'000}})
        right &=
            apart([&] { return one_kind(r.name, r.kind, scaled(r.parked), scaled(r.yields)); });
    return right;
}

bool ring() {
    constexpr int length = 8;
    const int cycles = 100;
    const int rounds = scaled(10'000);
    loop s({.external_wakes = false, .wake_slot = true});
    std::vector<std::unique_ptr<binary_semaphore>> gates;
    for (int i = 0; i < length * cycles; ++i)
        gates.push_back(std::make_unique<binary_semaphore>(0));
    long passed = 0;
    for (int i = 0; i < length * cycles; ++i) {
        const int first = i - i % length;
        binary_semaphore& mine = *gates[static_cast<std::size_t>(i)];
        binary_semaphore& next = *gates[static_cast<std::size_t>(first + (i + 1 - first) % length)];
        go(s, [&, starts = i == first] {
            for (int j = 0; j < rounds; ++j) {
                if (starts) next.release();
                mine.acquire();
                if (!starts) next.release();
                ++passed;
            }
        });
    }
    const stopwatch watch;
    s.run();
    std::printf("  now:   %.1f million messages a second, round %d rings of %d fibers\n",
                static_cast<double>(passed) / watch.nanoseconds() * 1e3, cycles, length);
    return passed == static_cast<long>(length) * cycles * rounds;
}

// As many as there is memory for, with room to spare: each takes about a page and a half; and on a
// slow machine as many as are there after some seconds, so that the whole stays below a minute.
bool million() {
    constexpr int at_once = 10'000;
    constexpr double most_seconds = 12;
    const bool cheap = shared_stack_depot().counters().guard == guard_kind::install;
    const double room = std::min(free_bytes() / 2 / 6'000, free_addresses() / 2 / 100'000);
    const int wanted = cheap ? scaled(1'000'000) : scaled(20'000);
    const int most = room < wanted ? static_cast<int>(room) : wanted;
    loop s({.external_wakes = false});
    event all_may_end;
    long found = 0;
    const double before = resident_bytes();
    const stopwatch watch;
    int count = 0;
    double seconds = 0;
    while (count < most && seconds < most_seconds) {
        for (const int end = std::min(count + at_once, most); count < end; ++count)
            go(s, [&] {
                all_may_end.wait();
                ++found;
            });
        s.run_until_blocked();  // each of them waits now
        seconds = watch.nanoseconds() / 1e9;
    }
    const double grown = resident_bytes() - before;
    const stack_counters stacks = shared_stack_depot().counters();
    all_may_end.set();
    s.run();
    std::printf("  now:   %d fibers wait at once, %zu guarded stacks in %zu reservations\n", count,
                stacks.live, stacks.mapped);
    std::printf("         %.2f s to start them, %.2f GB, %.0f bytes each\n", seconds, grown / 1e9,
                grown / count);
    return found == count;
}

#if __has_include(<weft/actor/actor_context.hpp>)
class counter {
public:
    long increment() {
        const std::lock_guard inside(context_);
        return ++value_;
    }

private:
    actor_context context_;
    long value_ = 0;
};

bool actor() {
    const int fibers = 64;
    const int calls = scaled(20'000);
    counter one;
    pool p;
    const stopwatch watch;
    for (int i = 0; i < fibers; ++i)
        go(p, [&] {
            for (int j = 0; j < calls; ++j) one.increment();
        });
    p.drain();
    const double all = static_cast<double>(fibers) * calls;
    std::printf("  now:   %.0f ns a call, %d fibers on %u workers, %.0f calls counted\n",
                watch.nanoseconds() / all, fibers, p.workers(), all);
    return one.increment() == static_cast<long>(fibers) * calls + 1;
}
#endif

// A tree of so many leaves, numbered from the left, whose left side has this part of them.
struct tree {
    int leaf = 0;
    std::unique_ptr<tree> left;
    std::unique_ptr<tree> right;
};

std::unique_ptr<tree> grow(int first, int leaves, double part) {
    auto made = std::make_unique<tree>();
    made->leaf = first;
    if (leaves == 1) return made;
    const int on_the_left = std::clamp(static_cast<int>(leaves * part), 1, leaves - 1);
    made->left = grow(first, on_the_left, part);
    made->right = grow(first + on_the_left, leaves - on_the_left, part);
    return made;
}

void walk(const tree& t, auto& yield) {
    if (t.left == nullptr) return yield(t.leaf);
    walk(*t.left, yield);
    walk(*t.right, yield);
}

bool example(const char* name);

bool fringe() {
    const int leaves = scaled(1'000'000);
    const auto a = grow(0, leaves, 0.5);
    const auto b = grow(0, leaves, 0.3);
    const auto leaves_of = [](const tree& t) {
        return generator<int>([&t](auto& yield) { walk(t, yield); });
    };
    const bool right = example("same_fringe");
    const stopwatch watch;
    const bool same = std::ranges::equal(leaves_of(*a), leaves_of(*b));
    std::printf("  now:   %.1f ns a leaf, over two trees of %d\n",
                watch.nanoseconds() / (2.0 * leaves), leaves);
    return right && same;
}

// From the answer of one child until the other, which was asleep, has been cancelled and has ended.
bool first() {
    const bool right = example("first_of_two");
    const int rounds = scaled(2'000);
    double nanoseconds = 0;
    int cancelled_ones = 0;
    run([&] {
        for (int i = 0; i < rounds; ++i) {
            stopwatch since_answer;
            event asleep;
            with_task_group<int>([&](task_group<int>& g) {
                g.add([&] {
                    asleep.wait();
                    since_answer = stopwatch();
                    return 1;
                });
                g.add([&] {
                    asleep.set();
                    if (!sleep_for(std::chrono::hours(1))) ++cancelled_ones;
                    nanoseconds += since_answer.nanoseconds();
                    return 2;
                });
                return g.next();
            });
        }
    });
    std::printf("  now:   %.1f us from the answer to the end of the cancelled child, over %d\n",
                nanoseconds / rounds / 1e3, rounds);
    return right && cancelled_ones == rounds;
}

std::filesystem::path program_of(const char* name) {
    return std::filesystem::read_symlink("/proc/self/exe").parent_path() / name;
}

// Another program of examples/: at most eight lines of what it says, and its time.
bool example(const char* name) {
    if (!std::filesystem::exists(program_of(name))) return true;
    std::fflush(stdout);
    const stopwatch watch;
    const std::string command = "'" + program_of(name).string() + "'";
    FILE* output = ::popen(command.c_str(), "r");
    if (output == nullptr) return false;
    char line[256];
    int lines = 0;
    while (std::fgets(line, sizeof line, output) != nullptr)
        if (++lines <= 8) std::printf("  %s", line);
    const int status = ::pclose(output);
    if (WIFEXITED(status) && WEXITSTATUS(status) == 126) {
        std::printf("  a program of another architecture cannot be started from here\n");
        return true;
    }
    std::printf("  now:   %s in %.1f ms, the start of the process included\n",
                status == 0 ? "done" : "FAILED", watch.nanoseconds() / 1e6);
    return status == 0;
}

struct station {
    const char* name;
    const char* what_is_seen;
    bool (*visit)();  // nullptr: the example of that name
};

const station stations[] = {
    {"loop", "A loop is a scheduler as an object: fibers run in the order they became ready.",
     &order},
    {"steps", "It can be stepped: after each step, how many fibers are still alive.", &stepping},
    {"back_ends", "One program on four kinds of stacks: what a parked fiber and a yield cost.",
     &back_ends},
    {"same_fringe", "Generators have a stack each, so two recursive walks run side by side.",
     &fringe},
    {"ring", "Messages go round in rings of fibers, strictly: each waits for a binary_semaphore.",
     &ring},
    {"million", "A stack is address space until it is used, and every one has a guard.", &million},
    {"level_loader",
     "A tree of tasks that wait for their parts: one thread gets stuck, one worker "
     "does not.",
     nullptr},
    {"first_of_two", "The first answer counts; the other question is cancelled and waited for.",
     &first},
#if __has_include(<weft/actor/actor_context.hpp>)
    {"actor", "A counter that many fibers call at once: one at a time is inside.", &actor},
#endif
    {"caching_service", "An actor lets others in while it waits: one fetch serves all who ask.",
     nullptr},
    {"load_generator", "An echo server written as blocking code, under load.", nullptr},
};

bool visit(const station& s) {
    const bool bold = ::isatty(STDOUT_FILENO) == 1 && std::getenv("NO_COLOR") == nullptr;
    std::printf("\n%s%s%s  %s\n", bold ? "\033[1m" : "", s.name, bold ? "\033[0m" : "",
                s.what_is_seen);
    const bool right = s.visit != nullptr ? apart(s.visit) : example(s.name);
    if (!right) std::printf("  this went wrong\n");
    return right;
}

bool is_there(const station& s) {
    return s.visit != nullptr || std::filesystem::exists(program_of(s.name));
}

bool known(std::string_view name) {
    for (const station& s : stations)
        if (name == s.name && is_there(s)) return true;
    return false;
}

}  // namespace

int main(int argc, char** argv) {
    std::setvbuf(stdout, nullptr, _IOLBF, 0);  // in a pipe, too, each line comes when it is there
    std::vector<std::string_view> asked;
    for (int i = 1; i < argc; ++i) {
        const std::string_view word = argv[i];
        if (word == "--quick") {
            quick = true;
        } else if (word == "--list") {
            for (const station& s : stations)
                if (is_there(s)) std::printf("%-15s %s\n", s.name, s.what_is_seen);
            return 0;
        } else if (known(word)) {
            asked.push_back(word);
        } else {
            std::fprintf(stderr, "tour: no station '%s'; see --list and --help\n", argv[i]);
            return 2;
        }
    }

    const stopwatch watch;
    std::printf("weft %s, %u processors; every figure is of this machine, just now.\n",
                std::string(version()).c_str(), usable_cpus());
    bool right = true;
    for (const station& s : stations)
        if (is_there(s) && (asked.empty() || std::ranges::find(asked, s.name) != asked.end()))
            right &= visit(s);
    std::printf(
        "\n%.0f s. One station again: make run EXAMPLE=\"tour ring\"; another program of "
        "examples/:\nmake run EXAMPLE=channels. Read on in docs/index.md.\n",
        watch.nanoseconds() / 1e9);
    return right ? 0 : 1;
}
