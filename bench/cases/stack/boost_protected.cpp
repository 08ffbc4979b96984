// boost_protected.cpp - Boost.Context's protected_fixedsize_stack: a mapping and a guard page each.
//
// It does not look at what mprotect says (with NDEBUG), so it goes on after the system's limit of
// mappings is reached, without guards. A hundred thousand stacks show that.
//
// SPDX-License-Identifier: Apache-2.0
#include <boost/context/protected_fixedsize_stack.hpp>

#include "cases/stack/boost_source.hpp"

int main(int argc, char** argv) {
    const bench::settings how = bench::read_arguments(argc, argv);
    bench::about_boost();
    bench::boost_source<boost::context::protected_fixedsize_stack> source(4096);
    bench::measure_pair(how, "Boost protected_fixedsize_stack", 50'000, source);
    bench::crowd(how, "Boost protected", 100'000, source).measure(true);
}
