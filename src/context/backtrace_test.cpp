// backtrace_test.cpp - whoever walks the stack of a context comes to its entry, and to an end
// there.
//
// The walkers: backtrace(), the unwinder of an exception that nobody catches, gdb; and valgrind,
// which walks at every error and follows every switch.
//
// SPDX-License-Identifier: Apache-2.0
#include <weft/context/context.hpp>

#include <algorithm>
#include <csignal>
#include <sstream>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include "backtrace_support.hpp"
#include "context_support.hpp"
#include "subprocess.hpp"

using namespace weft_test;

namespace {

template <class Context>
constexpr const char* name_of =
    std::is_same_v<Context, weft::portable_context> ? "portable" : "native";

template <class Context>
struct walker {
    Context outside;
    Context inside;
    std::vector<void*> functions;

    [[gnu::noinline]] static void descend(walker& me, int depth) {
        asm volatile("" : "+r"(depth));  // no copy of this function for some depth
        if (depth == 0)
            me.functions = functions_on_the_stack();
        else
            descend(me, depth - 1);
        asm volatile("" : : : "memory");
    }

    static void enter(void* argument) {
        auto& me = *static_cast<walker*>(argument);
        descend(me, 5);
        Context::swap(me.inside, me.outside);
        descend(me, 5);
        Context::jump(me.outside);
    }

    // Whether the walk went through descend() and enter(), and stopped soon after: at the stub of a
    // native context (under ASan there is one function more), at the two functions of a portable
    // one, where some libc's have another.
    void check_functions(void* caller) const {
        const auto descended = std::ranges::count(functions, reinterpret_cast<void*>(&descend));
        CHECK(descended == 6);
        const auto entry = std::ranges::find(functions, reinterpret_cast<void*>(&enter));
        REQUIRE(entry != functions.end());
        const bool portable = std::is_same_v<Context, weft::portable_context>;
        CHECK(functions.end() - entry <= (portable ? 4 : WEFT_ASAN ? 3 : 2));
        CHECK(std::ranges::find(functions, caller) == functions.end());
    }
};

template <class Context>
[[gnu::noinline]] void walk() {
    const memory_stack stack;
    walker<Context> me;
    me.inside = Context::make(stack.span(), &walker<Context>::enter, &me);
    for (int i = 0; i < 2; ++i) {
        me.functions.clear();
        Context::swap(me.outside, me.inside);
        me.check_functions(reinterpret_cast<void*>(&walk<Context>));
    }
}

// Why a tool cannot be used on our programs in this build, or "".
std::string why_not(const std::string& tool) {
    if (emulated) return tool + " cannot look into an emulated program";
    if (with_sanitizer) return tool + " and sanitizers do not go together";
    if (find_tool(tool).empty()) return tool + " is not installed";
    return {};
}

}  // namespace

CONTEXT_TEST("backtrace: backtrace() ends at the entry of a context") { walk<Context>(); }

CONTEXT_TEST("backtrace: an exception that nobody catches ends in terminate, nothing unwound") {
    const subprocess_result result = run_program("context_throw", {name_of<Context>});
    SCOPED_TRACE(result.describe());
    CHECK(!result.exited_with(0));
    CHECK(result.says("terminate\n"));
    CHECK(result.says("weft_test_thrower\n"));
    CHECK(result.says("weft_test_body\n"));
    CHECK(result.says("end after fewer than 64 frames"));
    CHECK(!result.says("unwound"));
    CHECK(!result.says("caught on another stack"));
}

CONTEXT_TEST("backtrace: gdb shows the functions of a context, and an end") {
    if (const std::string reason = why_not("gdb"); !reason.empty()) GTEST_SKIP() << reason;
    const subprocess_result result =
        run_command({find_tool("gdb"), "-nx", "-batch", "-ex", "run", "-ex", "bt", "--args",
                     program_path("context_abort"), name_of<Context>});
    SCOPED_TRACE(result.describe());
    if (result.says("ptrace: Operation not permitted")) GTEST_SKIP() << "gdb may not trace here";
    CHECK(result.says("SIGABRT"));
    CHECK(result.says("weft_test_deep_inside"));
    const std::size_t body = result.output.find("weft_test_body");
    REQUIRE(body != std::string::npos);
    const std::string after = result.output.substr(body);
    const bool portable = std::is_same_v<Context, weft::portable_context>;
    CHECK(std::ranges::count(after, '#') <= (portable ? 3 : 1));
    CHECK(after.find("main (") == std::string::npos);
    for (const char* complaint : {"corrupt stack", "previous frame", "Backtrace stopped"})
        CHECK(!result.says(complaint));
}

CONTEXT_TEST("backtrace: valgrind has nothing to complain of") {
    if (const std::string reason = why_not("valgrind"); !reason.empty()) GTEST_SKIP() << reason;
    if (const std::string reason = why_not("strip"); !reason.empty()) GTEST_SKIP() << reason;
    // Without debug information: not every valgrind reads that of every compiler.
    const std::string program = program_path("context_memory.") + name_of<Context>;
    REQUIRE(run_command({find_tool("strip"), "-g", "-o", program, program_path("context_memory")})
                .exited_with(0));
    const subprocess_result result =
        run_command({find_tool("valgrind"), "--error-exitcode=9", "--leak-check=full", "-q",
                     program, name_of<Context>});
    SCOPED_TRACE(result.describe());
    CHECK(result.exited_with(0));
    CHECK(result.output == "right\n");
}
