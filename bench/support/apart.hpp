// apart.hpp - a measurement in a process of its own.
//
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <exception>

#include "support/row.hpp"

namespace bench {

/// Calls f in a child, so that each measurement begins with the same memory. What it prints is
/// printed. Returns 0, or the status with which it ended; a wrong answer ends this process, too.
template <class F>
int apart(F f) {
    std::fflush(stdout);
    const pid_t child = ::fork();
    require(child >= 0, "fork");
    if (child == 0) {
        try {
            f();
        } catch (const std::exception& error) {
            std::fprintf(stderr, "%s\n", error.what());
            std::_Exit(3);
        }
        std::fflush(stdout);
        std::_Exit(0);
    }
    int status = 0;
    require(::waitpid(child, &status, 0) == child, "waitpid");
    if (WIFEXITED(status) && WEXITSTATUS(status) == 1) std::exit(1);
    return status;
}

}  // namespace bench
