// weft_million.cpp - a million guarded stacks of 64 KiB from weft's depot, all live.
//
// SPDX-License-Identifier: Apache-2.0
#include <weft/stack/stack_depot.hpp>

#include "cases/stack/weft_source.hpp"

int main(int argc, char** argv) {
    const bench::settings how = bench::read_arguments(argc, argv);
    weft::stack_depot depot;
    bench::about(depot.counters().guard == weft::guard_kind::install
                     ? "guards by MADV_GUARD_INSTALL"
                     : "guards by mprotect: the kernel has no MADV_GUARD_INSTALL");
    bench::weft_source source(depot);
    bench::crowd(how, "weft", 1'000'000, source).measure(true);
}
