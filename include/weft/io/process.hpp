// process.hpp - other programs: started, talked to, waited for, ended.
//
//     auto sort = io::process::spawn({"sort", "-n"}, {.input = io::standard::piped,
//                                                     .output = io::standard::piped}).value();
//     sort.input().write_all("3\n1\n2\n").value();
//     sort.input().close();
//     ... read sort.output() ...
//     bool good = sort.wait().value().exited_with(0);
//
// A process is known by a descriptor of its own (pidfd), so a number that the system gave to
// another meanwhile is never waited for or killed.
//
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <weft/io/pipe.hpp>

namespace weft::inline v0::io {

/// What one of the three standard streams of a started program is.
enum class standard : unsigned char {
    inherited,  // ours
    none,       // /dev/null
    piped,      // a pipe to us
};

/// How a program is started.
struct process_options {
    standard input = standard::inherited;   // its standard input
    standard output = standard::inherited;  // its standard output
    standard error = standard::inherited;   // its standard output for errors
    /// The output for errors goes where the other one goes.
    bool error_to_output = false;
    /// Added to our environment, as NAME=VALUE; one of ours with that name is left out, and of two
    /// that are given the last counts.
    std::vector<std::string> environment = {};
    /// Nothing of our environment is handed on.
    bool clean_environment = false;
    /// Where it starts; empty: where we are.
    std::string folder = {};
};

/// How a process ended.
class exit_status {
public:
    exit_status(int code, int signal) noexcept : code_(code), signal_(signal) {}
    /// Whether it called exit() with that, or returned it from main().
    [[nodiscard]] bool exited_with(int code) const noexcept {
        return signal_ == 0 && code_ == code;
    }
    /// Of exit(); -1: a signal ended it.
    [[nodiscard]] int code() const noexcept { return signal_ == 0 ? code_ : -1; }
    /// That ended it; 0: none did.
    [[nodiscard]] int signal() const noexcept { return signal_; }
    [[nodiscard]] bool operator==(const exit_status&) const noexcept = default;

private:
    int code_;
    int signal_;
};

/// Thread-safe: wait() for one fiber at a time, beside send() and its streams.
class process {
public:
    /// None.
    process() noexcept = default;
    process(process&& other) noexcept;
    process& operator=(process&& other) noexcept;
    /// If it has not been waited for, it is killed, and a thread of a side pool waits for it.
    ~process();

    /// The first word is the program, looked for in PATH.
    /// Suspends: maybe. Cancel: reported; nothing was started. From: any fiber or thread. Fails:
    /// std::errc::invalid_argument for no words, a zero in one, or a variable that is no
    /// NAME=VALUE; as pipe2(2), chdir(2) and exec do (std::errc::no_such_file_or_directory,
    /// permission_denied).
    [[nodiscard]] static result<process> spawn(std::vector<std::string> command,
                                               process_options options = {});

    /// Until it has ended; then it can be asked again.
    /// Suspends: maybe. Cancel: reported; it runs on. From: any fiber or thread. Fails:
    /// std::errc::no_child_process if somebody else has waited for it (or SIGCHLD is ignored).
    [[nodiscard]] result<exit_status> wait();

    /// Suspends: never. From: any fiber or thread. Fails: std::errc::no_such_process if it has
    /// ended and was waited for; std::errc::invalid_argument if that is no signal.
    [[nodiscard]] result<void> send(int signal);
    /// SIGTERM, which asks it to end. The contract: as send().
    [[nodiscard]] result<void> terminate();
    /// SIGKILL, which it cannot refuse. The contract: as send().
    [[nodiscard]] result<void> kill();
    /// Asks it to end, gives it so long, then kills it.
    /// Suspends: maybe. Cancel: reported; then it may still run. From: a fiber. Fails: as wait().
    [[nodiscard]] result<exit_status> stop(std::chrono::nanoseconds grace);

    /// Our end of the pipe to its standard input; none, if that is no pipe.
    [[nodiscard]] pipe_writer& input() noexcept { return input_; }
    /// The same of its output.
    [[nodiscard]] pipe_reader& output() noexcept { return output_; }
    /// The same of its output for errors.
    [[nodiscard]] pipe_reader& error_output() noexcept { return error_; }

    /// The system's number of it; 0: none.
    [[nodiscard]] int id() const noexcept { return id_; }
    [[nodiscard]] explicit operator bool() const noexcept { return id_ != 0; }

private:
    void abandon() noexcept;

    descriptor handle_;
    int id_ = 0;
    std::optional<exit_status> ended_;
    pipe_writer input_;
    pipe_reader output_;
    pipe_reader error_;
};

}  // namespace weft::inline v0::io
