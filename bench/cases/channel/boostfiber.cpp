// boostfiber.cpp - Boost.Fiber's channels on one thread, with its default scheduler.
//
// SPDX-License-Identifier: Apache-2.0
#include <boost/fiber/all.hpp>
#include <boost/version.hpp>

#include "cases/channel/workload.hpp"

namespace {

using namespace bench::channels;
namespace fibers = boost::fibers;
using status = fibers::channel_op_status;

void ping_pong(game& g) {
    fibers::unbuffered_channel<std::uint64_t> there;
    fibers::unbuffered_channel<std::uint64_t> back;
    fibers::fiber first(fibers::launch::post, [&] {
        g.clock.start();
        std::uint64_t ball = 0;
        while (ball < g.items) {
            bench::require(there.push(ball + 1) == status::success, "there");
            bench::require(back.pop(ball) == status::success, "back");
        }
        g.answer = ball;
        g.clock.stop();
        there.close();
    });
    fibers::fiber second(fibers::launch::post, [&] {
        std::uint64_t ball = 0;
        while (there.pop(ball) == status::success) back.push(ball + 1);
    });
    first.join();
    second.join();
}

void stream(game& g) {
    fibers::buffered_channel<std::uint64_t> items(capacity);
    fibers::fiber sends(fibers::launch::post, [&] {
        g.clock.start();
        for (std::uint64_t i = 1; i <= g.items; ++i) items.push(i);
        items.close();
    });
    fibers::fiber receives(fibers::launch::post, [&] {
        std::uint64_t sum = 0;
        std::uint64_t item = 0;
        while (items.pop(item) == status::success) sum += item;
        g.answer = sum;
        g.clock.stop();
    });
    sends.join();
    receives.join();
}

}  // namespace

int main(int argc, char** argv) {
    const bench::settings how = bench::read_arguments(argc, argv);
    bench::about("Boost.Fiber " + std::to_string(BOOST_VERSION / 100'000) + "." +
                 std::to_string(BOOST_VERSION / 100 % 1'000));
    measure_ping_pong(how, "Boost.Fiber, ping-pong", 2'000'000, ping_pong);
    measure_stream(how, "Boost.Fiber, stream", 4'000'000, stream);
}
