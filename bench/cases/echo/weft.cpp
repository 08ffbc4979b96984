// weft.cpp - the case `echo` on a weft loop. See workload.hpp.
//
// SPDX-License-Identifier: Apache-2.0
#include "cases/echo/weft_echo.hpp"

int main(int argc, char** argv) {
    const bench::settings how = bench::read_arguments(argc, argv);
    bench::echo::run(how, "weft, epoll", weft::io::reactor_kind::epoll);
    bench::echo::run_idle(how, "weft, own stacks", weft::stack_kind::own);
    bench::echo::run_idle(how, "weft, swapped", weft::stack_kind::swapped);
}
