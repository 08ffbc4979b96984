// watchdog.cpp - see watchdog.hpp; and the signal by which a thread tells where it is.
//
// The signal is SIGURG, which does nothing unless somebody asked for it; one that was not sent from
// here, as its value says, goes to whoever handled it before.
//
// SPDX-License-Identifier: Apache-2.0
#include "exec/watchdog.hpp"

#include <dlfcn.h>
#include <execinfo.h>
#include <pthread.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <mutex>

#include <weft/base/thread_block.hpp>

#include "base/futex.hpp"
#include "exec/pool_worker.hpp"

namespace weft::inline v0::detail {

namespace {

// One question at a time, to one thread. The word goes 4n + asked -> 4n + answering -> 4n +
// answered, or 4n + asked -> 4n + given_up; a signal that comes late finds another n.
struct question {
    enum : std::uint32_t { asked = 0, answering = 1, answered = 2, given_up = 3 };

    std::mutex mutex;  // whoever asks
    std::atomic<std::uint32_t> word = given_up;
    std::array<void*, 64> stack{};
    int depth = 0;
    std::array<char, 64> name{};
};

// Never destroyed: a signal may come late.
question& the_question() {
    static question* const one = new question;
    return *one;
}

// What is sent with the signal: who it comes from, and the number of the question.
constexpr std::uint64_t from_here = std::uint64_t{0x77656674} << 32;
static_assert(sizeof(void*) == sizeof from_here);

sigval value_of(std::uint32_t number) noexcept {
    sigval value{};
    value.sival_ptr = reinterpret_cast<void*>(from_here | number);
    return value;
}
std::uint64_t word_of(const siginfo_t& info) noexcept {
    return reinterpret_cast<std::uintptr_t>(info.si_value.sival_ptr);
}
bool is_from_here(const siginfo_t& info) noexcept {
    return info.si_code == SI_QUEUE && info.si_pid == ::getpid() &&
           word_of(info) >> 32 == from_here >> 32;
}

struct sigaction previous;

void answer(question& q, std::uint32_t number) noexcept {
    std::uint32_t expected = number + question::asked;
    if (!q.word.compare_exchange_strong(expected, number + question::answering,
                                        std::memory_order_acquire))
        return;
    const activity* const running = innermost_activity(this_thread_block());
    const char* from = running != nullptr ? running->name : "";
    std::size_t i = 0;
    for (; i + 1 < q.name.size() && from[i] != '\0'; ++i) q.name[i] = from[i];
    q.name[i] = '\0';
    q.depth = ::backtrace(q.stack.data(), static_cast<int>(q.stack.size()));
    q.word.store(number + question::answered, std::memory_order_release);
    futex_wake_one(&q.word);
}

void on_signal(int signal, siginfo_t* info, void* context) {
    const int saved_errno = errno;
    if (is_from_here(*info)) {
        if (const pthread_t other = this_thread_block().handed_to; other != 0) {
            // A fiber on a thread of its own, which is there as long as this one waits for it.
            ::pthread_sigqueue(other, signal, info->si_value);
            errno = saved_errno;
            return;
        }
        answer(the_question(), static_cast<std::uint32_t>(word_of(*info)));
    } else if ((previous.sa_flags & SA_SIGINFO) != 0) {
        previous.sa_sigaction(signal, info, context);
    } else if (previous.sa_handler != SIG_DFL && previous.sa_handler != SIG_IGN) {
        previous.sa_handler(signal);
    }
    errno = saved_errno;
}

void install_once() {
    static const bool once = [] {
        the_question();
        void* warm[1];
        ::backtrace(warm, 1);  // loads the unwinder, which a handler must not
        struct sigaction action {};
        action.sa_sigaction = on_signal;
        action.sa_flags = SA_SIGINFO | SA_ONSTACK | SA_RESTART;
        ::sigemptyset(&action.sa_mask);
        return ::sigaction(SIGURG, nullptr, &previous) == 0 &&
               ::sigaction(SIGURG, &action, nullptr) == 0;
    }();
    static_cast<void>(once);
}

// Where the thread is now and what runs on it. Empty if it does not answer: it may have blocked
// the signal.
void ask(pthread_t thread, stall_report& into) {
    question& q = the_question();
    const std::lock_guard lock(q.mutex);
    const std::uint32_t last = q.word.load(std::memory_order_relaxed) & ~std::uint32_t{3};
    const std::uint32_t number = last + 4 != 0 ? last + 4 : 4;
    q.word.store(number + question::asked, std::memory_order_release);
    if (::pthread_sigqueue(thread, SIGURG, value_of(number)) != 0) return;
    const time_point until = steady_clock_source().now() + std::chrono::milliseconds(100);
    for (;;) {
        std::uint32_t word = q.word.load(std::memory_order_acquire);
        if (word == number + question::answered) break;
        const auto left = until - steady_clock_source().now();
        if (left.count() <= 0 && word == number + question::asked &&
            q.word.compare_exchange_strong(word, number + question::given_up))
            return;
        futex_wait_for(q.word, word,
                       std::max<std::chrono::nanoseconds>(left, std::chrono::milliseconds(1)));
    }
    into.name = q.name.data();
    // The first two are the handler and the return from it.
    const int skipped = std::min(q.depth, 3);
    into.stack.assign(q.stack.begin() + skipped, q.stack.begin() + q.depth);
}

}  // namespace

watchdog::watchdog(pool_core& core)
    : core_(core), seen_(core.workers.size(), {.since = steady_clock_source().now()}) {
    install_once();
    thread_ = std::thread([this] { watch(); });
    ::pthread_setname_np(thread_.native_handle(), "weft-watchdog");
}

watchdog::~watchdog() {
    stop_.store(1, std::memory_order_release);
    futex_wake_one(&stop_);
    thread_.join();
}

void watchdog::watch() {
    const auto span = std::max<std::chrono::nanoseconds>(core_.options.watchdog / 4,
                                                         std::chrono::microseconds(100));
    while (stop_.load(std::memory_order_acquire) == 0) {
        for (const auto& one : core_.workers) look_at(*one, seen_[one->index]);
        futex_wait_for(stop_, 0, span);
    }
}

void watchdog::look_at(pool_worker& one, seen& before) {
    const time_point now = steady_clock_source().now();
    const std::uint64_t dispatches = one.dispatches();
    const bool runs = one.at.load(std::memory_order_relaxed) == activity_of_worker::running;
    if (!runs || dispatches != before.dispatches) {
        before = {.dispatches = dispatches, .since = now, .reported = false};
    } else if (!before.reported && now - before.since >= core_.options.watchdog) {
        before.reported = true;
        report(one, now - before.since);
    }
}

void watchdog::report(pool_worker& one, std::chrono::nanoseconds held) {
    stall_report found{.worker = one.index, .name = {}, .held = held, .stack = {}};
    ask(one.thread.native_handle(), found);
    if (core_.options.stalled)
        core_.options.stalled(found);
    else
        std::fputs(found.text().c_str(), stderr);
}

}  // namespace weft::inline v0::detail

namespace weft::inline v0 {

std::string stall_report::text() const {
    using namespace std::chrono;
    std::string all = "weft: worker " + std::to_string(worker) + " has been held for " +
                      std::to_string(duration_cast<milliseconds>(held).count()) + " ms by ";
    all += name.empty() ? "something without a name" : "fiber " + name;
    all += stack.empty() ? "; its thread did not say where\n" : ", at:\n";
    for (void* const address : stack) {
        Dl_info found{};
        char line[64];
        std::snprintf(line, sizeof line, "    %p", address);
        all += line;
        if (::dladdr(address, &found) != 0 && found.dli_sname != nullptr)
            all.append(" ").append(found.dli_sname);
        else if (found.dli_fname != nullptr)
            all.append(" ").append(found.dli_fname);
        all += "\n";
    }
    return all;
}

}  // namespace weft::inline v0
