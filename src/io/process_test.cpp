// process_test.cpp - other programs, started, talked to, ended.
//
// SPDX-License-Identifier: Apache-2.0
#include <weft/io/process.hpp>

#include <pthread.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <csignal>
#include <optional>
#include <string>
#include <string_view>
#include <thread>
#include <utility>

#include <weft/base/test_point.hpp>
#include <weft/exec/loop.hpp>
#include <weft/io/blocking.hpp>
#include <weft/scope/deadline.hpp>
#include <weft/sync/event.hpp>
#include <weft/sync/wait_group.hpp>

#include "io_support.hpp"
#include "pools.hpp"
#include "subprocess.hpp"
#include "temporary_folder.hpp"

using namespace weft;
using namespace std::chrono_literals;
using io::process;
using enum io::standard;

namespace {

/// All that comes until the end.
std::string read_all(io::pipe_reader& from) {
    std::string all;
    std::array<std::byte, 512> buffer;
    while (const auto n = from.read_some(buffer)) {
        if (*n == 0) break;
        all.append(reinterpret_cast<const char*>(buffer.data()), *n);
    }
    return all;
}

process shell(const std::string& script, io::process_options options = {}) {
    return process::spawn({"sh", "-c", script}, std::move(options)).value();
}

}  // namespace

POOL_TEST("process: is talked to through pipes") {
    const std::string text(200'000, 'w');  // more than the pipes hold
    process cat;
    event started;
    fiber reads(p, options(), [&] {
        cat = process::spawn({"cat"}, {.input = piped, .output = piped}).value();
        started.set();
        CHECK(read_all(cat.output()) == text);
        CHECK(cat.wait().value().exited_with(0));
        CHECK(cat.wait().value().exited_with(0));  // it can be asked again
        CHECK(cat.send(SIGTERM).error() == std::errc::no_such_process);
    });
    fiber writes(p, options(), [&] {
        started.wait();
        cat.input().write_all(text).value();
        cat.input().close();
    });
    writes.join();
    reads.join();
}

POOL_TEST("process: says how it ended") {
    fiber f(p, options(), [&] {
        CHECK(shell("exit 7").wait().value().code() == 7);
        CHECK(shell("true").wait().value().exited_with(0));
        process killed = shell("kill -USR1 $$");
        const io::exit_status status = killed.wait().value();
        CHECK(status.signal() == SIGUSR1);
        CHECK(status.code() == -1);
        CHECK(!status.exited_with(0));
    });
    f.join();
}

POOL_TEST("process: one that ignores SIGTERM is killed when its grace is over") {
    fiber f(p, options(), [&] {
        process polite = process::spawn({"sleep", "1000"}).value();
        CHECK(polite.stop(10s).value().signal() == SIGTERM);
        process stubborn = shell("trap '' TERM; echo ready; exec sleep 1000", {.output = piped});
        std::array<std::byte, 6> ready;
        stubborn.output().read_exactly(ready).value();
        CHECK(stubborn.stop(20ms).value().signal() == SIGKILL);
        CHECK(stubborn.stop(20ms).value().signal() == SIGKILL);
    });
    f.join();
}

POOL_TEST("process: a fiber that waits for it can be cancelled, and it runs on") {
    std::atomic<bool> told = false;
    std::atomic<int> ended_by = 0;
    fiber f(p, options(), [&] {
        process runs = process::spawn({"sleep", "1000"}).value();
        const auto late = with_timeout(5ms, [&] { return runs.wait(); });
        told = !late && late.error() == std::errc::timed_out;
        runs.kill().value();
        ended_by = runs.wait().value().signal();
    });
    f.join();
    CHECK(told);
    CHECK(ended_by == SIGKILL);
}

POOL_TEST("process: one that nobody waited for is killed by the destructor") {
    fiber f(p, options(), [&] {
        io::pipe_reader output;
        {
            process left = shell("echo on; exec sleep 1000", {.output = piped});
            output = std::move(left.output());
        }
        CHECK(read_all(output).size() <= 3);  // it ends
    });
    f.join();
}

WEFT_TEST("process: what it is told to be") {
    const weft_test::temporary_folder folder;
    loop s;
    go(s, [&] {
        process where = shell("pwd", {.output = piped, .folder = "/"});
        CHECK(read_all(where.output()) == "/\n");
        process variable =
            shell("echo $WEFT_WORD", {.output = piped, .environment = {"WEFT_WORD=x"}});
        CHECK(read_all(variable.output()) == "x\n");
        process other = shell("echo $PATH", {.output = piped, .environment = {"PATH=/nowhere"}});
        CHECK(read_all(other.output()) == "/nowhere\n");  // and not ours
        process twice = shell("env | grep WEFT_WORD",
                              {.output = piped, .environment = {"WEFT_WORD=x", "WEFT_WORD=y"}});
        CHECK(read_all(twice.output()) == "WEFT_WORD=y\n");
        process clean = shell("echo \"$HOME.\"", {.output = piped, .clean_environment = true});
        CHECK(read_all(clean.output()) == ".\n");
        process bad = shell("echo good; echo bad >&2", {.output = none, .error = piped});
        CHECK(read_all(bad.error_output()) == "bad\n");
        process both = shell("echo good; echo bad >&2", {.output = piped, .error_to_output = true});
        CHECK(read_all(both.output()) == "good\nbad\n");
        process nothing = shell("cat", {.input = none, .output = piped});
        CHECK(read_all(nothing.output()).empty());
        CHECK(!nothing.input());
    });
    s.run();
}

WEFT_TEST("process: gets no descriptor of ours, and no blocked or ignored signal") {
    loop s;
    go(s, [] {
        const auto pipe = io::pipe::make().value();
        sigset_t blocked;
        ::sigemptyset(&blocked);
        ::sigaddset(&blocked, SIGTERM);
        ::pthread_sigmask(SIG_BLOCK, &blocked, nullptr);
        process lists =
            shell("ls -l /proc/self/fd; grep SigBlk /proc/self/status", {.output = piped});
        ::pthread_sigmask(SIG_UNBLOCK, &blocked, nullptr);
        const std::string said = read_all(lists.output());
        struct ::stat ours {};
        CHECK(::fstat(pipe.reader.native_handle(), &ours) == 0);
        CHECK(said.find("pipe:[" + std::to_string(ours.st_ino) + "]") == said.npos);
        CHECK(said.find("eventpoll") == said.npos);
        CHECK(said.find("[io_uring]") == said.npos);
        CHECK(said.find("SigBlk:\t0000000000000000") != said.npos);
    });
    s.run();
}

WEFT_TEST("process: what cannot be started has a name") {
    if (weft_test::emulated)
        GTEST_SKIP() << "its vfork shares no memory: a failure is not heard of";
    loop s;
    go(s, [] {
        using std::errc;
        CHECK(process::spawn({"no-such-program"}).error() == errc::no_such_file_or_directory);
        CHECK(process::spawn({"/dev/null"}).error() == errc::permission_denied);
        CHECK(process::spawn({}).error() == errc::invalid_argument);
        CHECK(process::spawn({std::string("a\0b", 3)}).error() == errc::invalid_argument);
        for (const char* const wrong : {"", "=", "=x", "WEFT_WORD"})
            CHECK(process::spawn({"true"}, {.environment = {wrong}}).error() ==
                  errc::invalid_argument);
        CHECK(process::spawn({"true"}, {.folder = "/no/such/folder"}).error() ==
              errc::no_such_file_or_directory);
        process none;
        CHECK(!none);
        CHECK(none.wait().error() == errc::no_child_process);
        CHECK(none.kill().error() == errc::no_such_process);
    });
    s.run();
}

#if defined(WEFT_CHECKS) && WEFT_CHECKS
namespace {

process* waited_for = nullptr;
int victim = -1;  // a process that has the first free descriptor

// Between the two halves of a send(): somebody else has waited.
void wait_now(const char* name) noexcept {
    if (std::string_view(name) != "process: about to send" || waited_for == nullptr) return;
    CHECK(std::exchange(waited_for, nullptr)->wait().value().exited_with(0));
    victim = static_cast<int>(::syscall(SYS_pidfd_open, victim, 0));
}

}  // namespace

WEFT_TEST("process: a signal is not sent to another that has got its descriptor") {
    process ended = shell("exit 0");
    siginfo_t about{};
    ::waitid(P_PID, static_cast<id_t>(ended.id()), &about, WEXITED | WNOWAIT);
    process other = shell("read line", {.input = piped});
    waited_for = &ended;
    victim = other.id();
    detail::at_test_points = &wait_now;
    const auto sent = ended.send(SIGKILL);
    detail::at_test_points = nullptr;
    CHECK(sent.error() == std::errc::no_such_process);
    CHECK(victim >= 0);
    ::close(victim);
    other.input().write_all("go on\n").value();
    CHECK(other.wait().value().exited_with(0));
}
#endif

namespace {

// While it lives, no thread gets a stack that it could be started with.
class no_thread_can_be_made {
public:
    no_thread_can_be_made() {
        ::pthread_getattr_default_np(&before_);
        pthread_attr_t huge;
        ::pthread_attr_init(&huge);
        CHECK(::pthread_attr_setstacksize(&huge, std::size_t{1} << 48) == 0);
        CHECK(::pthread_setattr_default_np(&huge) == 0);
        ::pthread_attr_destroy(&huge);
    }
    no_thread_can_be_made(const no_thread_can_be_made&) = delete;
    no_thread_can_be_made& operator=(const no_thread_can_be_made&) = delete;
    ~no_thread_can_be_made() {
        ::pthread_setattr_default_np(&before_);
        ::pthread_attr_destroy(&before_);
    }

private:
    pthread_attr_t before_;
};

}  // namespace

WEFT_TEST("process: one that is left leaves no zombie") {
    std::optional<process> left = shell("exec sleep 1000");
    const pid_t id = left->id();
    loop s;
    go(s, [&] { left.reset(); });
    s.run();
    io::file_side_pool().end_idle();
    while (io::file_side_pool().counters().running != 0) std::this_thread::yield();
    CHECK(::kill(id, 0) != 0);
}

WEFT_TEST("process: one that is left is waited for also when no thread can be made") {
    io::file_side_pool().end_idle();
    const std::size_t before = weft_test::open_descriptors();
    std::optional<process> left = shell("exec sleep 1000");
    const pid_t id = left->id();
    {
        const no_thread_can_be_made now;
        left.reset();
    }
    CHECK(::kill(id, 0) != 0);  // not even a zombie
    CHECK(weft_test::open_descriptors() == before);
}

POOL_TEST("process: twenty at once") {
    std::atomic<int> good = 0;
    wait_group all;
    for (int i = 0; i < 20; ++i) {
        all.add();
        spawn([&, i] {
            const auto done = all.guard();
            process one = shell("exit " + std::to_string(i));
            if (one.wait().value().exited_with(i)) ++good;
        });
    }
    all.wait();
    CHECK(good == 20);
}

WEFT_TEST("process: fork and exec beside a live pool") {
    pool p({.workers = 4});
    std::atomic<bool> end = false;
    for (int i = 0; i < 8; ++i)
        go(p, [&] {
            while (!end) {
                io::blocking([] {});
                yield();
            }
        });
    for (int i = 0; i < 20; ++i) {
        const pid_t child = ::fork();
        if (child == 0) {
            ::execlp("true", "true", nullptr);
            ::_exit(1);
        }
        int status = -1;
        CHECK(::waitpid(child, &status, 0) == child);
        CHECK(status == 0);
    }
    end = true;
    p.drain();
}
