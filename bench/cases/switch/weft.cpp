// weft.cpp - the switch of weft itself: inlined, called, as a coroutine's and as a generator's.
//
// SPDX-License-Identifier: Apache-2.0
#include <vector>

#include <weft/context/context.hpp>
#include <weft/coroutine/generator.hpp>

#include "cases/switch/coroutine_match.hpp"
#include "context/switch.hpp"

namespace {

using arrival = weft::detail::arrival<weft::context>;

// The switch as fibers and coroutines inline it, the check for exception state included. A side
// goes on with the addresses that it arrives with.
struct inlined {
    [[gnu::always_inline]] static arrival swap(weft::context& from, weft::context& to) {
        return weft::detail::swap_here(from, to);
    }
};

// The switch as a user calls it: a side has to know the addresses.
struct called {
    [[gnu::always_inline]] static arrival swap(weft::context& from, weft::context& to) {
        weft::context::swap(from, to);
        return {from, &to};
    }
};

struct sides {
    weft::context first;
    weft::context second;
    bench::match& match;
};

template <class Switch>
[[gnu::always_inline]] inline std::uint64_t take_turns(weft::context& from, weft::context& to,
                                                       std::uint64_t turns) {
    weft::context* mine = &from;
    weft::context* other = &to;
    std::uint64_t count = 0;
    while (count < turns) {
        ++count;
        const arrival at = Switch::swap(*mine, *other);
        mine = &at.mine;
        other = at.left;
    }
    return count;
}

template <class Switch>
[[gnu::noinline]] void second_side(void* argument) {
    sides& both = *static_cast<sides*>(argument);
    both.match.second = take_turns<Switch>(both.second, both.first, both.match.turns);
    weft::context::jump(both.first);
}

template <class Switch>
[[gnu::noinline]] void first_side(sides& both) {
    both.match.first = take_turns<Switch>(both.first, both.second, both.match.turns);
    Switch::swap(both.first, both.second);  // so that the second can end, too
}

template <class Switch>
void play_contexts(bench::match& m) {
    std::vector<std::byte> stack(64 * 1024);
    sides both{.first = {}, .second = {}, .match = m};
    both.second = weft::context::make(stack, second_side<Switch>, &both);
    m.begin();
    first_side<Switch>(both);
    m.end();
}

void play_generator(bench::match& m) {
    weft::generator<std::uint64_t> numbers([&m](auto& yield) {
        std::uint64_t count = 0;
        while (count < m.turns) {
            ++count;
            yield(count);
        }
        m.second = count;
    });
    std::uint64_t count = 0;
    m.begin();
    for (const std::uint64_t number : numbers) {
        ++count;
        bench::require(number == count, "the generator's numbers");
    }
    m.end();
    m.first = count;
}

}  // namespace

int main(int argc, char** argv) {
    const bench::settings how = bench::read_arguments(argc, argv);
    bench::play_row(how, "weft context, switch inlined", 20'000'000, play_contexts<inlined>);
    bench::play_row(how, "weft context::swap", 10'000'000, play_contexts<called>);
    bench::play_row(how, "weft coroutine, resume and yield", 5'000'000,
                    bench::play_coroutines<weft::coroutine>);
    bench::play_row(how, "weft generator", 5'000'000, play_generator);
}
