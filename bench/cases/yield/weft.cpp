// weft.cpp - fibers of weft that yield, of every kind.
//
// SPDX-License-Identifier: Apache-2.0
#include <weft/exec/loop.hpp>
#include <weft/fiber/go.hpp>
#include <weft/fiber/this_fiber.hpp>

#include "cases/yield/workload.hpp"

namespace {

using namespace bench::yields;

auto two(weft::stack_kind kind) {
    return [kind](pair& p) {
        weft::loop loop({.external_wakes = false});
        for (int i = 0; i < 2; ++i)
            weft::go(loop, {.kind = kind}, [&p, first = i == 0] {
                if (first) p.clock.start();
                std::uint64_t turns = 0;
                for (std::uint64_t n = p.yields; n != 0; --n) {
                    weft::yield();
                    ++turns;
                }
                p.turns += turns;
            });
        loop.run();
        p.clock.stop();
    };
}

// The loop is made once: warm means that it has run fibers before.
class many {
public:
    explicit many(weft::stack_kind kind) : kind_(kind) {}

    void operator()(crowd& c) {
        if (loop_ == nullptr) loop_ = std::make_unique<weft::loop>(options());
        if (c.inside) c.clock.start();
        for (std::uint64_t i = 0; i < c.fibers; ++i)
            weft::go(*loop_, {.kind = kind_}, [&c] {
                ++c.turns;
                weft::yield();
                ++c.turns;
            });
        if (!c.inside) c.clock.start();
        loop_->run();
        c.clock.stop();
    }

private:
    static weft::loop_options options() { return {.external_wakes = false}; }

    weft::stack_kind kind_;
    std::unique_ptr<weft::loop> loop_;
};

}  // namespace

int main(int argc, char** argv) {
    const bench::settings how = bench::read_arguments(argc, argv);
    using enum weft::stack_kind;
    measure_two(how, "weft, own stacks", 1'000'000, two(own));
    measure_two(how, "weft, swapped", 1'000'000, two(swapped));
    measure_two(how, "weft, ucontext", 200'000, two(ucontext));
    measure_two(how, "weft, thread", 20'000, two(thread));
    measure_many(how, "weft, own stacks, many", many(own));
    measure_many(how, "weft, swapped, many", many(swapped));
}
