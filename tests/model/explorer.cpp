// explorer.cpp - see explorer.hpp.
//
// SPDX-License-Identifier: Apache-2.0
#include "explorer.hpp"

#include <algorithm>
#include <utility>

namespace weft_model {

namespace {

// A run that failed stops in the middle of functions that let no exception pass, so its coroutines
// cannot be unwound. They stay as they are until the process ends: a few, for a failure ends the
// exploration.
std::vector<weft::coroutine>& abandoned() {
    static auto& all = *new std::vector<weft::coroutine>;
    return all;
}

char letter(unsigned actor) { return static_cast<char>('a' + actor); }

}  // namespace

explorer::explorer(const limits& l, factory make)
    : limits_(l), make_(std::move(make)), chosen_(new std::uint8_t[l.steps]) {
    here_ = this;
    actors_.resize(limits_.actors);
    make_actors();
}

explorer::~explorer() {
    here_ = nullptr;
    for (actor& one : actors_)
        if (!one.done) abandoned().push_back(std::move(one.body));
}

// Made once: each goes through as many runs as there are.
void explorer::make_actors() {
    for (unsigned i = 0; i < limits_.actors; ++i) {
        actors_[i].done = true;
        actors_[i].body = weft::coroutine([this, i] {
            for (;;) {
                scenario_->act(i);
                actors_[i].done = true;
                weft::this_coroutine::yield();
            }
        });
    }
}

// --- all runs

report explorer::explore() {
    std::uint64_t runs = 0;
    do {
        run_once();
        ++runs;
    } while (failure_.empty() && next_path());
    if (failure_.empty()) return {.runs = runs, .longest = longest_};
    report found = result(runs);
    // Once more, for the trace.
    explorer again(limits_, make_);
    found.trace = again.replay(found.schedule).trace;
    here_ = this;
    return found;
}

report explorer::replay(std::string_view schedule) {
    prescribed_.clear();
    replaying_ = true;
    for (std::size_t at = 0; at < schedule.size(); ++at) {
        if (schedule[at] == ' ') continue;
        const auto who = static_cast<unsigned>(schedule[at] - 'a');
        std::size_t count = 0;
        while (at + 1 < schedule.size() && schedule[at + 1] >= '0' && schedule[at + 1] <= '9')
            count = count * 10 + static_cast<std::size_t>(schedule[++at] - '0');
        prescribed_.insert(prescribed_.end(), count, who);
    }
    run_once();
    return result(1);
}

report explorer::result(std::uint64_t runs) {
    return {.runs = runs,
            .longest = longest_,
            .failure = failure_,
            .schedule = written_schedule(),
            .trace = std::move(trace_)};
}

std::string explorer::written_schedule() const {
    std::string text;
    for (std::size_t i = 0; i < decisions_;) {
        std::size_t end = i;
        while (end < decisions_ && chosen_[end] == chosen_[i]) ++end;
        if (!text.empty()) text += ' ';
        text += letter(chosen_[i]) + std::to_string(end - i);
        i = end;
    }
    return text;
}

// The next branch, depth first. False: that was the last.
bool explorer::next_path() {
    while (!path_.empty() && path_.back().taken + 1 == path_.back().options) path_.pop_back();
    if (path_.empty()) return false;
    ++path_.back().taken;
    return true;
}

// --- one run

void explorer::run_once() {
    depth_ = 0;
    preemptions_ = 0;
    changes_ = 0;
    decisions_ = 0;
    for (actor& one : actors_) {
        one.done = false;
        one.holds = nullptr;
        one.own_changes = 0;
        one.changes_at_pause = 0;
    }
    scenario_ = make_();
    current_ = choose(false);
    while (current_ != nobody && failure_.empty()) {
        in_actor_ = true;
        actors_[current_].body.resume();
        in_actor_ = false;
        if (failure_.empty() && actors_[current_].done) current_ = choose(false);
    }
    longest_ = std::max(longest_, decisions_);
    if (failure_.empty()) scenario_->at_end();
    if (failure_.empty()) scenario_.reset();
}

bool explorer::can_go_on(unsigned which) const {
    const actor& one = actors_[which];
    return !one.done && (one.holds == nullptr || one.holds(one.condition));
}

// Who is next. The current one is the first to be tried, so that the first run has no preemption.
unsigned explorer::choose(bool current_can) {
    if (decisions_ >= limits_.steps) {
        fail("livelock: more than " + std::to_string(limits_.steps) + " steps");
        return nobody;
    }
    unsigned next = current_;
    if (!current_can || preemptions_ < limits_.preemptions || replaying_) {
        find_options(current_can);
        if (option_count_ == 0) nobody_can();
        if (option_count_ == 0) return nobody;
        next = replaying_ ? prescribed() : decide();
        if (next == nobody) return nobody;
    }
    if (current_can && next != current_) ++preemptions_;
    chosen_[decisions_++] = static_cast<std::uint8_t>(next);
    return next;
}

void explorer::find_options(bool current_can) {
    option_count_ = 0;
    if (current_can) options_[option_count_++] = static_cast<std::uint8_t>(current_);
    for (unsigned i = 0; i < limits_.actors; ++i)
        if ((!current_can || i != current_) && can_go_on(i))
            options_[option_count_++] = static_cast<std::uint8_t>(i);
}

unsigned explorer::decide() {
    if (option_count_ == 1) return options_[0];
    if (depth_ == path_.size())
        path_.push_back({.options = static_cast<std::uint8_t>(option_count_), .taken = 0});
    return options_[path_[depth_++].taken];
}

unsigned explorer::prescribed() {
    if (decisions_ >= prescribed_.size()) return options_[0];
    const unsigned wanted = prescribed_[decisions_];
    for (unsigned i = 0; i < option_count_; ++i)
        if (options_[i] == wanted) return wanted;
    fail("the schedule does not fit, at decision " + std::to_string(decisions_));
    return nobody;
}

// All have ended, or it is for the scenario to say what that means. Leaves those as options that
// can go on then.
void explorer::nobody_can() {
    if (std::ranges::all_of(actors_, &actor::done)) return;
    const bool was_in_actor = std::exchange(in_actor_, false);
    const bool changed = scenario_->at_rest();
    in_actor_ = was_in_actor;
    if (changed) find_options(false);
    if (option_count_ != 0) return;
    std::string waiters = "deadlock:";
    for (unsigned i = 0; i < actors_.size(); ++i)
        if (!actors_[i].done)
            waiters += std::string(" ") + letter(i) + " waits for " + actors_[i].waits_for + ";";
    waiters.pop_back();
    fail(waiters);
}

// --- from an actor

void explorer::step() {
    if (!in_actor_) return;
    const unsigned me = current_;
    const unsigned next = choose(true);
    if (next != me) switch_to(next);
}

void explorer::wait(const char* what, condition_function holds, const void* condition) {
    actor& me = actors_[current_];
    me.holds = holds;
    me.condition = condition;
    me.waits_for = what;
    const unsigned self = current_;
    const unsigned next = choose(false);
    if (next != self) switch_to(next);
    me.holds = nullptr;
}

// Back to run_once(), which resumes the one that was chosen; after a failure nobody.
void explorer::switch_to(unsigned next) {
    if (next != nobody) current_ = next;
    do weft::this_coroutine::yield();
    while (!failure_.empty());
}

void explorer::pause() {
    if (!in_actor_) return;
    const unsigned self = current_;
    const std::uint64_t seen = actors_[self].changes_at_pause;
    const auto somebody_moved = [this, self, seen] { return changes_by_others(self) != seen; };
    if (!somebody_moved())
        wait(
            "another to move, and spins",
            [](const void* c) { return (*static_cast<decltype(somebody_moved)*>(c))(); },
            &somebody_moved);
    actors_[self].changes_at_pause = changes_by_others(self);
}

void explorer::did(const char* what, const void* where, std::uint64_t before, std::uint64_t after,
                   bool changed) {
    if (!in_actor_) return;
    if (changed) {
        ++changes_;
        ++actors_[current_].own_changes;
    }
    if (!replaying_) return;
    const std::size_t number = numbers_.try_emplace(where, numbers_.size()).first->second;
    trace_ += std::string(1, letter(current_)) + "  x" + std::to_string(number) + "  " + what +
              "  " + std::to_string(before);
    if (changed) trace_ += " -> " + std::to_string(after);
    trace_ += '\n';
}

void explorer::fail(const std::string& message) {
    if (failure_.empty()) failure_ = message;
    if (in_actor_ && current_ != nobody) switch_to(nobody);
}

}  // namespace weft_model
