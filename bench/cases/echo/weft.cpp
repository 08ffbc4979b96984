// weft.cpp - the case `echo` on a weft loop. See workload.hpp.
//
// SPDX-License-Identifier: Apache-2.0
#include "cases/echo/weft_echo.hpp"

int main(int argc, char** argv) {
    bench::echo::run(bench::read_arguments(argc, argv), "weft, epoll");
}
