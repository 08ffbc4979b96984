// boost_context.cpp - Boost.Context's bare switch: what a yield costs at least there.
//
// SPDX-License-Identifier: Apache-2.0
#include <boost/context/detail/fcontext.hpp>
#include <boost/version.hpp>
#include <cstddef>

#include "cases/yield/workload.hpp"

namespace {

using namespace bench::yields;
namespace context = boost::context::detail;

std::uint64_t switch_often(context::transfer_t& other, std::uint64_t yields, void* data) {
    std::uint64_t turns = 0;
    while (turns < yields) {
        other = context::jump_fcontext(other.fctx, data);
        ++turns;
    }
    return turns;
}

void entry(context::transfer_t other) {
    pair& p = *static_cast<pair*>(other.data);
    p.turns += switch_often(other, p.yields, nullptr);
    context::jump_fcontext(other.fctx, nullptr);
}

void two(pair& p) {
    std::vector<std::byte> stack(64 * 1024);
    context::transfer_t other{
        context::make_fcontext(stack.data() + stack.size(), stack.size(), entry), nullptr};
    p.clock.start();
    p.turns += switch_often(other, p.yields, &p);
    context::jump_fcontext(other.fctx, &p);  // so that it can end, too
    p.clock.stop();
}

}  // namespace

int main(int argc, char** argv) {
    const bench::settings how = bench::read_arguments(argc, argv);
    bench::about("Boost.Context " + std::to_string(BOOST_VERSION / 100'000) + "." +
                 std::to_string(BOOST_VERSION / 100 % 1'000));
    measure_two(how, "Boost.Context, bare switch", 5'000'000, two);
}
