// workload.hpp - messages that go round in rings; what a ring is, how it is timed and checked.
//
// There are R cycles of N fibers. In each of M rounds a message goes once round every cycle: each
// fiber waits for it at its own gate and wakes the next one's. Who begins moves one place a round,
// and wakes are counted: so a fiber that is woken often finds the message of the next round there,
// too, and only about one message in N costs a suspension.
//
//     counted                                    strict: the same fiber begins every round,
//     for each round                             so each message is one suspension
//         if it is my turn: wake next; wait
//         else:             wait; wake next
//
// Births and ends are not in the clock: everybody is created and waiting before it starts, and when
// it stops all are done with their rounds and wait once more, or have just left their last frame.
// Fiber 0 of a cycle waits once more than the others, for the start.
//
//     PROGRAM                              the rows of the case's tables
//     PROGRAM N R M D P [--strict]         one ring, with D bytes more in each frame, on P threads
//     --row KEY                            only this row; --list names them
//     --sizes                              the rows of the case ring_sizes
//
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <barrier>
#include <charconv>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <exception>
#include <fstream>
#include <memory>
#include <optional>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "support/apart.hpp"
#include "support/memory.hpp"
#include "support/row.hpp"

namespace bench::ring {

struct shape {
    std::uint64_t length = 8;   // N
    std::uint64_t cycles = 2;   // R
    std::uint64_t rounds = 1;   // M
    std::uint64_t frame = 0;    // D
    std::uint64_t threads = 1;  // P
    bool strict = false;

    [[nodiscard]] std::uint64_t fibers() const { return length * cycles; }
    [[nodiscard]] std::uint64_t messages() const { return fibers() * rounds; }
};

/// What the fibers of a thread did: each adds its part when it ends.
struct tally {
    std::uint64_t ended = 0;
    std::uint64_t received = 0;   // messages
    std::uint64_t suspended = 0;  // waits that found no message there

    void add(std::uint64_t r, std::uint64_t s) {
        ++ended;
        received += r;
        suspended += s;
    }
};

/// A thread's part of a ring: prepare() makes its fibers and lets them wait, run() starts cycle
/// after cycle and returns when all fibers have done their rounds, end() lets them end.
class part {
public:
    part() = default;
    part(const part&) = delete;
    part& operator=(const part&) = delete;
    virtual ~part() = default;
    virtual void prepare() = 0;
    virtual void run() = 0;
    virtual void end() {}
    [[nodiscard]] virtual tally result() const = 0;
};

/// Makes the part of one thread; the shape's cycles are those of this thread alone.
using part_maker = std::unique_ptr<part> (*)(const shape&);

/// A line of the tables: who plays, and what it can bear.
struct row {
    std::string_view key;
    std::string_view title;
    part_maker make = nullptr;
    std::uint64_t messages = 64'000'000;    // that it plays within a fraction of a second
    std::uint64_t most_fibers = 8'000'000;  // more are of no use or not to be had; `why` says why
    std::string_view why = {};
    std::uint64_t bytes = 256;      // that each fiber needs, roughly
    std::uint64_t frame = 0;        // D
    std::uint64_t threads = 1;      // P
    bool sparse = false;            // it has no strict rows
    bool asked = false;             // only when --row names it
    bool exact = true;              // strictly, each message is exactly one suspension
    bool counts = true;             // it knows its suspensions
    const char* program = nullptr;  // instead of make: one beside this that plays
    const char* argument = "";      // and what it is given beside the ring
};

struct outcome {
    tally sum;
    double seconds = 0;
};

/// Plays it once, on as many threads as it says.
inline outcome play_here(const shape& whole, part_maker make) {
    using clock = std::chrono::steady_clock;
    struct side {
        tally result;
        clock::time_point begun, done;
    };
    std::vector<side> sides(whole.threads);
    std::barrier together(static_cast<std::ptrdiff_t>(whole.threads));
    const auto work = [&](side& mine) {
        shape share = whole;
        share.cycles = whole.cycles / whole.threads;
        const std::unique_ptr<part> p = make(share);
        p->prepare();
        if (whole.threads > 1) together.arrive_and_wait();
        mine.begun = clock::now();
        p->run();
        mine.done = clock::now();
        p->end();
        mine.result = p->result();
    };
    std::vector<std::thread> others;
    for (std::size_t i = 1; i < sides.size(); ++i)
        others.emplace_back([&work, &mine = sides[i]] { work(mine); });
    work(sides[0]);
    for (std::thread& other : others) other.join();

    outcome out;
    clock::time_point first = sides[0].begun, last = sides[0].done;
    for (const side& s : sides) {
        out.sum.ended += s.result.ended;
        out.sum.received += s.result.received;
        out.sum.suspended += s.result.suspended;
        first = std::min(first, s.begun);
        last = std::max(last, s.done);
    }
    out.seconds = std::chrono::duration<double>(last - first).count();
    return out;
}

namespace detail {

// Where this program lies.
inline std::string own_folder() {
    char path[4096];
    const ssize_t length = ::readlink("/proc/self/exe", path, sizeof path);
    require(length > 0, "/proc/self/exe");
    const std::string_view all(path, static_cast<std::size_t>(length));
    return std::string(all.substr(0, all.rfind('/') + 1));
}

inline std::string program_of(const row& r) { return own_folder() + r.program; }

// Where a program should be and did not compile, bench/run leaves the compiler's word.
inline std::string why_missing(const row& r) {
    std::ifstream said(program_of(r) + ".failed");
    std::string why;
    return std::getline(said, why) ? why : std::string(r.program) + " is not there";
}

// The first line of a file that is not empty.
inline std::string first_line(std::FILE* file) {
    std::rewind(file);
    char line[256];
    while (std::fgets(line, sizeof line, file) != nullptr) {
        const std::string_view text = line;
        if (text.find_first_not_of(" \n") != text.npos)
            return std::string(text.substr(0, text.find('\n')));
    }
    return "";
}

// What is left to say of a program that said nothing itself.
inline std::string end_of(int status) {
    if (status == 0) return "said nothing that can be read";
    if (WIFSIGNALED(status)) return std::string("ended by: ") + ::strsignal(WTERMSIG(status));
    return "ended with status " + std::to_string(WEXITSTATUS(status));
}

// Another program plays, and says: ended, received, seconds. If it fails, what it complained of is
// thrown: there is no such ring then, and the others go on.
inline outcome play_elsewhere(const shape& s, const row& r) {
    std::FILE* const complaint = std::tmpfile();
    require(complaint != nullptr, "tmpfile");
    std::string command = program_of(r);
    for (const std::uint64_t number : {s.length, s.cycles, s.rounds, s.frame, s.threads})
        command.append(" ").append(std::to_string(number));
    command.append(" ").append(r.argument).append(s.strict ? " --strict" : "");
    command.append(" 2>/dev/fd/").append(std::to_string(::fileno(complaint)));
    std::FILE* const said = ::popen(command.c_str(), "r");
    require(said != nullptr, "popen");
    outcome out;
    const int got =
        std::fscanf(said, "%lu %lu %lf", &out.sum.ended, &out.sum.received, &out.seconds);
    const int status = ::pclose(said);
    const std::string why = first_line(complaint);
    std::fclose(complaint);
    if (status != 0 || got != 3) throw std::runtime_error(why.empty() ? end_of(status) : why);
    return out;
}

// Such a program says its version when it is asked with --version; each is asked once.
inline void tell_versions(std::span<const row> rows) {
    std::vector<std::string_view> asked;
    for (const row& r : rows) {
        if (r.program == nullptr || std::ranges::find(asked, r.program) != asked.end() ||
            ::access(program_of(r).c_str(), X_OK) != 0)
            continue;
        asked.push_back(r.program);
        std::FILE* const said = ::popen((program_of(r) + " --version").c_str(), "r");
        require(said != nullptr, "popen");
        char line[256] = "";
        if (std::fgets(line, sizeof line, said) != nullptr) {
            const std::string_view text = line;
            about(text.substr(0, text.find('\n')));
        }
        require(::pclose(said) == 0, "a program says its version");
    }
}

}  // namespace detail

inline outcome play(const shape& s, const row& r) {
    return r.program != nullptr ? detail::play_elsewhere(s, r) : play_here(s, r.make);
}

/// Every fiber has ended, every message has gone round; and with strict each was a suspension.
inline void check(const shape& s, const outcome& out, const row& r) {
    require(out.sum.ended == s.fibers(), "every fiber of the ring has ended");
    require(out.sum.received == s.messages(), "every message went round");
    if (s.strict && r.exact)
        require(out.sum.suspended == s.messages(), "strict: each message is one suspension");
}

namespace detail {

// Thousands are grouped by commas.
inline std::string grouped(std::uint64_t number) {
    std::string text = std::to_string(number);
    for (std::size_t at = text.size(); at > 3;) text.insert(at -= 3, 1, ',');
    return text;
}

struct plan {
    std::string_view prefix;  // of the rows' names
    std::uint64_t length;
    bool strict;
    std::span<const std::uint64_t> sizes;
    bool all;  // also the sparse rows, and with its suspensions
};

inline constexpr std::uint64_t eights[] = {16, 800, 80'000};
inline constexpr std::uint64_t twos[] = {4, 200, 20'000};
inline constexpr std::uint64_t strict_twos[] = {16, 800};
inline constexpr std::uint64_t strict_eights[] = {80'000, 800'000};
inline constexpr plan table_plans[] = {
    {"N = 8: ", 8, false, eights, true},
    {"N = 2: ", 2, false, twos, true},
    {"N = 2, strict: ", 2, true, strict_twos, false},
    {"N = 8, strict: ", 8, true, strict_eights, false},
};
inline constexpr std::uint64_t all_eights[] = {
    16, 32, 64, 400, 800, 4'000, 8'000, 40'000, 80'000, 400'000, 800'000, 4'000'000, 8'000'000};
inline constexpr std::uint64_t all_twos[] = {
    4, 8, 16, 100, 200, 1'000, 2'000, 10'000, 20'000, 100'000, 200'000, 1'000'000, 2'000'000};
inline constexpr plan size_plans[] = {
    {"N = 8: ", 8, false, all_eights, true},
    {"N = 2: ", 2, false, all_twos, true},
};

// What is told of a ring beside its speed, in a row of its own.
enum class beside { nothing, suspensions, memory };

inline std::uint64_t peak_kibibytes(const row& r) {
    rusage used;
    ::getrusage(r.program != nullptr ? RUSAGE_CHILDREN : RUSAGE_SELF, &used);
    return static_cast<std::uint64_t>(used.ru_maxrss);
}

inline void measure(const settings& how, const plan& p, const row& r, std::uint64_t fibers,
                    beside more) {
    const std::string name = std::string(p.prefix) + std::string(r.title);
    const std::string at = grouped(fibers);
    const std::string other = name + (more == beside::suspensions ? ", suspensions" : ", peak RSS");
    const std::string_view unit = more == beside::suspensions ? "a message" : "MiB";
    const auto none = [&](std::string_view why) {
        report_none({name, "M/s", at}, why);
        if (more != beside::nothing) report_none({other, unit, at}, why);
    };
    if (r.program != nullptr && ::access(program_of(r).c_str(), X_OK) != 0)
        return none(detail::why_missing(r));
    if (fibers > r.most_fibers) return none(r.why);
    const std::uint64_t cycles =
        how.quick ? std::min<std::uint64_t>(fibers / p.length, 10) : fibers / p.length;
    if (cycles % r.threads != 0) return none("-");
    if (cycles * p.length * r.bytes / 1024 * 5 / 4 > available_kibibytes())
        return none("not enough memory");
    // Strictly each message is a suspension, with N = 2 every second: so fewer will do.
    const std::uint64_t wanted = how.count(r.messages) / (p.strict ? 16 : p.length == 2 ? 2 : 1);
    const std::uint64_t rounds =
        std::max<std::uint64_t>(wanted / (cycles * p.length), how.quick ? 3 : 2);
    const shape s{p.length, cycles, rounds, r.frame, r.threads, p.strict};
    const std::string failed = apart([&] {
        const outcome out = play(s, r);
        check(s, out, r);
        const auto messages = static_cast<double>(s.messages());
        report({name, "M/s", at}, messages / out.seconds / 1e6);
        if (more == beside::suspensions)
            report({other, unit, at}, static_cast<double>(out.sum.suspended) / messages);
        if (more == beside::memory)
            report({other, unit, at}, static_cast<double>(peak_kibibytes(r)) / 1024);
    });
    if (!failed.empty()) none(failed);
}

inline void print_one(const shape& s, const row& r) {
    const outcome out = play(s, r);
    check(s, out, r);
    const auto messages = static_cast<double>(s.messages());
    std::printf("%s: %s fibers, %s messages, %.4f s, %.2f M/s, ", std::string(r.title).c_str(),
                grouped(s.fibers()).c_str(), grouped(s.messages()).c_str(), out.seconds,
                messages / out.seconds / 1e6);
    if (r.counts)
        std::printf("%s suspensions (%.4f a message), ", grouped(out.sum.suspended).c_str(),
                    static_cast<double>(out.sum.suspended) / messages);
    std::printf("peak RSS %lu KiB\n", peak_kibibytes(r));
}

struct command_line {
    settings how;
    std::vector<std::uint64_t> numbers;
    std::vector<std::string_view> keys;
    bool strict = false, sizes = false, list = false;
};

inline command_line read(int argc, char** argv) {
    command_line said;
    for (int i = 1; i < argc; ++i) {
        const std::string_view word = argv[i];
        std::uint64_t number = 0;
        const auto [end, error] = std::from_chars(word.data(), word.data() + word.size(), number);
        if (word == "--quick")
            said.how.quick = true;
        else if (word == "--strict")
            said.strict = true;
        else if (word == "--sizes")
            said.sizes = true;
        else if (word == "--list")
            said.list = true;
        else if (word == "--row" && i + 1 < argc)
            said.keys.push_back(argv[++i]);
        else if (error == std::errc() && end == word.data() + word.size())
            said.numbers.push_back(number);
        else
            require(false, "usage: PROGRAM [N R M D P] [--strict] [--row KEY] [--sizes] [--list]");
    }
    require(said.numbers.empty() || said.numbers.size() == 5, "five numbers: N R M D P");
    return said;
}

inline beside told(const command_line& said, const plan& p, const row& r) {
    if (said.sizes) return beside::memory;
    return p.all && r.counts ? beside::suspensions : beside::nothing;
}

}  // namespace detail

/// main() of every program of the case.
inline int main(int argc, char** argv, std::span<const row> rows) {
    const detail::command_line said = detail::read(argc, argv);
    if (!said.list && said.numbers.empty()) detail::tell_versions(rows);
    for (const row& r : rows) {
        const bool named = std::ranges::find(said.keys, r.key) != said.keys.end();
        if (said.list) {
            std::printf("%-12s %s\n", std::string(r.key).c_str(), std::string(r.title).c_str());
        } else if (!said.numbers.empty()) {
            // Those with a D or P in their names are the others with other numbers.
            if (!named && (!said.keys.empty() || r.frame != 0 || r.asked)) continue;
            const auto& n = said.numbers;
            require(n[0] > 1 && n[1] > 0 && n[4] > 0 && n[1] % n[4] == 0, "N > 1, and P divides R");
            detail::print_one({n[0], n[1], n[2], n[3], n[4], said.strict}, r);
        } else if (named || (said.keys.empty() && !r.asked)) {
            for (const detail::plan& p : said.sizes
                                             ? std::span<const detail::plan>(detail::size_plans)
                                             : detail::table_plans)
                if (p.all || !r.sparse)
                    for (const std::uint64_t size : p.sizes)
                        detail::measure(said.how, p, r, size, detail::told(said, p, r));
        }
    }
    return 0;
}

}  // namespace bench::ring
