// boostfiber.cpp - Boost.Fiber with pooled stacks, and with those that it takes by default.
//
// SPDX-License-Identifier: Apache-2.0
#include <boost/fiber/all.hpp>
#include <boost/version.hpp>
#include <memory>
#include <string>

#include "cases/spawn/workload.hpp"

namespace {

using namespace bench::spawns;
namespace fibers = boost::fibers;

// Small enough that a million have room; its own control block lies in there, too.
constexpr std::size_t stack_size = 16 * 1024;

template <class Stacks>
void create(Stacks& stacks, task& r, std::uint64_t count) {
    for (std::uint64_t i = 0; i < count; ++i)
        fibers::fiber(fibers::launch::post, std::allocator_arg, stacks, [&r] { ++r.ran; }).detach();
}

template <class Stacks>
auto in_batches(Stacks stacks) {
    return [stacks](task& r) mutable {
        for (std::uint64_t begun = 0; begun < r.fibers; begun += batch) {
            create(stacks, r, batch);
            while (r.ran != begun + batch) boost::this_fiber::yield();
        }
    };
}

auto at_once() {
    return [stacks = fibers::pooled_fixedsize_stack(stack_size)](task& r) mutable {
        create(stacks, r, r.fibers);
        while (r.ran != r.fibers) boost::this_fiber::yield();
    };
}

}  // namespace

int main(int argc, char** argv) {
    const bench::settings how = bench::read_arguments(argc, argv);
    bench::about("Boost.Fiber " + std::to_string(BOOST_VERSION / 100'000) + "." +
                 std::to_string(BOOST_VERSION / 100 % 1'000));
    measure_batches(how, "Boost.Fiber, pooled stacks",
                    in_batches(fibers::pooled_fixedsize_stack(stack_size)));
    measure_batches(how, "Boost.Fiber, default stacks", in_batches(fibers::default_stack()),
                    100'000);
    measure_at_once(how, "Boost.Fiber, pooled stacks, a million at once", 9'000, at_once(),
                    100'000);
}
