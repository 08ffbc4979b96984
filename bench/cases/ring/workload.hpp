// workload.hpp - messages that go round in rings; what a ring is, how it is measured and checked.
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
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <cstdint>
#include <cstdio>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "cases/ring/play.hpp"
#include "support/apart.hpp"
#include "support/memory.hpp"
#include "support/row.hpp"

namespace bench::ring {

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
