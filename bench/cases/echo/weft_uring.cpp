// weft_uring.cpp - the case `echo` on a weft loop with io_uring. See workload.hpp.
//
// SPDX-License-Identifier: Apache-2.0
#include "cases/echo/weft_echo.hpp"

int main(int argc, char** argv) {
    const bench::settings how = bench::read_arguments(argc, argv);
    if (weft::io::is_available(weft::io::reactor_kind::io_uring))
        return bench::echo::run(how, "weft, io_uring", weft::io::reactor_kind::io_uring), 0;
    for (const unsigned count : bench::echo::sizes)
        bench::report_none({"weft, io_uring", "us", bench::echo::connections(count)},
                           "no io_uring here");
}
