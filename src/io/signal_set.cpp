// signal_set.cpp - the table of all sets, and the handler that looks through it.
//
// The table is fixed, for the handler may interrupt anything. A place has a mask of signals and the
// writing end of a pipe.
//
//   handler                              whoever leaves (with the lock)
//   inside += 1              (seq_cst)   mask = 0                  (seq_cst)
//   mask has the signal?     (seq_cst)   wait until inside == 0    (seq_cst)
//     write to the pipe                  close the pipe
//   inside -= 1              (seq_cst)
//
// Either the handler sees that the mask is empty, or whoever leaves sees it inside and waits; a
// handler writes without blocking, and takes no lock, so that is short. The mask is set after the
// pipe (release), and read before it. Who is closed has nobody who reads: its mask is emptied in
// the same way before that, for a write then would raise SIGPIPE.
//
// A pipe that is full has plenty of signals, but perhaps none of this kind:
//
//   handler                              whoever reads
//   write: no room                       read: nothing, or a bare wake
//   missed |= the signal     (seq_cst)   missed has one? that is the next     (seq_cst)
//   write a bare wake                    else: wait, or read on
//
// If there is room for the wake, it is read after this; if not, what fills the pipe is, and then
// that there is nothing.
//
// A child that was forked off has the same pipes, which are its parent's: there the handler writes
// only to those of sets that the child has made itself.
//
// SPDX-License-Identifier: Apache-2.0
#include <weft/io/signal_set.hpp>

#include <fcntl.h>
#include <sched.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <bit>
#include <cerrno>
#include <csignal>
#include <cstdint>
#include <mutex>

#include <weft/base/test_point.hpp>

#include "io/system_call.hpp"

namespace weft::inline v0::io {

namespace {

constexpr int signal_count = 64;
using signal_mask = std::uint64_t;

struct place {
    std::atomic<signal_mask> mask = 0;
    std::atomic<signal_mask> missed = 0;
    std::atomic<int> writer = -1;
    std::atomic<pid_t> process = 0;
    // Guarded by the lock.
    bool taken = false;
    signal_mask signals = 0;  // that are handled for it; the mask, unless it is closed
};

struct signal_table {
    std::array<place, 32> places;
    std::atomic<int> inside = 0;
    // Guarded by lock.
    std::mutex lock;
    std::array<unsigned, signal_count + 1> users{};
    std::array<struct sigaction, signal_count + 1> before{};
};
constinit signal_table all;

constexpr signal_mask bit_of(int signal) noexcept { return signal_mask{1} << (signal - 1); }

bool put(const place& one, const signal_info& info) noexcept {
    return ::write(one.writer.load(std::memory_order_relaxed), &info, sizeof info) > 0;
}

void tell_set(place& one, const signal_info& info) noexcept {
    if (put(one, info)) return;
    one.missed.fetch_or(bit_of(info.number), std::memory_order_seq_cst);
    static_cast<void>(put(one, {}));
}

void tell_sets(int number, siginfo_t* about, void*) noexcept {
    const int error = errno;
    all.inside.fetch_add(1, std::memory_order_seq_cst);
    const bool sent = about->si_code <= 0 || about->si_signo == SIGCHLD;  // by a process
    const signal_info info{number, sent ? about->si_pid : 0, about->si_code};
    const pid_t here = ::getpid();
    for (place& one : all.places)
        if ((one.mask.load(std::memory_order_seq_cst) & bit_of(number)) != 0 &&
            one.process.load(std::memory_order_relaxed) == here)
            tell_set(one, info);
    all.inside.fetch_sub(1, std::memory_order_seq_cst);
    errno = error;
}

bool may_be_waited_for(int number) noexcept {
    switch (number) {
        case SIGKILL:
        case SIGSTOP:
        case SIGSEGV:
        case SIGBUS:
        case SIGILL:
        case SIGFPE:
            return false;
        default:
            return number >= 1 && number <= signal_count && !(number >= 32 && number < SIGRTMIN);
    }
}

std::error_code last_error() noexcept { return {errno, std::system_category()}; }

// With the lock held.
std::error_code handle(int number) noexcept {
    if (all.users[static_cast<unsigned>(number)]++ != 0) return {};
    struct sigaction action {};
    action.sa_sigaction = &tell_sets;
    action.sa_flags = SA_SIGINFO | SA_RESTART | SA_ONSTACK;
    ::sigfillset(&action.sa_mask);
    if (::sigaction(number, &action, &all.before[static_cast<unsigned>(number)]) == 0) return {};
    const std::error_code error = last_error();
    --all.users[static_cast<unsigned>(number)];
    return error;
}
void handle_no_more(int number) noexcept {
    if (--all.users[static_cast<unsigned>(number)] == 0)
        ::sigaction(number, &all.before[static_cast<unsigned>(number)], nullptr);
}

// With the lock held, as the next two: from now on no handler writes there.
void tell_no_more(place& one) noexcept {
    one.mask.store(0, std::memory_order_seq_cst);
    while (all.inside.load(std::memory_order_seq_cst) != 0) ::sched_yield();
}

void free_place(place& one) noexcept {
    for (int number = 1; number <= signal_count; ++number)
        if ((one.signals & bit_of(number)) != 0) handle_no_more(number);
    tell_no_more(one);
    ::close(one.writer.exchange(-1, std::memory_order_relaxed));
    one.signals = 0;
    one.taken = false;
}

// Its number, or what is wrong.
result<int> take_place(signal_mask mask, int writer) noexcept {
    for (std::size_t i = 0; i < all.places.size(); ++i) {
        place& one = all.places[i];
        if (one.taken) continue;
        one.taken = true;
        one.writer.store(writer, std::memory_order_relaxed);
        one.process.store(::getpid(), std::memory_order_relaxed);
        one.missed.store(0, std::memory_order_relaxed);
        for (int number = 1; number <= signal_count; ++number) {
            if ((mask & bit_of(number)) == 0) continue;
            // First, for the handler may be called as soon as there is one.
            one.mask.store(one.signals | bit_of(number), std::memory_order_release);
            if (const std::error_code error = handle(number)) {
                free_place(one);
                return std::unexpected(error);
            }
            WEFT_TEST_POINT("signal_set: handled");
            one.signals |= bit_of(number);
        }
        return static_cast<int>(i);
    }
    ::close(writer);
    return std::unexpected(std::make_error_code(std::errc::too_many_files_open));
}

// One of those that there was no room for; 0: there is none.
int take_missed(place& one) noexcept {
    const signal_mask some = one.missed.load(std::memory_order_seq_cst);
    if (some == 0) return 0;
    const int number = std::countr_zero(some) + 1;
    one.missed.fetch_and(~bit_of(number), std::memory_order_seq_cst);
    return number;
}

// As read(2): the next signal of a set. The pipe has whole ones only.
long read_signal(place& one, int reader, signal_info& info) noexcept {
    for (;;) {
        const long size = detail::system_call([&] { return ::read(reader, &info, sizeof info); });
        if (size > 0 && info.number != 0) return size;
        if (size <= 0 && size != -EAGAIN) return size;
        info = {.number = take_missed(one)};
        if (info.number != 0) return sizeof info;
        if (size == -EAGAIN) return size;
    }
}

}  // namespace

result<signal_set> signal_set::make(std::span<const int> signals) {
    signal_mask mask = 0;
    for (const int number : signals) {
        if (!may_be_waited_for(number))
            return std::unexpected(std::make_error_code(std::errc::invalid_argument));
        mask |= bit_of(number);
    }
    if (mask == 0) return std::unexpected(std::make_error_code(std::errc::invalid_argument));
    int ends[2];
    if (::pipe2(ends, O_CLOEXEC | O_NONBLOCK) != 0) return std::unexpected(last_error());
    auto reader = descriptor::adopt(ends[0]);
    if (!reader) {
        ::close(ends[1]);
        return std::unexpected(reader.error());
    }
    const std::lock_guard lock(all.lock);
    const result<int> taken = take_place(mask, ends[1]);
    if (!taken) return std::unexpected(taken.error());
    return signal_set(std::move(*reader), *taken);
}

signal_set& signal_set::operator=(signal_set&& other) noexcept {
    if (this == &other) return *this;
    leave();
    reader_ = std::move(other.reader_);
    place_ = std::exchange(other.place_, -1);
    return *this;
}

signal_set::~signal_set() { leave(); }

void signal_set::leave() noexcept {
    if (place_ < 0) return;
    const std::lock_guard lock(all.lock);
    free_place(all.places[static_cast<unsigned>(std::exchange(place_, -1))]);
}

void signal_set::close() noexcept {
    if (place_ >= 0) {
        const std::lock_guard lock(all.lock);
        tell_no_more(all.places[static_cast<unsigned>(place_)]);
    }
    reader_.close();
}

result<signal_info> signal_set::next() {
    signal_info info;
    const result<std::size_t> got = reader_.perform(direction::read, [&](int reader) noexcept {
        return read_signal(all.places[static_cast<unsigned>(place_)], reader, info);
    });
    if (!got) return std::unexpected(got.error());
    if (*got != sizeof info) return std::unexpected(make_error_code(errc::closed));
    return info;
}

}  // namespace weft::inline v0::io
