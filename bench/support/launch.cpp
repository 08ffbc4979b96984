// launch.cpp - starts a benchmark program on one CPU or on all, and says what it used.
//
//   launch CPU PROGRAM ARGUMENT...       CPU is a number, or "all"
//
// After the program's own output comes one JSON line: status, seconds, CPU time, peak RSS. It is a
// program of its own because the kernel counts, as the peak of a new program, also what its starter
// held at that time; this one holds next to nothing, bench/run some ten MiB.
//
// SPDX-License-Identifier: Apache-2.0
#include <sched.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>

namespace {

[[noreturn]] void give_up(const char* what) {
    std::fprintf(stderr, "launch: %s: %s\n", what, std::strerror(errno));
    std::_Exit(127);
}

double now() {
    timespec t;
    ::clock_gettime(CLOCK_MONOTONIC, &t);
    return static_cast<double>(t.tv_sec) + static_cast<double>(t.tv_nsec) * 1e-9;
}

double seconds(const timeval& t) {
    return static_cast<double>(t.tv_sec) + static_cast<double>(t.tv_usec) * 1e-6;
}

void stay_on(const char* cpu) {
    if (std::strcmp(cpu, "all") == 0) return;
    cpu_set_t only;
    CPU_ZERO(&only);
    CPU_SET(static_cast<unsigned>(std::atoi(cpu)), &only);
    if (::sched_setaffinity(0, sizeof only, &only) != 0) give_up("sched_setaffinity");
}

}  // namespace

int main(int argc, char** argv) {
    if (argc < 3) {
        std::fputs("usage: launch CPU PROGRAM ARGUMENT...\n", stderr);
        return 2;
    }
    const double begun = now();
    const pid_t child = ::fork();
    if (child < 0) give_up("fork");
    if (child == 0) {
        ::prctl(PR_SET_PDEATHSIG, SIGKILL);  // bench/run ends us when it takes too long
        stay_on(argv[1]);
        ::execvp(argv[2], argv + 2);
        give_up(argv[2]);
    }
    int status = 0;
    rusage used;
    if (::wait4(child, &status, 0, &used) != child) give_up("wait4");
    const int code = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
    std::printf(
        "{\"status\": %d, \"seconds\": %.6f, \"user_seconds\": %.6f, \"system_seconds\": %.6f, "
        "\"peak_rss_kib\": %ld}\n",
        code, now() - begun, seconds(used.ru_utime), seconds(used.ru_stime), used.ru_maxrss);
    return 0;
}
