// signal_set.hpp - signals of the operating system, as something that a fiber waits for.
//
//     auto stop = io::signal_set::make({SIGINT, SIGTERM}).value();
//     io::signal_info what = stop.next().value();
//
// While a set lives, its signals do nothing else than arrive in it; two sets that have one in
// common both get it. Handlers write to a pipe of the set. Rejected: signalfd, which sees only
// signals that every thread of the program has blocked, and a library cannot see to that; and who
// blocks them hands the mask on to every program that is started. Here at least one thread must not
// have them blocked.
//
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <initializer_list>
#include <span>
#include <utility>

#include <weft/io/descriptor.hpp>

namespace weft::inline v0::io {

/// A signal that came.
struct signal_info {
    int number = 0;  // SIGINT, SIGTERM, ...
    int sender = 0;  // the process that sent it; 0: the kernel did, or next() cannot say
    int code = 0;    // SI_USER, CLD_EXITED, ... as sigaction(2) says
};

/// Thread-safe: next() for one fiber at a time, beside close().
class signal_set {
public:
    /// None; next() fails with std::errc::bad_file_descriptor.
    signal_set() noexcept = default;
    signal_set(signal_set&& other) noexcept
        : reader_(std::move(other.reader_)), place_(std::exchange(other.place_, -1)) {}
    signal_set& operator=(signal_set&& other) noexcept;
    /// Signals that are in no other set do what they did before.
    ~signal_set();

    /// Suspends: never. From: any fiber or thread. Fails: std::errc::invalid_argument for none, for
    /// numbers that are no signals, and for those that cannot be waited for (SIGKILL, SIGSTOP) or
    /// mean that the program is broken (SIGSEGV, SIGBUS, SIGILL, SIGFPE);
    /// std::errc::too_many_files_open when there are 32 sets; as pipe2(2) and sigaction(2) do.
    [[nodiscard]] static result<signal_set> make(std::span<const int> signals);
    [[nodiscard]] static result<signal_set> make(std::initializer_list<int> signals) {
        return make(std::span(signals.begin(), signals.size()));
    }

    /// The next one that came, in order. As the kernel does, a set may count several of a kind as
    /// one, not as none: of thousands that nobody has asked for, those for which there was no room
    /// come last, one of each kind, without sender and code.
    /// Suspends: maybe. Cancel: reported; none is lost. From: any fiber or thread. Fails:
    /// errc::closed.
    [[nodiscard]] result<signal_info> next();

    /// Whoever waits in next() gets errc::closed. Signals still do nothing else until the
    /// destructor. Suspends: never. From: any fiber or thread. Fails: never.
    void close() noexcept;

private:
    signal_set(descriptor reader, int place) noexcept : reader_(std::move(reader)), place_(place) {}
    void leave() noexcept;

    descriptor reader_;
    int place_ = -1;  // in the table of all sets
};

}  // namespace weft::inline v0::io
