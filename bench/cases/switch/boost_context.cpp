// boost_context.cpp - Boost.Context: its fiber, and the bare jump below it.
//
// SPDX-License-Identifier: Apache-2.0
#include <boost/context/detail/fcontext.hpp>
#include <boost/context/fiber.hpp>
#include <boost/version.hpp>
#include <string>
#include <utility>
#include <vector>

#include "cases/switch/workload.hpp"

namespace {

namespace context = boost::context;
using context::detail::transfer_t;

void play_fiber(bench::match& m) {
    context::fiber second([&m](context::fiber&& resumer) {
        context::fiber first = std::move(resumer);
        std::uint64_t count = 0;
        while (count < m.turns) {
            ++count;
            first = std::move(first).resume();
        }
        m.second = count;
        return first;
    });
    std::uint64_t count = 0;
    m.begin();
    while (count < m.turns) {
        ++count;
        second = std::move(second).resume();
    }
    second = std::move(second).resume();
    m.end();
    m.first = count;
}

void second_side(transfer_t from) {
    bench::match& m = *static_cast<bench::match*>(from.data);
    std::uint64_t count = 0;
    while (count < m.turns) {
        ++count;
        from = context::detail::jump_fcontext(from.fctx, nullptr);
    }
    m.second = count;
    context::detail::jump_fcontext(from.fctx, nullptr);
}

void play_jump(bench::match& m) {
    std::vector<std::byte> stack(64 * 1024);
    transfer_t to{
        context::detail::make_fcontext(stack.data() + stack.size(), stack.size(), second_side),
        nullptr};
    std::uint64_t count = 0;
    m.begin();
    while (count < m.turns) {
        ++count;
        to = context::detail::jump_fcontext(to.fctx, &m);
    }
    context::detail::jump_fcontext(to.fctx, &m);
    m.end();
    m.first = count;
}

}  // namespace

int main(int argc, char** argv) {
    const bench::settings how = bench::read_arguments(argc, argv);
    bench::about("Boost.Context " + std::to_string(BOOST_VERSION / 100'000) + "." +
                 std::to_string(BOOST_VERSION / 100 % 1'000));
    bench::play_row(how, "Boost.Context fiber", 5'000'000, play_fiber);
    bench::play_row(how, "Boost.Context jump_fcontext", 5'000'000, play_jump);
}
