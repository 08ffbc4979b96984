// boost_pooled.cpp - Boost.Context's pooled_fixedsize_stack: a pool without guards.
//
// The pool doubles the blocks that it asks for, and touches a page of every stack in them when it
// gets them: so it is asked for a hundred thousand, not for a million.
//
// SPDX-License-Identifier: Apache-2.0
#include <boost/context/pooled_fixedsize_stack.hpp>

#include "cases/stack/boost_source.hpp"

int main(int argc, char** argv) {
    const bench::settings how = bench::read_arguments(argc, argv);
    bench::about_boost();
    bench::boost_source<boost::context::pooled_fixedsize_stack> source(0);
    bench::measure_pair(how, "Boost pooled_fixedsize_stack", 10'000'000, source);
    bench::crowd(how, "Boost pooled", 100'000, source).measure(false);
}
