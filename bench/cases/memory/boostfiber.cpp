// boostfiber.cpp - parked fibers of Boost.Fiber, on pooled stacks of 16 KiB and on fixed ones.
//
// SPDX-License-Identifier: Apache-2.0
#include <boost/fiber/all.hpp>
#include <boost/version.hpp>
#include <memory>
#include <vector>

#include "cases/memory/workload.hpp"

namespace {

namespace fibers = boost::fibers;

constexpr std::size_t stack_size = 16 * 1024;

template <class Stacks>
class boost_player {
public:
    explicit boost_player(std::uint64_t count) : stacks_(stack_size), waiting_(count) {}

    void park() {
        for (std::uint64_t i = 0; i < waiting_.size(); ++i)
            fibers::fiber(fibers::launch::post, std::allocator_arg, stacks_, [this, i] {
                std::uint64_t local = i;
                bench::keep(local);
                waiting_[i] = fibers::context::active();
                ++parked_;
                waiting_[i]->suspend();
                bench::keep(local);
                if (local == i) ++ended_;
            }).detach();
        while (parked_ != waiting_.size()) boost::this_fiber::yield();
    }

    std::uint64_t wake() {
        for (fibers::context* const each : waiting_) fibers::context::active()->schedule(each);
        while (ended_ != waiting_.size()) boost::this_fiber::yield();
        return ended_;
    }

private:
    Stacks stacks_;
    std::vector<fibers::context*> waiting_;
    std::uint64_t parked_ = 0;
    std::uint64_t ended_ = 0;
};

template <class Stacks>
boost_player<Stacks> make(std::uint64_t count) {
    return boost_player<Stacks>(count);
}

}  // namespace

int main(int argc, char** argv) {
    const bench::settings how = bench::read_arguments(argc, argv);
    bench::about("Boost.Fiber " + std::to_string(BOOST_VERSION / 100'000) + "." +
                 std::to_string(BOOST_VERSION / 100 % 1'000));
    bench::parked::measure(how, "Boost.Fiber, pooled stacks", 9'000,
                           make<fibers::pooled_fixedsize_stack>);
    bench::parked::measure(how, "Boost.Fiber, fixed stacks", 9'000, make<fibers::fixedsize_stack>);
}
