// weft_no_prefetch.cpp - the same, with queues that fetch nothing ahead (bench/CMakeLists.txt).
//
// SPDX-License-Identifier: Apache-2.0
#include "cases/ring/weft_ring.hpp"

namespace {

using namespace bench::ring;

constexpr row rows[] = {
    {.key = "fifo",
     .title = "weft, strictly FIFO, no prefetch",
     .make = make<false, weft::stack_kind::own>,
     .most_fibers = 2'000'000,
     .why = "not tried: 16 GiB and more",
     .bytes = 4'700},
};

}  // namespace

int main(int argc, char** argv) { return bench::ring::main(argc, argv, rows); }
