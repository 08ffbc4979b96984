// fiber_list.cpp - see fiber_list.hpp; and the registry of all lists.
//
// SPDX-License-Identifier: Apache-2.0
#include "fiber/fiber_list.hpp"

#include <algorithm>
#include <cstdlib>
#include <functional>
#include <iterator>
#include <string>
#include <utility>
#include <vector>

#include <weft/base/assert.hpp>
#include <weft/exec/stuck_report.hpp>
#include <weft/fiber/dump.hpp>
#include <weft/fiber/run.hpp>
#include <weft/fiber/this_fiber.hpp>

#include "base/report.hpp"
#include "fiber/fiber_extras.hpp"
#include "fiber/fiber_worker.hpp"

// The first of all lists. By a name that a debugger finds: tools/weft-gdb.py begins here.
extern "C" {
extern constinit weft::detail::fiber_list* weft_v0_fiber_lists;
constinit weft::detail::fiber_list* weft_v0_fiber_lists = nullptr;
}

namespace weft::inline v0::detail {

namespace {

struct registry {
    std::mutex mutex;
    fiber_list*& first = weft_v0_fiber_lists;  // guarded by the mutex
};

// Those that nobody waits for at the end of the program: what they hold is never released.
[[maybe_unused]] void report_leaked() {
    constexpr std::size_t most = stuck_report::most_printed;
    std::size_t count = 0;
    fiber_list::describe_all([&count](std::string_view line) {
        if (count == 0)
            report().text("weft: at the end of the program these have not ended:\n").write();
        if (++count <= most) report().text("  ").text(std::string(line).c_str()).text("\n").write();
    });
    if (count > most) report().text("  and ").decimal(count - most).text(" more\n").write();
}

registry* make_registry() {
#if WEFT_CHECKS
    std::atexit(&report_leaked);
#endif
    return new registry;
}

// Never destroyed: executors may outlive it otherwise.
registry& all_lists() {
    static registry* const lists = make_registry();
    return *lists;
}

// Who runs on an executor's workers, at this moment.
struct running_now {
    std::vector<const fiber_block*> those;  // empty: a user's executor, whose workers do not tell

    [[nodiscard]] const char* state_of(const fiber_block& block, const fiber_sight& seen) const {
        if (seen.reason != nullptr) return seen.reason->text;
        if (!seen.started) return "has not started";
        if (those.empty()) return "ready or running";
        return std::ranges::find(those, &block) != those.end() ? "running" : "ready";
    }
};

std::string line_about(const char* name, const char* state, const std::source_location& site) {
    std::string line = "fiber ";
    line += name[0] != '\0' ? name : "(no name)";
    line.append(": ").append(state);
    if (site.line() != 0) {
        line.append(", started at ").append(site.file_name());
        line.append(":").append(std::to_string(site.line()));
    }
    return line;
}

}  // namespace

fiber_list::fiber_list(executor& home) : home_(home) {
    registry& all = all_lists();
    const std::lock_guard lock(all.mutex);
    next_list_ = all.first;
    if (all.first != nullptr) all.first->previous_list_ = this;
    all.first = this;
}

fiber_list::~fiber_list() {
    registry& all = all_lists();
    const std::lock_guard lock(all.mutex);
    (previous_list_ != nullptr ? previous_list_->next_list_ : all.first) = next_list_;
    if (next_list_ != nullptr) next_list_->previous_list_ = previous_list_;
}

fiber_list& fiber_list::of(executor& home) {
    residents* found = home.residents_.load(std::memory_order_acquire);
    if (found == nullptr) {
        auto made = std::make_unique<fiber_list>(home);
        if (home.residents_.compare_exchange_strong(found, made.get(), std::memory_order_acq_rel))
            found = made.release();
    }
    return static_cast<fiber_list&>(*found);
}

void fiber_list::add(fiber_block& block) noexcept {
    {
        const std::lock_guard lock(mutex_);
        block.is_listed = true;
        block.listed_previous = nullptr;
        block.listed_next = first_;
        if (first_ != nullptr) first_->listed_previous = &block;
        first_ = &block;
        if (!stopping()) return;
    }
    request_stop(block, cancel_reason::shutdown);  // it came after all were asked
}

void fiber_list::remove(fiber_block& block) noexcept {
    fiber_list& list = fiber_list::of(*block.home);
    const std::lock_guard lock(list.mutex_);
    for (cursor* at = list.cursors_; at != nullptr; at = at->other)
        if (at->next == &block) at->next = block.listed_next;
    (block.listed_previous != nullptr ? block.listed_previous->listed_next : list.first_) =
        block.listed_next;
    if (block.listed_next != nullptr) block.listed_next->listed_previous = block.listed_previous;
    block.is_listed = false;
}

// Stop callbacks run meanwhile, and fibers end: so they are asked one by one, each held by a
// reference, without the lock. Those that come are at the front, and asked by add().
void fiber_list::stop_all() noexcept {
    std::unique_lock lock(mutex_);
    home_.stopping_.store(true, std::memory_order_seq_cst);
    cursor at{first_, cursors_};
    cursors_ = &at;
    while (at.next != nullptr) {
        fiber_block& asked = *std::exchange(at.next, at.next->listed_next);
        add_reference(asked);
        lock.unlock();
        request_stop(asked, cancel_reason::shutdown);
        release(&asked);
        lock.lock();
    }
    cursor** link = &cursors_;
    while (*link != &at) link = &(*link)->other;
    *link = at.other;
}

// With the lock held whoever is listed stays so, and whoever is not is not there twice.
std::vector<std::string> fiber_list::lines(std::span<const fiber_place> found) const {
    std::vector<std::string> all;
    fiber_sight seen;
    const std::lock_guard lock(mutex_);
    const running_now running{hungry.running()};
    for (const fiber_block* block = first_; block != nullptr; block = block->listed_next)
        if (look_at(*block, seen))
            all.push_back(line_about(static_cast<const activity&>(*block).name,
                                     running.state_of(*block, seen), seen.site));
    std::ranges::reverse(all);  // the eldest first
    for (const fiber_place& one : found)
        if (look_at(*one.block, seen) && !seen.listed && seen.home == &home_)
            all.push_back(
                line_about(seen.name.data(), running.state_of(*one.block, seen), seen.site));
    return all;
}

void fiber_list::describe(const std::function<void(std::string_view)>& line) const {
    for (const std::string& one : lines(find_fibers(&home_))) line(one);
}

void fiber_list::describe_all(const std::function<void(std::string_view)>& line) {
    std::vector<std::string> lines;
    {
        registry& all = all_lists();
        const std::lock_guard lock(all.mutex);
        std::vector<fiber_place> found = find_fibers(nullptr);
        std::ranges::sort(found, std::less<>(), &fiber_place::home);
        for (const fiber_list* list = all.first; list != nullptr; list = list->next_list_) {
            const executor* const home = &list->home_;
            const auto own =
                std::ranges::equal_range(found, home, std::less<>(), &fiber_place::home);
            std::ranges::move(list->lines({own.begin(), own.end()}), std::back_inserter(lines));
        }
    }
    for (const std::string& one : lines) line(one);
}

void stop_all_fibers(executor& home) noexcept { fiber_list::of(home).stop_all(); }

}  // namespace weft::inline v0::detail

namespace weft::inline v0 {

void dump(const std::function<void(std::string_view)>& sink) {
    detail::fiber_list::describe_all(sink);
}

}  // namespace weft::inline v0
