// row.hpp - how a benchmark program reads its arguments, checks itself and reports.
//
// A program prints one JSON line for each row of the case's table, and ends with a status other
// than 0 if its answers are wrong. bench/run starts it many times and collects the lines:
//
//     {"row": "Boost.Context fiber", "unit": "ns", "value": 5.5}
//     {"row": "lines in /proc/self/maps", "at": "weft", "unit": "lines", "value": 31}
//     {"row": "memory", "unit": "B", "value": null, "note": "why there is none"}
//     {"about": "Boost 1.74"}
//
// Nothing here knows weft: programs of peers include it, too.
//
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <string_view>

namespace bench {

/// Ends the program unless the condition holds: a wrong answer has no time.
inline void require(bool condition, std::string_view what) {
    if (condition) return;
    std::fprintf(stderr, "wrong: %.*s\n", static_cast<int>(what.size()), what.data());
    std::exit(1);
}

struct settings {
    bool quick = false;

    /// How often to do something: what the measurement wants, or just enough to check the answers.
    [[nodiscard]] std::uint64_t count(std::uint64_t full) const {
        return quick ? std::clamp<std::uint64_t>(full / 10'000, 1, 1'000) : full;
    }
};

/// The only argument is --quick.
inline settings read_arguments(int argc, char** argv) {
    settings read;
    for (int i = 1; i < argc; ++i) {
        require(std::string_view(argv[i]) == "--quick", "the only argument is --quick");
        read.quick = true;
    }
    return read;
}

struct place {
    std::string_view row;
    std::string_view unit;
    std::string_view at = {};  // a column of the table, if it has several
};

namespace detail {
// Words of others within a JSON string and a table: one short line without quotes or bars.
inline std::string tame(std::string_view text) {
    std::string tamed(text.substr(0, 120));
    for (char& c : tamed)
        if (c == '"' || c == '\\' || c == '|')
            c = '\'';
        else if (static_cast<unsigned char>(c) < ' ')
            c = ' ';
    return tamed;
}

inline void print_line(const place& where, const char* value, std::string_view note) {
    const auto field = [](const char* key, std::string_view text) {
        return text.empty() ? std::string()
                            : std::string(", \"") + key + "\": \"" + tame(text) + "\"";
    };
    std::printf("{\"row\": \"%s\"%s%s, \"value\": %s%s}\n", std::string(where.row).c_str(),
                field("at", where.at).c_str(), field("unit", where.unit).c_str(), value,
                field("note", note).c_str());
    std::fflush(stdout);
}
}  // namespace detail

inline void report(const place& where, double value, std::string_view note = {}) {
    char text[32];
    std::snprintf(text, sizeof text, "%.10g", value);
    detail::print_line(where, text, note);
}

/// A row that cannot be measured here, and why.
inline void report_none(const place& where, std::string_view why) {
    detail::print_line(where, "null", why);
}

/// What a peer is, and its version; one call for each that a program speaks for.
inline void about(std::string_view what) {
    std::printf("{\"about\": \"%s\"}\n", detail::tame(what).c_str());
    std::fflush(stdout);
}

class stopwatch {
public:
    void start() { started_ = std::chrono::steady_clock::now(); }
    void stop() { total_ += std::chrono::steady_clock::now() - started_; }
    [[nodiscard]] double nanoseconds() const {
        return std::chrono::duration<double, std::nano>(total_).count();
    }

private:
    std::chrono::steady_clock::time_point started_;
    std::chrono::steady_clock::duration total_{};
};

/// The compiler must assume that the value is used, and changed.
template <class T>
[[gnu::always_inline]] inline void keep(T& value) {
    asm volatile("" : "+m"(value) : : "memory");
}

}  // namespace bench
