// boostfiber_two.cpp - a channel of Boost.Fiber between fibers of two threads.
//
// SPDX-License-Identifier: Apache-2.0
#include <boost/fiber/all.hpp>
#include <boost/version.hpp>
#include <thread>

#include "cases/channel/workload.hpp"

int main(int argc, char** argv) {
    using namespace bench::channels;
    namespace fibers = boost::fibers;
    const bench::settings how = bench::read_arguments(argc, argv);
    bench::about("Boost.Fiber " + std::to_string(BOOST_VERSION / 100'000) + "." +
                 std::to_string(BOOST_VERSION / 100 % 1'000));
    measure_stream(how, "Boost.Fiber, two threads, stream", 2'000'000, [](game& g) {
        fibers::buffered_channel<std::uint64_t> items(capacity);
        std::thread sends([&] {
            fibers::fiber([&] {
                g.clock.start();
                for (std::uint64_t i = 1; i <= g.items; ++i) items.push(i);
                items.close();
            }).join();
        });
        fibers::fiber([&] {
            std::uint64_t sum = 0;
            std::uint64_t item = 0;
            while (items.pop(item) == fibers::channel_op_status::success) sum += item;
            g.answer = sum;
        }).join();
        sends.join();
        g.clock.stop();
    });
}
