// workload.hpp - what is asked of whoever hands out stacks: one at a time, and very many at once.
//
// A source is a class with take(), which returns an area, and give_back(area). Both functions below
// are the same for all of them, and check what they are given.
//
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fcntl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <cstddef>
#include <exception>
#include <fstream>
#include <string>
#include <string_view>
#include <vector>

#include "support/memory.hpp"
#include "support/row.hpp"

namespace bench {

inline constexpr std::size_t stack_size = 64 * 1024;

/// Usable memory; a guard, if there is one, lies right below it.
struct area {
    std::byte* low = nullptr;
    std::size_t size = 0;

    [[nodiscard]] std::byte* last_word() const { return low + size - sizeof(void*); }
};

/// A system call that is given memory which may not be touched fails with EFAULT, and no signal is
/// raised: so a million guards can be tried one after the other.
class memory_probe {
public:
    memory_probe() : zeros_(::open("/dev/zero", O_RDONLY | O_CLOEXEC)) {
        require(zeros_ >= 0, "/dev/zero can be opened");
    }
    memory_probe(const memory_probe&) = delete;
    memory_probe& operator=(const memory_probe&) = delete;
    ~memory_probe() { ::close(zeros_); }

    /// Leaves a zero there if it is.
    [[nodiscard]] bool writable(std::byte* address) const {
        const long got = ::syscall(SYS_read, zeros_, address, std::size_t{1});
        require(got == 1 || errno == EFAULT, "the probe of memory");
        return got == 1;
    }

private:
    int zeros_;
};

inline std::size_t lines_in_maps() {
    std::ifstream maps("/proc/self/maps");
    std::size_t count = 0;
    for (std::string line; std::getline(maps, line);) ++count;
    return count;
}

/// Takes one stack and gives it back, over and over.
template <class Source>
void measure_pair(const settings& how, std::string_view row, std::uint64_t pairs, Source& source) {
    stopwatch clock;
    const std::uint64_t counted = how.count(pairs);
    area warm = source.take();
    require(warm.size >= stack_size, row);
    *warm.last_word() = std::byte{1};
    source.give_back(warm);
    clock.start();
    for (std::uint64_t i = 0; i < counted; ++i) {
        area taken = source.take();
        keep(taken);
        source.give_back(taken);
    }
    clock.stop();
    report({row, "ns"}, clock.nanoseconds() / static_cast<double>(counted));
}

/// `wanted` stacks live at once, or as many as there can be: how long each takes to get, whether
/// its guard holds, what the kernel keeps for it. `at` names the column.
template <class Source>
class crowd {
public:
    crowd(const settings& how, std::string_view at, std::size_t wanted, Source& source)
        : at_(at), wanted_(how.quick ? 1'000 : wanted), source_(source) {
        taken_.reserve(wanted_);
    }
    crowd(const crowd&) = delete;
    crowd& operator=(const crowd&) = delete;
    ~crowd() {
        for (const area& a : taken_) source_.give_back(a);
    }

    void measure(bool guarded) {
        const std::size_t before = kibibytes("/proc/self/status", "VmPTE:");
        take_all();
        const std::size_t lines = lines_in_maps();
        const std::size_t tables = kibibytes("/proc/self/status", "VmPTE:") - before;
        report({"lines in /proc/self/maps", "lines", at_}, static_cast<double>(lines));
        report({"page tables per stack, none touched", "B", at_}, per_stack(tables * 1024));
        touch_all();
        try_guards(guarded);
    }

private:
    [[nodiscard]] double per_stack(double sum) const {
        return sum / static_cast<double>(taken_.size());
    }
    [[nodiscard]] double per_stack(std::size_t sum) const {
        return per_stack(static_cast<double>(sum));
    }

    void take_all() {
        stopwatch clock;
        std::string ended;
        clock.start();
        try {
            while (taken_.size() < wanted_) taken_.push_back(source_.take());
        } catch (const std::exception& refused) { ended = refused.what(); }
        clock.stop();
        require(!taken_.empty(), "there is at least one stack");
        report({"stacks live at once", "stacks", at_}, static_cast<double>(taken_.size()), ended);
        report({"time per stack", "ns", at_}, per_stack(clock.nanoseconds()));
    }

    // One page of each is used, as by a coroutine that has started.
    void touch_all() {
        constexpr std::string_view time = "time per stack to touch its first page";
        constexpr std::string_view memory = "RSS per stack, one page touched";
        const std::size_t needed = taken_.size() * 6;  // KiB, with page tables and room to spare
        if (kibibytes("/proc/meminfo", "MemAvailable:") < needed) {
            report_none({time, "ns", at_}, "not enough memory");
            report_none({memory, "B", at_}, "not enough memory");
            return;
        }
        const std::size_t before = kibibytes("/proc/self/status", "VmRSS:");
        stopwatch clock;
        clock.start();
        for (const area& a : taken_) *a.last_word() = std::byte{1};
        clock.stop();
        const std::size_t after = kibibytes("/proc/self/status", "VmRSS:");
        report({time, "ns", at_}, per_stack(clock.nanoseconds()));
        report({memory, "B", at_}, per_stack((after - before) * 1024));
        for (const area& a : taken_)
            require(*a.last_word() == std::byte{1}, "every stack is memory of its own");
    }

    void try_guards(bool guarded) {
        const place where{"guards that hold", "stacks", at_};
        if (!guarded) return report_none(where, "it has no guards");
        const memory_probe probe;
        std::size_t hold = 0;
        for (const area& a : taken_) hold += probe.writable(a.low - 1) ? 0U : 1U;
        for (std::size_t i = 0; i < taken_.size(); i += 1'000)
            require(probe.writable(taken_[i].low), "a stack is usable down to its guard");
        report(where, static_cast<double>(hold));
    }

    std::string_view at_;
    std::size_t wanted_;
    Source& source_;
    std::vector<area> taken_;
};

}  // namespace bench
