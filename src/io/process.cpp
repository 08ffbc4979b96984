// process.cpp - processes: posix_spawn on a side pool, pidfd for all that comes after.
//
// posix_spawn starts the program without copying the address space, with all signals blocked until
// the program runs and our handlers taken back, so it is safe beside any number of threads. What is
// ours is close-on-exec; only the three standard streams go along. Until we wait for it the kernel
// keeps the number of a child that has ended, so pidfd_open() finds the right one.
//
// SPDX-License-Identifier: Apache-2.0
#include <weft/io/process.hpp>

#include <fcntl.h>
#include <poll.h>
#include <spawn.h>
#include <sys/pidfd.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <span>
#include <string_view>

#include <weft/base/test_point.hpp>
#include <weft/fiber/cancel.hpp>
#include <weft/fiber/this_fiber.hpp>
#include <weft/io/blocking.hpp>
#include <weft/scope/deadline.hpp>

#include "io/side_pool.hpp"
#include "io/system_call.hpp"

extern "C" char** environ;

namespace weft::inline v0::io {

namespace {

std::unexpected<std::error_code> said(int error) {
    return std::unexpected(std::error_code(error, std::system_category()));
}

/// A number that is closed at the end.
class number_guard {
public:
    number_guard() noexcept = default;
    explicit number_guard(int number) noexcept : number_(number) {}
    number_guard(number_guard&& other) noexcept : number_(std::exchange(other.number_, -1)) {}
    number_guard& operator=(number_guard&& other) noexcept {
        std::swap(number_, other.number_);
        return *this;
    }
    ~number_guard() {
        if (number_ >= 0) ::close(number_);
    }
    [[nodiscard]] int get() const noexcept { return number_; }
    [[nodiscard]] int release() noexcept { return std::exchange(number_, -1); }

private:
    int number_ = -1;
};

// What the child gets, and our ends of the pipes.
struct wiring {
    std::array<number_guard, 3> theirs;
    std::array<number_guard, 3> ours;
};

// Above the standard streams, so that none is overwritten before it is put in its place.
int lift(number_guard& number) noexcept {
    if (number.get() > 2) return 0;
    const int lifted = ::fcntl(number.get(), F_DUPFD_CLOEXEC, 3);
    if (lifted < 0) return errno;
    number = number_guard(lifted);
    return 0;
}

int wire(wiring& made, int stream, standard how) noexcept {
    const auto at = static_cast<unsigned>(stream);
    if (how == standard::none) {
        const int null = ::open("/dev/null", (stream == 0 ? O_RDONLY : O_WRONLY) | O_CLOEXEC);
        if (null < 0) return errno;
        made.theirs[at] = number_guard(null);
        return lift(made.theirs[at]);
    }
    if (how == standard::inherited) return 0;
    int ends[2];
    if (::pipe2(ends, O_CLOEXEC) != 0) return errno;
    made.theirs[at] = number_guard(ends[stream == 0 ? 0 : 1]);
    made.ours[at] = number_guard(ends[stream == 0 ? 1 : 0]);
    return lift(made.theirs[at]);
}

/// The lists that posix_spawn wants.
class spawn_request {
public:
    spawn_request() noexcept {
        ::posix_spawn_file_actions_init(&actions);
        ::posix_spawnattr_init(&attributes);
    }
    spawn_request(const spawn_request&) = delete;
    spawn_request& operator=(const spawn_request&) = delete;
    ~spawn_request() {
        ::posix_spawn_file_actions_destroy(&actions);
        ::posix_spawnattr_destroy(&attributes);
    }

    [[nodiscard]] int fill(const wiring& wires, const process_options& options) noexcept {
        for (int stream = 0; stream < 3; ++stream)
            if (const int theirs = wires.theirs[static_cast<unsigned>(stream)].get(); theirs >= 0)
                if (const int error = ::posix_spawn_file_actions_adddup2(&actions, theirs, stream))
                    return error;
        if (options.error_to_output)
            if (const int error = ::posix_spawn_file_actions_adddup2(&actions, 1, 2)) return error;
        if (!options.folder.empty())
            if (const int error =
                    ::posix_spawn_file_actions_addchdir_np(&actions, options.folder.c_str()))
                return error;
        // A mask, and SIGPIPE ignored, would otherwise go along.
        sigset_t signals;
        ::sigemptyset(&signals);
        ::posix_spawnattr_setsigmask(&attributes, &signals);
        ::sigaddset(&signals, SIGPIPE);
        ::posix_spawnattr_setsigdefault(&attributes, &signals);
        return ::posix_spawnattr_setflags(&attributes,
                                          POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF);
    }

    posix_spawn_file_actions_t actions;
    posix_spawnattr_t attributes;
};

std::vector<char*> pointers_to(std::vector<std::string>& words) {
    std::vector<char*> pointers;
    for (std::string& word : words) pointers.push_back(word.data());
    return pointers;
}

std::string_view name_of(std::string_view variable) noexcept {
    return variable.substr(0, variable.find('='));
}

// Those that are given, and ours of other names. No name twice: of two, getenv() takes the first,
// a shell the last.
std::vector<char*> variables_for(process_options& options) {
    std::vector<char*> variables;
    std::span given(options.environment);
    for (; !given.empty(); given = given.subspan(1))
        if (!std::ranges::count(given.subspan(1), name_of(given[0]), name_of))
            variables.push_back(given[0].data());
    if (options.clean_environment) return variables;
    for (char** one = environ; one != nullptr && *one != nullptr; ++one)
        if (!std::ranges::count(options.environment, name_of(*one), name_of))
            variables.push_back(*one);
    return variables;
}

struct started {
    pid_t id = 0;
    number_guard handle;
    std::array<number_guard, 3> ours;
};

// Blocks until the program has begun, or could not.
result<started> start(std::vector<std::string> command, process_options options) {
    wiring wires;
    const std::array how{options.input, options.output,
                         options.error_to_output ? standard::inherited : options.error};
    for (int stream = 0; stream < 3; ++stream)
        if (const int error = wire(wires, stream, how[static_cast<unsigned>(stream)]))
            return said(error);
    spawn_request request;
    if (const int error = request.fill(wires, options)) return said(error);
    std::vector<char*> words = pointers_to(command);
    words.push_back(nullptr);
    std::vector<char*> variables = variables_for(options);
    variables.push_back(nullptr);
    started made;
    if (const int error = ::posix_spawnp(&made.id, words[0], &request.actions, &request.attributes,
                                         words.data(), variables.data()))
        return said(error);
    made.handle = number_guard(static_cast<int>(::syscall(SYS_pidfd_open, made.id, 0)));
    if (made.handle.get() < 0 && errno != ESRCH) {
        const int error = errno;  // no descriptor is left
        ::kill(made.id, SIGKILL);
        while (::waitpid(made.id, nullptr, 0) < 0 && errno == EINTR) {}
        return said(error);
    }
    made.ours = std::move(wires.ours);
    return made;
}

bool has_zero(const std::vector<std::string>& words) noexcept {
    for (const std::string& word : words)
        if (word.contains('\0')) return true;
    return false;
}

bool is_variable(std::string_view word) noexcept {
    return !name_of(word).empty() && name_of(word).size() < word.size();
}

// -EAGAIN: it has not ended.
long reap(int handle, siginfo_t& about, int flags) noexcept {
    about = {};
    if (::waitid(P_PIDFD, static_cast<id_t>(handle), &about, WEXITED | flags) != 0) return -errno;
    return about.si_pid != 0 ? 0 : -EAGAIN;
}

/// Waits for one that was killed: when it is called, or else at the end.
class reaper {
public:
    explicit reaper(int handle) noexcept : handle_(handle) {}
    reaper(reaper&&) noexcept = default;
    reaper& operator=(reaper&&) = delete;
    ~reaper() { (*this)(); }
    void operator()() noexcept {
        if (handle_.get() < 0) return;
        const number_guard handle(handle_.release());
        siginfo_t about;
        pollfd one{.fd = handle.get(), .events = POLLIN, .revents = 0};
        long said = 0;  // again and again, for what was adopted does not block
        while ((said = reap(handle.get(), about, 0)) == -EAGAIN || said == -EINTR)
            ::poll(&one, 1, -1);
    }

private:
    number_guard handle_;
};

void end_now(pid_t id) noexcept {
    ::kill(id, SIGKILL);
    while (::waitpid(id, nullptr, 0) < 0 && errno == EINTR) {}
}

exit_status status_of(const siginfo_t& about) noexcept {
    const bool exited = about.si_code == CLD_EXITED;
    return {exited ? about.si_status : 0, exited ? 0 : about.si_status};
}

template <class End>
result<void> adopt_into(End& end, number_guard& number) {
    if (number.get() < 0) return {};
    auto adopted = descriptor::adopt(number.release());
    if (!adopted) return std::unexpected(adopted.error());
    end = End(std::move(*adopted));
    return {};
}

}  // namespace

process::process(process&& other) noexcept
    : handle_(std::move(other.handle_)),
      id_(std::exchange(other.id_, 0)),
      ended_(std::exchange(other.ended_, std::nullopt)),
      input_(std::move(other.input_)),
      output_(std::move(other.output_)),
      error_(std::move(other.error_)) {}

process& process::operator=(process&& other) noexcept {
    if (this == &other) return *this;
    abandon();
    handle_ = std::move(other.handle_);
    id_ = std::exchange(other.id_, 0);
    ended_ = std::exchange(other.ended_, std::nullopt);
    input_ = std::move(other.input_);
    output_ = std::move(other.output_);
    error_ = std::move(other.error_);
    return *this;
}

process::~process() { abandon(); }

// A process that was killed ends soon, but not at once. Without a thread for that, this one waits.
void process::abandon() noexcept {
    if (id_ == 0 || ended_ || !handle_) return;
    static_cast<void>(kill());
    try {
        weft::detail::side_access::launch(file_side_pool(), reaper(handle_.release()));
    } catch (...) {}
}

result<process> process::spawn(std::vector<std::string> command, process_options options) {
    if (command.empty() || command[0].empty() || has_zero(command) ||
        has_zero(options.environment) || options.folder.contains('\0') ||
        !std::ranges::all_of(options.environment, is_variable))
        return said(EINVAL);
    result<started> begun = try_blocking(
        file_side_pool(), [command = std::move(command), options = std::move(options)]() mutable {
            return start(std::move(command), std::move(options));
        });
    if (!begun) return std::unexpected(begun.error());
    process made;
    made.id_ = begun->id;
    if (begun->handle.get() >= 0) {
        auto handle = descriptor::adopt(begun->handle.release());
        if (!handle) {
            end_now(made.id_);
            return std::unexpected(handle.error());
        }
        made.handle_ = std::move(*handle);
    }
    result<void> adopted = adopt_into(made.input_, begun->ours[0]);
    if (adopted) adopted = adopt_into(made.output_, begun->ours[1]);
    if (adopted) adopted = adopt_into(made.error_, begun->ours[2]);
    if (!adopted) return std::unexpected(adopted.error());
    return made;
}

result<exit_status> process::wait() {
    if (ended_) return *ended_;
    if (!handle_) return said(ECHILD);
    siginfo_t about{};
    const auto waited = handle_.perform(
        direction::read, [&about](int handle) noexcept { return reap(handle, about, WNOHANG); });
    if (!waited) return std::unexpected(waited.error());
    ended_ = status_of(about);
    handle_.close();
    return *ended_;
}

result<void> process::send(int signal) {
    const auto sent = handle_.call([signal](int handle) noexcept {
        WEFT_TEST_POINT("process: about to send");
        return weft::detail::system_call(
            [=] { return ::syscall(SYS_pidfd_send_signal, handle, signal, nullptr, 0); });
    });
    if (sent) return {};
    if (!handle_) return said(ESRCH);  // it was waited for
    return std::unexpected(sent.error());
}
result<void> process::terminate() { return send(SIGTERM); }
result<void> process::kill() { return send(SIGKILL); }

result<exit_status> process::stop(std::chrono::nanoseconds grace) {
    if (ended_) return *ended_;
    if (const auto sent = terminate(); !sent && sent.error() != std::errc::no_such_process)
        return std::unexpected(sent.error());
    const auto ended = with_timeout(grace, [this] { return wait(); });
    if (ended || ended.error() != std::errc::timed_out || this_fiber::stop_requested())
        return ended;
    static_cast<void>(kill());
    return wait();
}

}  // namespace weft::inline v0::io
