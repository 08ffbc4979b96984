// workload.hpp - what the case `echo` plays: a server that sends back messages of 64 bytes, and one
// client for all.
//
// The server has one CPU; the client, a process of its own (client.cpp), runs on the others. Each
// of its connections sends a message, waits for it to come back, checks it, and sends the next. The
// server's CPU time per message is what counts: how many come in a second is up to the client.
//
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sched.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>

#include "support/row.hpp"

namespace bench::echo {

inline constexpr std::size_t message = 64;
inline constexpr unsigned sizes[] = {50, 1000};

inline std::string connections(unsigned count) {
    return count < 1000 ? std::to_string(count) + " connections" : "1,000 connections";
}

/// CPU time of this process so far, in microseconds.
inline double cpu_time() {
    rusage used{};
    ::getrusage(RUSAGE_SELF, &used);
    const auto of = [](const timeval& t) {
        return static_cast<double>(t.tv_sec) * 1e6 + static_cast<double>(t.tv_usec);
    };
    return of(used.ru_utime) + of(used.ru_stime);
}

/// The client, which lies beside the server's program.
class client {
public:
    client(std::uint16_t port, unsigned count, std::uint64_t messages) {
        const std::string path =
            std::filesystem::read_symlink("/proc/self/exe").replace_filename("client");
        process_ = ::fork();
        require(process_ >= 0, "fork");
        if (process_ != 0) return;
        ::execl(path.c_str(), "client", std::to_string(port).c_str(), std::to_string(count).c_str(),
                std::to_string(messages).c_str(), nullptr);
        std::_Exit(127);
    }
    client(const client&) = delete;
    client& operator=(const client&) = delete;
    ~client() {
        int status = 0;
        require(::waitpid(process_, &status, 0) == process_, "waitpid");
        require(WIFEXITED(status) && WEXITSTATUS(status) == 0, "what the client got back");
    }

private:
    pid_t process_;
};

/// serve(count, start): listens, calls start(port), and returns when that many connections have
/// come and ended. Reports CPU time per message for each size.
template <class Serve>
void measure(const settings& how, const char* row, Serve serve) {
    for (const unsigned count : sizes) {
        const std::uint64_t messages = how.quick ? 2 * count : 200'000;
        const double before = cpu_time();
        {
            std::optional<client> load;
            serve(count, [&](std::uint16_t port) { load.emplace(port, count, messages); });
        }
        report({row, "us", connections(count)},
               (cpu_time() - before) / static_cast<double>(messages));
    }
}

}  // namespace bench::echo
