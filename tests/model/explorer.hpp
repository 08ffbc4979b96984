// explorer.hpp - walks all interleavings of a few actors, with a bound on preemptions.
//
// A scenario is some shared state and what each actor does to it. The actors are coroutines on one
// thread; before every operation of a model_atomic the explorer decides who goes on:
//
//     struct two_counts : scenario {
//         model_atomic<int> count{0};
//         void act(unsigned) override { count.store(count.load() + 1); }
//         void at_end() override { check(count.load() == 2, "a count is lost"); }
//     };
//     const report r = explore<two_counts>({.actors = 2, .preemptions = 1});
//     // r.failure: "a count is lost", r.schedule: "a2 b3 a2"
//
// It runs the scenario again and again, from the beginning, depth first over those decisions. A
// switch away from an actor that could go on is a preemption; there are at most so many in a run.
// Switches away from one that waits or has ended are free. Nothing else is left to chance, so
// replay() of the schedule of a failure fails in the same way: "a2 b3" means that a was chosen at
// the first two decisions, b at the three after them.
//
// It sees interleavings, each operation whole and in the order of the program: nothing of what
// weaker memory orders allow. docs/models.md says what that means.
//
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include <weft/coroutine/coroutine.hpp>

namespace weft_model {

/// What is explored; made anew for each run.
class scenario {
public:
    scenario() = default;
    scenario(const scenario&) = delete;
    scenario& operator=(const scenario&) = delete;
    virtual ~scenario() = default;

    virtual void act(unsigned actor) = 0;
    /// Nobody can go on, somebody waits. True: that is as it should be, and something was changed
    /// that ends the waiting. False: it is a deadlock.
    virtual bool at_rest() { return false; }
    /// All actors have ended.
    virtual void at_end() {}
};

struct limits {
    unsigned actors = 2;
    unsigned preemptions = 2;
    unsigned in_soak = 0;      // preemptions when tests run at their full counts, if more
    std::size_t steps = 1000;  // in one run; more is a livelock
};

struct report {
    std::uint64_t runs = 0;
    std::size_t longest = 0;    // decisions in a run
    std::string failure = {};   // empty: there was none
    std::string schedule = {};  // of the failure
    std::string trace = {};     // what was done in it, a line an operation
    [[nodiscard]] bool passed() const noexcept { return failure.empty(); }
};

class explorer {
public:
    using factory = std::function<std::unique_ptr<scenario>()>;
    explorer(const limits& l, factory make);
    explorer(const explorer&) = delete;
    explorer& operator=(const explorer&) = delete;
    ~explorer();

    [[nodiscard]] report explore();
    [[nodiscard]] report replay(std::string_view schedule);

    /// Whoever explores now; nullptr: nobody.
    [[nodiscard]] static explorer* here() noexcept { return here_; }
    [[nodiscard]] bool in_actor() const noexcept { return in_actor_; }
    [[nodiscard]] unsigned current() const noexcept { return current_; }

    // From an actor.

    /// Before an operation that others can see.
    void step();
    /// After it: `changed` if others now see something else.
    void did(const char* what, const void* where, std::uint64_t before, std::uint64_t after,
             bool changed);
    /// Ends the run.
    void fail(const std::string& message);
    /// Until the condition holds, which depends on shared state alone. `what`, for reports.
    template <class Condition>
    void wait_until(const char* what, Condition condition) {
        step();
        if (condition()) return;
        wait(
            what, [](const void* c) { return (*static_cast<const Condition*>(c))(); }, &condition);
    }
    /// In a loop that spins: if nothing has changed since the last time, nothing will until another
    /// actor changes something, and until then this one waits.
    void pause();

private:
    using condition_function = bool (*)(const void*);
    struct actor {
        weft::coroutine body;
        bool done = false;
        condition_function holds = nullptr;  // nullptr: it does not wait
        const void* condition = nullptr;
        const char* waits_for = nullptr;
        std::uint64_t own_changes = 0;
        std::uint64_t changes_at_pause = 0;
    };
    struct decision {
        std::uint8_t options;
        std::uint8_t taken;
    };
    static constexpr unsigned nobody = ~0U;

    void make_actors();
    void run_once();
    [[nodiscard]] bool next_path();
    void wait(const char* what, condition_function holds, const void* condition);
    [[nodiscard]] bool can_go_on(unsigned which) const;
    [[nodiscard]] unsigned choose(bool current_can);
    void find_options(bool current_can);
    [[nodiscard]] unsigned decide();
    [[nodiscard]] unsigned prescribed();
    void nobody_can();
    void switch_to(unsigned next);
    [[nodiscard]] report result(std::uint64_t runs);
    [[nodiscard]] std::string written_schedule() const;
    [[nodiscard]] std::uint64_t changes_by_others(unsigned which) const noexcept {
        return changes_ - actors_[which].own_changes;
    }

    static inline explorer* here_ = nullptr;

    const limits limits_;
    const factory make_;
    std::vector<actor> actors_;
    std::vector<decision> path_;        // the branches taken in this run, and how many there were
    std::vector<unsigned> prescribed_;  // a replay: who is chosen at each decision
    bool replaying_ = false;
    std::size_t longest_ = 0;

    // Of one run.
    std::unique_ptr<scenario> scenario_;
    std::unique_ptr<std::uint8_t[]> chosen_;  // at each decision
    std::size_t decisions_ = 0;
    std::array<std::uint8_t, 8> options_{};
    unsigned option_count_ = 0;
    std::size_t depth_ = 0;
    unsigned current_ = nobody;
    unsigned preemptions_ = 0;
    std::uint64_t changes_ = 0;
    bool in_actor_ = false;
    std::string failure_;
    std::string trace_;
    std::map<const void*, std::size_t> numbers_;  // of the atomics, in the order of their use
};

/// Fails the run; in at_end() and act().
inline void check(bool holds, const char* message) {
    if (!holds) explorer::here()->fail(message);
}

/// Waits in an actor; see explorer::wait_until.
template <class Condition>
void wait_until(const char* what, Condition condition) {
    explorer::here()->wait_until(what, condition);
}

template <class Scenario>
[[nodiscard]] report explore(const limits& l) {
    return explorer(l, [] { return std::make_unique<Scenario>(); }).explore();
}

template <class Scenario>
[[nodiscard]] report replay(const limits& l, std::string_view schedule) {
    return explorer(l, [] { return std::make_unique<Scenario>(); }).replay(schedule);
}

}  // namespace weft_model
