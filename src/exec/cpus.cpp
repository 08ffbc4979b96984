// cpus.cpp - how many processors this process may use.
//
// Its affinity says on which it may run; a quota of its cgroup, or of one above that, how much of
// them it gets. Both versions of cgroups are read, from where they are usually mounted.
//
// SPDX-License-Identifier: Apache-2.0
#include "exec/cpus.hpp"

#include <sched.h>
#include <unistd.h>

#include <algorithm>
#include <fstream>
#include <string>

#include <weft/exec/pool.hpp>

namespace weft::inline v0 {

namespace detail {

namespace {

// 0: of the one that calls.
std::vector<int> cpus_of_thread(pid_t thread) {
    std::vector<int> cpus;
    // A machine may have more processors than a cpu_set_t has bits.
    for (std::size_t most = 1024; most <= (1U << 20); most *= 2) {
        cpu_set_t* const set = CPU_ALLOC(most);
        if (set == nullptr) break;
        const std::size_t bytes = CPU_ALLOC_SIZE(most);
        const bool fits = ::sched_getaffinity(thread, bytes, set) == 0;
        for (std::size_t i = 0; fits && i < most; ++i)
            if (CPU_ISSET_S(i, bytes, set)) cpus.push_back(static_cast<int>(i));
        CPU_FREE(set);
        if (fits) break;
    }
    return cpus;
}

}  // namespace

// A thread inherits the affinity of the one that makes it, which may be a worker that is bound; the
// process has that of its first thread.
std::vector<int> allowed_cpus() { return cpus_of_thread(::getpid()); }
std::vector<int> inherited_cpus() { return cpus_of_thread(0); }

void bind_to(pthread_t thread, std::span<const int> cpus) noexcept {
    if (cpus.empty()) return;
    const auto most = static_cast<std::size_t>(*std::ranges::max_element(cpus)) + 1;
    cpu_set_t* const set = CPU_ALLOC(most);
    if (set == nullptr) return;
    const std::size_t bytes = CPU_ALLOC_SIZE(most);
    CPU_ZERO_S(bytes, set);
    for (const int cpu : cpus) CPU_SET_S(static_cast<std::size_t>(cpu), bytes, set);
    ::pthread_setaffinity_np(thread, bytes, set);
    CPU_FREE(set);
}

namespace {

// Rounded up: with 1.5 processors two threads have something to do.
unsigned processors(double quota, double period) {
    if (quota <= 0 || period <= 0) return 0;
    return static_cast<unsigned>(std::max(1.0, (quota + period - 1) / period));
}

// "max 100000" or "150000 100000"
unsigned limit_v2(const std::string& folder) {
    std::ifstream file(folder + "/cpu.max");
    std::string quota;
    double period = 0;
    if (!(file >> quota >> period) || quota == "max") return 0;
    return processors(std::strtod(quota.c_str(), nullptr), period);
}

unsigned limit_v1(const std::string& folder) {
    double quota = 0;
    double period = 0;
    std::ifstream(folder + "/cpu.cfs_quota_us") >> quota;
    std::ifstream(folder + "/cpu.cfs_period_us") >> period;
    return processors(quota, period);
}

// The least of a cgroup and all above it.
template <class Limit>
unsigned least_upwards(const std::string& mount, std::string path, Limit limit) {
    unsigned least = 0;
    for (;;) {
        const unsigned here = limit(mount + path);
        if (here != 0 && (least == 0 || here < least)) least = here;
        const std::size_t slash = path.rfind('/');
        if (path.empty() || slash == std::string::npos) return least;
        path.resize(slash);
    }
}

}  // namespace

unsigned cgroup_cpus(const std::string& proc_cgroup, const std::string& mount) {
    std::ifstream file(proc_cgroup);
    unsigned least = 0;
    std::string line;
    while (std::getline(file, line)) {  // "0::/path" or "4:cpu,cpuacct:/path"
        const std::size_t first = line.find(':');
        const std::size_t second = line.find(':', first + 1);
        if (first == std::string::npos || second == std::string::npos) continue;
        std::string controllers = ",";  // not by +: g++ 12 warns of that with -O3
        controllers.append(line, first + 1, second - first - 1).append(",");
        std::string path = line.substr(second + 1);
        if (path == "/") path.clear();
        unsigned here = 0;
        if (controllers == ",,")
            here = least_upwards(mount, path, limit_v2);
        else if (controllers.find(",cpu,") != std::string::npos)
            here = least_upwards(mount + "/cpu", path, limit_v1);
        if (here != 0 && (least == 0 || here < least)) least = here;
    }
    return least;
}

}  // namespace detail

unsigned usable_cpus() noexcept {
    try {
        unsigned count = static_cast<unsigned>(detail::allowed_cpus().size());
        const unsigned quota = detail::cgroup_cpus("/proc/self/cgroup", "/sys/fs/cgroup");
        if (quota != 0) count = std::min(count, quota);
        return std::max(count, 1U);
    } catch (...) { return 1; }
}

}  // namespace weft::inline v0
