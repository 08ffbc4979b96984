// overflow_handlers.cpp - overflows a coroutine's stack while somebody has a handler of SIGSEGV.
//
//     overflow_handlers CASE
//
// The cases are the functions below. A handler says "handler"; what is alive in the end says "went
// on" and ends with status 0.
//
// SPDX-License-Identifier: Apache-2.0
#include <setjmp.h>
#include <sys/mman.h>
#include <unistd.h>

#include <array>
#include <csignal>
#include <fstream>
#include <string>
#include <string_view>
#include <thread>

#include <weft/coroutine/coroutine.hpp>
#include <weft/stack/overflow.hpp>

#include "program_support.hpp"

using weft_test::require;

namespace {

void overflow() {
    weft::coroutine parser({.name = "parser"}, [] { weft_test::recurse(); });
    parser.resume();
}

// Has weft install its handler, if it may.
void run_a_coroutine() {
    weft::coroutine([] {}).resume();
}

void say(std::string_view text) {
    require(::write(STDERR_FILENO, text.data(), text.size()) == static_cast<ssize_t>(text.size()));
}

void set_handler(struct sigaction action, struct sigaction* before = nullptr) {
    action.sa_flags |= SA_ONSTACK;
    require(::sigaction(SIGSEGV, &action, before) == 0);
}

struct sigaction simple(void (*handler)(int)) {
    struct sigaction action {};
    action.sa_handler = handler;
    return action;
}

void say_and_exit(int) {
    say("handler\n");
    ::_exit(42);
}

// --- a handler that was there before ours

void siginfo() {
    struct sigaction action {};
    action.sa_flags = SA_SIGINFO;
    action.sa_sigaction = [](int signal, siginfo_t* info, void* machine) {
        say(signal == SIGSEGV && info->si_addr != nullptr && machine != nullptr ? "handler\n"
                                                                                : "wrong\n");
        ::_exit(42);
    };
    set_handler(action);
    overflow();
}

void plain() {
    set_handler(simple(say_and_exit));
    overflow();
}

void ignored() {
    set_handler(simple(SIG_IGN));
    overflow();
}

sigjmp_buf way_out;

void recovers() {
    set_handler(simple([](int) { ::siglongjmp(way_out, 1); }));
    for (int i = 0; i < 2; ++i) {
        weft::coroutine parser({.name = "parser"}, [] {
            if (sigsetjmp(way_out, 1) == 0) weft_test::recurse();
            weft::this_coroutine::yield();
        });
        parser.resume();
        parser.resume();
        require(parser.done());
    }
}

// --- one that came after ours

struct sigaction ours;

void pass_on(int signal, siginfo_t* info, void* machine) {
    say("handler\n");
    ours.sa_sigaction(signal, info, machine);
}

void put_one_in_front() {
    run_a_coroutine();
    struct sigaction action {};
    action.sa_flags = SA_SIGINFO;
    action.sa_sigaction = pass_on;
    set_handler(action, &ours);
}

void in_front() {
    put_one_in_front();
    overflow();
}

void in_front_and_disabled() {
    put_one_in_front();
    weft::disable_overflow_report();
    overflow();
}

void in_front_and_enabled_again() {
    put_one_in_front();
    weft::disable_overflow_report();
    weft::enable_overflow_report();
    overflow();
}

// --- turned on and off

void disabled_before() {
    weft::disable_overflow_report();
    overflow();
}

void disabled_after() {
    run_a_coroutine();
    weft::disable_overflow_report();
    overflow();
}

void enabled_again() {
    weft::disable_overflow_report();
    run_a_coroutine();
    weft::enable_overflow_report();
    weft::enable_overflow_report();
    overflow();
}

bool has_handler(void (*handler)(int)) {
    struct sigaction now {};
    require(::sigaction(SIGSEGV, nullptr, &now) == 0);
    return (now.sa_flags & SA_SIGINFO) == 0 && now.sa_handler == handler;
}

void disabled_gives_the_old_handler_back() {
    set_handler(simple(say_and_exit));
    run_a_coroutine();
    require(!has_handler(say_and_exit));
    weft::disable_overflow_report();
    require(has_handler(say_and_exit));
}

void disabled_stays_so() {
    set_handler(simple(say_and_exit));
    weft::disable_overflow_report();
    run_a_coroutine();
    std::thread(run_a_coroutine).join();
    require(has_handler(say_and_exit));
}

// --- other signals

void sent() {
    run_a_coroutine();
    require(::raise(SIGSEGV) == 0);
}

void sent_and_ignored() {
    set_handler(simple(SIG_IGN));
    run_a_coroutine();
    require(::raise(SIGSEGV) == 0);
    say("still here\n");
    overflow();
}

// --- the alternate stack

void keeps_a_signal_stack() {
    static std::array<char, 256 * 1024> memory;
    stack_t mine{};
    mine.ss_sp = memory.data();
    mine.ss_size = memory.size();
    require(::sigaltstack(&mine, nullptr) == 0);
    run_a_coroutine();
    stack_t now{};
    require(::sigaltstack(nullptr, &now) == 0 && now.ss_sp == memory.data());
    overflow();
}

std::size_t mapped_bytes() {
    std::ifstream statm("/proc/self/statm");
    std::size_t pages = 0;
    statm >> pages;
    return pages * 4096;
}

void threads_leave_nothing() {
    const auto run_threads = [](int count) {
        for (int i = 0; i < count; ++i) std::thread(run_a_coroutine).join();
    };
    run_threads(10);
    const std::size_t before = mapped_bytes();
    run_threads(100);
    require(mapped_bytes() < before + 50 * 64 * 1024);
}

}  // namespace

int main(int argc, char** argv) {
    weft_test::dump_no_core();
    const weft_test::program_case cases[] = {
        {"siginfo", siginfo},
        {"plain", plain},
        {"ignored", ignored},
        {"recovers", recovers},
        {"in_front", in_front},
        {"in_front_and_disabled", in_front_and_disabled},
        {"in_front_and_enabled_again", in_front_and_enabled_again},
        {"disabled_before", disabled_before},
        {"disabled_after", disabled_after},
        {"enabled_again", enabled_again},
        {"disabled_gives_the_old_handler_back", disabled_gives_the_old_handler_back},
        {"disabled_stays_so", disabled_stays_so},
        {"sent", sent},
        {"sent_and_ignored", sent_and_ignored},
        {"keeps_a_signal_stack", keeps_a_signal_stack},
        {"threads_leave_nothing", threads_leave_nothing},
    };
    return weft_test::run_case(argc, argv, cases, "went on");
}
