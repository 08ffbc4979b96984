// weft.cpp - a stack from weft and back: through a cache object, and from the depot behind it.
//
// SPDX-License-Identifier: Apache-2.0
#include <weft/stack/stack_cache.hpp>

#include "cases/stack/weft_source.hpp"

int main(int argc, char** argv) {
    const bench::settings how = bench::read_arguments(argc, argv);
    weft::stack_cache cache;
    bench::weft_source cached(cache);
    bench::measure_pair(how, "weft stack_cache", 10'000'000, cached);
    bench::weft_source shared(weft::shared_stacks());
    bench::measure_pair(how, "weft stack_depot", 5'000'000, shared);
}
