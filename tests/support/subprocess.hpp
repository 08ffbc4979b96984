// subprocess.hpp - runs a program to its end and keeps what it said.
//
//     const auto tool = weft_test::find_tool("gdb");
//     const auto result = weft_test::run_command({tool, "-batch",
//     weft_test::program_path("crash")}); CHECK(result.exited_with(0));
//
// The programs of tests/programs run through run_program(), which knows of emulation.
//
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fcntl.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <sstream>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

extern "C" char** environ;

namespace weft_test {

/// How a program ended, and what it wrote to stdout and stderr together.
struct subprocess_result {
    int wait_status = 0;
    std::string output;

    [[nodiscard]] bool exited_with(int status) const {
        return WIFEXITED(wait_status) && WEXITSTATUS(wait_status) == status;
    }
    /// A sanitizer or an emulator may turn a signal into an exit with a status.
    [[nodiscard]] bool killed_by(int signal) const {
        return WIFSIGNALED(wait_status) && WTERMSIG(wait_status) == signal;
    }
    [[nodiscard]] bool says(std::string_view text) const {
        return output.find(text) != output.npos;
    }
    /// For the message of a failed check.
    [[nodiscard]] std::string describe() const {
        std::ostringstream text;
        if (WIFSIGNALED(wait_status)) {
            text << "killed by signal " << WTERMSIG(wait_status);
        } else {
            text << "exited with " << WEXITSTATUS(wait_status);
        }
        text << ", said:\n" << output;
        return text.str();
    }
};

/// Runs a command (a path and its arguments) with an empty stdin, and waits for its end.
/// `environment` is added to ours, as NAME=VALUE. Throws std::system_error if it cannot be started.
inline subprocess_result run_command(std::vector<std::string> command,
                                     std::vector<std::string> environment = {}) {
    const auto check = [](int error, const char* what) {
        if (error != 0) throw std::system_error(error, std::generic_category(), what);
    };
    std::vector<char*> arguments;
    for (std::string& word : command) arguments.push_back(word.data());
    arguments.push_back(nullptr);
    std::vector<char*> variables;
    for (std::string& variable : environment) variables.push_back(variable.data());
    for (char** inherited = environ; *inherited != nullptr; ++inherited)
        variables.push_back(*inherited);
    variables.push_back(nullptr);

    int ends[2];
    check(::pipe2(ends, O_CLOEXEC) == 0 ? 0 : errno, "pipe2");
    posix_spawn_file_actions_t actions;
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
    posix_spawn_file_actions_adddup2(&actions, ends[1], STDOUT_FILENO);
    posix_spawn_file_actions_adddup2(&actions, ends[1], STDERR_FILENO);
    pid_t process = -1;
    const int error = ::posix_spawn(&process, arguments[0], &actions, nullptr, arguments.data(),
                                    variables.data());
    posix_spawn_file_actions_destroy(&actions);
    ::close(ends[1]);
    if (error != 0) ::close(ends[0]);
    check(error, command[0].c_str());

    subprocess_result result;
    char buffer[4096];
    for (;;) {
        const ssize_t got = ::read(ends[0], buffer, sizeof buffer);
        if (got > 0) result.output.append(buffer, static_cast<std::size_t>(got));
        if (got == 0 || (got < 0 && errno != EINTR)) break;
    }
    ::close(ends[0]);
    while (::waitpid(process, &result.wait_status, 0) < 0 && errno == EINTR) continue;
    return result;
}

/// Where a tool is on this machine's PATH, or "".
inline std::string find_tool(const std::string& name) {
    const char* path = std::getenv("PATH");
    std::istringstream folders(path != nullptr ? path : "/usr/bin:/bin");
    for (std::string folder; std::getline(folders, folder, ':');) {
        std::string candidate = (folder.empty() ? "." : folder) + "/" + name;
        if (::access(candidate.c_str(), X_OK) == 0) return candidate;
    }
    return {};
}

#if defined(WEFT_TEST_PROGRAM_DIR) && defined(WEFT_TEST_EMULATOR)

inline constexpr bool emulated = sizeof(WEFT_TEST_EMULATOR) > 1;

/// Where tests/programs/NAME.cpp was built.
inline std::string program_path(const std::string& name) {
    return std::string(WEFT_TEST_PROGRAM_DIR) + "/" + name;
}

/// The words that start it, on another architecture through the emulator.
inline std::vector<std::string> program_command(const std::string& name) {
    std::vector<std::string> command;
    std::istringstream emulator(WEFT_TEST_EMULATOR);
    for (std::string word; emulator >> word;) command.push_back(word);
    if (!command.empty() && command[0].find('/') == std::string::npos)
        command[0] = find_tool(command[0]);
    command.push_back(program_path(name));
    return command;
}

/// Runs tests/programs/NAME.cpp.
inline subprocess_result run_program(const std::string& name,
                                     const std::vector<std::string>& arguments = {},
                                     std::vector<std::string> environment = {}) {
    std::vector<std::string> command = program_command(name);
    command.insert(command.end(), arguments.begin(), arguments.end());
    return run_command(std::move(command), std::move(environment));
}

#endif

}  // namespace weft_test
