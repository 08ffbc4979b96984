// memory.hpp - what the kernel says about memory.
//
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <fstream>
#include <limits>
#include <string>
#include <string_view>

namespace bench {

/// The KiB that a line of /proc/self/status or /proc/meminfo says.
inline std::uint64_t kibibytes(const char* file, std::string_view key) {
    std::ifstream lines(file);
    std::string word;
    while (lines >> word) {
        std::uint64_t value = 0;
        if (word == key && lines >> value) return value;
        lines.ignore(std::numeric_limits<std::streamsize>::max(), '\n');
    }
    return 0;
}

inline std::uint64_t available_kibibytes() { return kibibytes("/proc/meminfo", "MemAvailable:"); }
inline std::uint64_t resident_kibibytes() { return kibibytes("/proc/self/status", "VmRSS:"); }

}  // namespace bench
