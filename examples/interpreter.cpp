// interpreter.cpp - a host's state per fiber: several fibers over one interpreter.
//
// A stack machine keeps values, calls and scopes in one object, as an embedded interpreter does. A
// program on it may wait in the middle of anything. Nothing in the machine knows of fibers: a
// suspend hook puts the machine's state by when its fiber is about to suspend, and back when it
// goes on, whatever made it wait.
//
// SPDX-License-Identifier: Apache-2.0
#include <chrono>
#include <cstdio>
#include <map>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include <weft/weft.hpp>

using namespace weft;
using namespace std::chrono_literals;

// --- the machine

enum class code {
    push,      // a number
    load,      // a name: its value, from the innermost scope that has it
    store,     // a name: in the innermost scope
    add,       // the two values on top
    subtract,  //
    multiply,  //
    if_zero,   // to this instruction, if the value on top is 0
    call,      // this instruction, in a new scope
    give,      // ends the call and its scope; the value on top stays
    wait,      // lets others run
    nap,       // for a millisecond
};

struct instruction {
    code what;
    long number = 0;
    std::string name = {};
};
using program = std::vector<instruction>;

class machine {
public:
    // Everything that belongs to the program that is under way.
    struct state {
        std::vector<long> values;
        std::vector<std::size_t> calls;                   // where each goes on
        std::vector<std::map<std::string, long>> scopes;  // of each call
    };
    state now;

    long run(const program& text) {
        now.scopes.emplace_back();
        std::size_t at = 0;
        while (step(text, at)) {}
        return pop();
    }

private:
    // False: the outermost program has ended.
    bool step(const program& text, std::size_t& at) {
        const instruction& i = text.at(at++);
        switch (i.what) {
            case code::push:
                now.values.push_back(i.number);
                break;
            case code::load:
                now.values.push_back(look_up(i.name));
                break;
            case code::store:
                now.scopes.back()[i.name] = pop();
                break;
            case code::add:
            case code::subtract:
            case code::multiply:
                now.values.push_back(calculate(i.what));
                break;
            case code::if_zero:
                if (pop() == 0) at = static_cast<std::size_t>(i.number);
                break;
            case code::call:
                now.calls.push_back(std::exchange(at, static_cast<std::size_t>(i.number)));
                now.scopes.emplace_back();
                break;
            case code::give:
                now.scopes.pop_back();
                if (now.calls.empty()) return false;
                at = now.calls.back();
                now.calls.pop_back();
                break;
            case code::wait:
                yield();
                break;
            case code::nap:
                sleep_for(1ms);
                break;
        }
        return true;
    }

    long pop() {
        const long value = now.values.back();
        now.values.pop_back();
        return value;
    }

    long calculate(code what) {
        const long right = pop();
        const long left = pop();
        if (what == code::add) return left + right;
        return what == code::subtract ? left - right : left * right;
    }

    [[nodiscard]] long look_up(const std::string& name) const {
        for (auto scope = now.scopes.rbegin(); scope != now.scopes.rend(); ++scope)
            if (const auto found = scope->find(name); found != scope->end()) return found->second;
        throw std::runtime_error("no such name: " + name);
    }
};

// --- the hook

// While it lives, this fiber has the machine's state for itself.
class own_state final : private suspend_hook {
public:
    explicit own_state(machine& host) : host_(host), before_(this_fiber::set_suspend_hook(this)) {}
    own_state(const own_state&) = delete;
    own_state& operator=(const own_state&) = delete;
    ~own_state() override { this_fiber::set_suspend_hook(before_); }

    [[nodiscard]] int times_saved() const noexcept { return times_saved_; }

private:
    void suspend() override {
        machine::state mine = std::exchange(host_.now, {});
        ++times_saved_;
        suspend_hook::suspend();  // others run on the machine meanwhile
        host_.now = std::move(mine);
    }
    void start() override { host_.now = {}; }
    void finish() noexcept override { host_.now = {}; }

    machine& host_;
    suspend_hook* const before_;
    int times_saved_ = 0;
};

// --- programs

// clang-format off

// n!, recursively; each call waits before it multiplies.
program factorial(long n) {
    return {
        {code::push, n}, {code::call, 3}, {code::give},
        // 3: the function
        {code::store, 0, "n"}, {code::load, 0, "n"}, {code::if_zero, 15},
        {code::load, 0, "n"}, {code::load, 0, "n"}, {code::push, 1}, {code::subtract},
        {code::call, 3}, {code::wait}, {code::multiply}, {code::nap}, {code::give},
        // 15: n is 0
        {code::push, 1}, {code::give},
    };
}

// 1 + 2 + ... + n, in a loop; it waits with both operands on the stack.
program sum(long n) {
    return {
        {code::push, 0}, {code::store, 0, "sum"}, {code::push, n}, {code::store, 0, "n"},
        // 4: again
        {code::load, 0, "n"}, {code::if_zero, 17},
        {code::load, 0, "sum"}, {code::load, 0, "n"}, {code::wait}, {code::add},
        {code::store, 0, "sum"},
        {code::load, 0, "n"}, {code::push, 1}, {code::subtract}, {code::store, 0, "n"},
        {code::push, 0}, {code::if_zero, 4},
        // 17: n is 0
        {code::load, 0, "sum"}, {code::give},
    };
}

// clang-format on

int main() {
    machine shared;
    struct job {
        const char* name;
        program text;
        long expected;
        long result = 0;
    };
    job jobs[] = {{"factorial of 10", factorial(10), 3'628'800},
                  {"factorial of 15", factorial(15), 1'307'674'368'000},
                  {"sum to 100", sum(100), 5'050},
                  {"sum to 1000", sum(1000), 500'500}};
    int saved = 0;
    {
        loop s;
        for (job& j : jobs)
            go(s, {.name = j.name}, [&] {
                const own_state mine(shared);
                j.result = shared.run(j.text);
                saved += mine.times_saved();
            });
        s.run();
    }
    bool right = saved >= 10 + 15 + 100 + 1000;
    for (const job& j : jobs) {
        std::printf("%-16s %ld\n", j.name, j.result);
        right = right && j.result == j.expected;
    }
    std::printf("the state was put by %d times\n%s\n", saved, right ? "right" : "wrong");
    return right ? 0 : 1;
}
