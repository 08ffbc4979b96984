// tools_test.cpp - the tools that watch a program understand coroutines: a profiler, valgrind.
//
// SPDX-License-Identifier: Apache-2.0
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <string>
#include <type_traits>
#include <vector>

#include "backends.hpp"
#include "subprocess.hpp"

using namespace weft_test;

namespace {

template <class Coroutine>
std::string name_of_backend() {
    if (is_thread<Coroutine>) return "thread";
    if (is_swapped<Coroutine>) return "swapped";
    return std::is_same_v<Coroutine, weft::coroutine> ? "own" : "ucontext";
}

// Why a tool cannot be used on our programs in this build, or "".
std::string why_not(const std::string& tool) {
    if (emulated) return tool + " cannot look into an emulated program";
    if (sanitized) return tool + " and sanitizers do not go together";
    return {};
}

// A file that is gone in the end.
class scratch_file {
public:
    scratch_file() {
        const int descriptor = ::mkstemp(path_);
        if (descriptor >= 0) ::close(descriptor);
    }
    scratch_file(const scratch_file&) = delete;
    scratch_file& operator=(const scratch_file&) = delete;
    ~scratch_file() { ::unlink(path_); }

    [[nodiscard]] std::string path() const { return path_; }
    [[nodiscard]] long size() const {
        std::FILE* const file = std::fopen(path_, "rb");
        if (file == nullptr) return -1;
        std::fseek(file, 0, SEEK_END);
        const long size = std::ftell(file);
        std::fclose(file);
        return size;
    }

private:
    char path_[32] = "/tmp/weft_test_XXXXXX";
};

template <class Coroutine>
void expect_right_on_valgrind(const std::vector<std::string>& more = {}) {
    if (const std::string reason = why_not("valgrind"); !reason.empty()) GTEST_SKIP() << reason;
    for (const char* tool : {"valgrind", "strip"}) {
        if (find_tool(tool).empty()) GTEST_SKIP() << tool << " is not installed";
    }
    // Without debug information: not every valgrind reads that of every compiler.
    const scratch_file program;
    REQUIRE(run_command(
                {find_tool("strip"), "-g", "-o", program.path(), program_path("coroutine_memory")})
                .exited_with(0));
    std::vector<std::string> command = {find_tool("valgrind"), "--error-exitcode=9",
                                        "--leak-check=full",   "-q",
                                        program.path(),        name_of_backend<Coroutine>()};
    command.insert(command.end(), more.begin(), more.end());
    const subprocess_result result = run_command(command);
    SCOPED_TRACE(result.describe());
    CHECK(result.exited_with(0));
    CHECK(result.output == "right\n");
}

}  // namespace

BACKEND_TEST("tools: gperftools profiles a ring of coroutines") {
    if (const std::string reason = why_not("gperftools"); !reason.empty()) GTEST_SKIP() << reason;
    const std::string program = program_path("ring_gperftools");
    if (::access(program.c_str(), X_OK) != 0)
        GTEST_SKIP() << "libprofiler of gperftools was not there when weft was built";
    const scratch_file profile;
    const subprocess_result result =
        run_program("ring_gperftools", {profile.path(), name_of_backend<Coroutine>()},
                    {"CPUPROFILE_FREQUENCY=1000"});
    SCOPED_TRACE(result.describe());
    CHECK(result.exited_with(0));
    CHECK(result.says("right, with samples\n"));
    CHECK(profile.size() > 500);  // a header, samples, and the mappings
}

BACKEND_TEST("tools: valgrind has nothing to complain of") {
    expect_right_on_valgrind<Coroutine>();
}

BACKEND_TEST("tools: valgrind has nothing to complain of on stacks of a user's source") {
    expect_right_on_valgrind<Coroutine>({"arena"});
}

BACKEND_TEST("tools: the program that valgrind watches is right without it") {
    for (const std::vector<std::string>& source : {std::vector<std::string>{}, {"arena"}}) {
        std::vector<std::string> arguments = {name_of_backend<Coroutine>()};
        arguments.insert(arguments.end(), source.begin(), source.end());
        const subprocess_result result = run_program("coroutine_memory", arguments);
        SCOPED_TRACE(result.describe());
        CHECK(result.exited_with(0));
        CHECK(result.says("right\n"));
    }
}
