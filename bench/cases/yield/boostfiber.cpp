// boostfiber.cpp - Boost.Fiber, with its default scheduler and pooled stacks.
//
// SPDX-License-Identifier: Apache-2.0
#include <boost/fiber/all.hpp>
#include <boost/version.hpp>
#include <memory>

#include "cases/yield/workload.hpp"

namespace {

using namespace bench::yields;
namespace fibers = boost::fibers;

void two(pair& p) {
    const auto side = [&p] {
        std::uint64_t turns = 0;
        for (std::uint64_t n = p.yields; n != 0; --n) {
            boost::this_fiber::yield();
            ++turns;
        }
        p.turns += turns;
    };
    fibers::fiber first(fibers::launch::post, side);
    fibers::fiber second(fibers::launch::post, side);
    p.clock.start();
    first.join();
    second.join();
    p.clock.stop();
}

class many {
public:
    void operator()(crowd& c) {
        std::vector<fibers::fiber> all;
        all.reserve(c.fibers);
        if (c.inside) c.clock.start();
        for (std::uint64_t i = 0; i < c.fibers; ++i)
            all.emplace_back(fibers::launch::post, std::allocator_arg, stacks_, [&c] {
                ++c.turns;
                boost::this_fiber::yield();
                ++c.turns;
            });
        if (!c.inside) c.clock.start();
        for (fibers::fiber& each : all) each.join();
        c.clock.stop();
    }

private:
    fibers::pooled_fixedsize_stack stacks_{16 * 1024};
};

}  // namespace

int main(int argc, char** argv) {
    const bench::settings how = bench::read_arguments(argc, argv);
    bench::about("Boost.Fiber " + std::to_string(BOOST_VERSION / 100'000) + "." +
                 std::to_string(BOOST_VERSION / 100 % 1'000));
    measure_two(how, "Boost.Fiber", 1'000'000, two);
    measure_many(how, "Boost.Fiber, many", many());
}
