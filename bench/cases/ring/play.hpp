// play.hpp - a ring as numbers, who plays it, and how it is played once: in this process, or by a
// program in another language that lies beside this one. What is measured is in workload.hpp.
//
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <barrier>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <memory>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

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

}  // namespace bench::ring
