// apart.hpp - a measurement in a process of its own.
//
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <string>

#include "support/row.hpp"

namespace bench {

namespace detail {

// All that comes, until the last writer is gone.
inline std::string read_all(int number) {
    std::string text;
    char some[256];
    for (ssize_t got = ::read(number, some, sizeof some); got > 0;
         got = ::read(number, some, sizeof some))
        text.append(some, static_cast<std::size_t>(got));
    return text;
}

}  // namespace detail

/// Calls f in a child, so that each measurement begins with the same memory. What it prints is
/// printed. Returns nothing, or in words why it did not get to its end: what it threw, or what
/// ended it. A wrong answer ends this process, too.
template <class F>
std::string apart(F f) {
    int ends[2];
    require(::pipe2(ends, O_CLOEXEC) == 0, "pipe2");
    std::fflush(stdout);
    const pid_t child = ::fork();
    require(child >= 0, "fork");
    if (child == 0) {
        ::close(ends[0]);
        try {
            f();
        } catch (const std::exception& error) {
            std::fprintf(stderr, "%s\n", error.what());
            if (::write(ends[1], error.what(), std::strlen(error.what())) < 0) std::_Exit(4);
            std::_Exit(3);
        }
        std::fflush(stdout);
        std::_Exit(0);
    }
    ::close(ends[1]);
    const std::string thrown = detail::read_all(ends[0]);
    ::close(ends[0]);
    int status = 0;
    require(::waitpid(child, &status, 0) == child, "waitpid");
    if (WIFSIGNALED(status)) return std::string("ended by: ") + ::strsignal(WTERMSIG(status));
    if (WEXITSTATUS(status) == 1) std::exit(1);
    if (WEXITSTATUS(status) == 0) return "";
    return thrown.empty() ? "ended with status " + std::to_string(WEXITSTATUS(status)) : thrown;
}

}  // namespace bench
