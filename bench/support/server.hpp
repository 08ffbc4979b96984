// server.hpp - a server under load: it has one CPU and a process of its own, whose CPU time and
// memory are read from outside; whoever asks it runs on the other CPUs.
//
//     bench::server raw([](auto tell) { int port = listen_somewhere(); tell(port); serve(); });
//     bench::neighbour client({beside("client"), std::to_string(raw.port()), "50"});
//     std::string said = client.line();
//     double spent = raw.cpu_microseconds();
//
// A server serves until it is killed, by the destructor. Nothing here knows weft.
//
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <sched.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "support/memory.hpp"
#include "support/row.hpp"

namespace bench {

/// The path of a program that lies beside this one.
inline std::string beside(const std::string& name) {
    return std::filesystem::read_symlink("/proc/self/exe").parent_path() / name;
}

namespace detail {

[[noreturn]] inline void become(std::vector<std::string> command) {
    std::vector<char*> words;
    for (std::string& word : command) words.push_back(word.data());
    words.push_back(nullptr);
    ::execvp(words[0], words.data());
    std::_Exit(127);
}

inline bool is_open(std::uint16_t port) {
    const int number = ::socket(AF_INET, SOCK_STREAM, 0);
    sockaddr_in where{};
    where.sin_family = AF_INET;
    where.sin_port = htons(port);
    where.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    const bool is = ::connect(number, reinterpret_cast<sockaddr*>(&where), sizeof where) == 0;
    ::close(number);
    return is;
}

// In a process that was started a moment ago.
inline void leave_cpu_of_server() {
    cpu_set_t server;
    cpu_set_t others;
    CPU_ZERO(&others);
    if (::sched_getaffinity(0, sizeof server, &server) != 0) return;
    for (std::size_t i = 0; i < static_cast<std::size_t>(::sysconf(_SC_NPROCESSORS_CONF)); ++i)
        if (!CPU_ISSET(i, &server)) CPU_SET(i, &others);
    if (CPU_COUNT(&others) != 0) ::sched_setaffinity(0, sizeof others, &others);
}

/// A process that ends with this one, and the pipe that it writes to.
class child {
public:
    template <class F>
    explicit child(F run) {
        int out[2];
        int in[2];
        require(::pipe2(out, O_CLOEXEC) == 0 && ::pipe2(in, O_CLOEXEC) == 0, "pipe2");
        std::fflush(stdout);
        process_ = ::fork();
        require(process_ >= 0, "fork");
        if (process_ == 0) {
            ::prctl(PR_SET_PDEATHSIG, SIGKILL);
            ::close(out[0]);
            ::close(in[1]);
            run(out[1], in[0]);
            std::_Exit(0);
        }
        ::close(out[1]);
        ::close(in[0]);
        said_ = ::fdopen(out[0], "r");
        input_ = in[1];
    }
    child(const child&) = delete;
    child& operator=(const child&) = delete;
    ~child() {
        if (process_ > 0) {
            ::kill(process_, SIGKILL);
            static_cast<void>(wait());
        }
        std::fclose(said_);
        end_input();
    }

    /// What it says next, or "" if it says no more.
    std::string line() {
        char text[256];
        return std::fgets(text, sizeof text, said_) != nullptr ? text : "";
    }
    void end_input() {
        if (input_ >= 0) ::close(std::exchange(input_, -1));
    }
    [[nodiscard]] int wait() {
        int status = -1;
        require(::waitpid(std::exchange(process_, -1), &status, 0) > 0, "waitpid");
        return status;
    }
    [[nodiscard]] pid_t id() const { return process_; }

private:
    pid_t process_ = -1;
    std::FILE* said_ = nullptr;
    int input_ = -1;
};

}  // namespace detail

class server {
public:
    /// run(tell): listens, calls tell(port), serves and does not return.
    template <class Run>
        requires requires(Run run) {
            run([](std::uint16_t) {});
        }
    explicit server(Run run)
        : process_([&run](int out, int) {
              run([out](std::uint16_t port) {
                  const std::string said = std::to_string(port) + "\n";
                  const auto size = static_cast<ssize_t>(said.size());
                  require(::write(out, said.data(), said.size()) == size, "write");
              });
          }) {
        port_ = read_port();
    }

    /// A program that says its port in its first line, and then what it is.
    explicit server(const std::vector<std::string>& command)
        : process_([&command](int out, int) {
              ::dup2(out, STDOUT_FILENO);
              detail::become(command);
          }) {
        port_ = read_port();
    }

    /// A program that was told its port: until it takes connections there.
    server(const std::vector<std::string>& command, std::uint16_t port)
        : process_([&command](int, int) { detail::become(command); }), port_(port) {
        for (int i = 0; i < 5000 && !detail::is_open(port); ++i)
            std::this_thread::sleep_for(std::chrono::milliseconds(1));
        require(detail::is_open(port), "the server takes no connections");
    }

    [[nodiscard]] std::uint16_t port() const { return port_; }
    /// What a program says after its port: which version it is.
    [[nodiscard]] const std::string& about() const { return about_; }

    /// Of all its threads, user and system, so far.
    [[nodiscard]] double cpu_microseconds() const {
        clockid_t clock = 0;
        timespec used{};
        require(::clock_getcpuclockid(process_.id(), &clock) == 0, "the server's clock");
        require(::clock_gettime(clock, &used) == 0, "the server's CPU time");
        return static_cast<double>(used.tv_sec) * 1e6 + static_cast<double>(used.tv_nsec) / 1e3;
    }
    [[nodiscard]] double resident_bytes() const {
        const std::string file = "/proc/" + std::to_string(process_.id()) + "/status";
        return static_cast<double>(kibibytes(file.c_str(), "VmRSS:")) * 1024;
    }

private:
    std::uint16_t read_port() {
        const std::string said = process_.line();
        const int port = std::atoi(said.c_str());
        require(port > 0, "the server's port");
        if (const std::size_t space = said.find(' '); space != said.npos)
            about_ = said.substr(space + 1, said.find('\n') - space - 1);
        return static_cast<std::uint16_t>(port);
    }

    detail::child process_;
    std::uint16_t port_ = 0;
    std::string about_;
};

/// A program on the CPUs that this one does not use.
class neighbour {
public:
    explicit neighbour(const std::vector<std::string>& command)
        : process_([&command](int out, int in) {
              detail::leave_cpu_of_server();
              ::dup2(out, STDOUT_FILENO);
              ::dup2(in, STDIN_FILENO);
              detail::become(command);
          }) {}

    std::string line() { return process_.line(); }
    /// It reads the end of its input.
    void end_input() { process_.end_input(); }
    /// Until it has ended, which it must do well.
    void finish() {
        end_input();
        const int status = process_.wait();
        require(WIFEXITED(status) && WEXITSTATUS(status) == 0, "what the client got back");
    }

private:
    detail::child process_;
};

}  // namespace bench
