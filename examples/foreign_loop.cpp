// foreign_loop.cpp - a weft::loop as a guest of a plain poll(2) loop.
//
// The host owns the thread. It watches its own descriptors (here: a pipe) beside the loop's, sleeps
// no longer than until the loop's next deadline, and calls loop::poll(), which never waits. Fibers
// sleep, are woken by the host and are started from other threads meanwhile.
//
// SPDX-License-Identifier: Apache-2.0
#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstdio>
#include <deque>
#include <optional>
#include <string>
#include <string_view>
#include <thread>

#include <weft/weft.hpp>

using namespace weft;
using namespace std::chrono_literals;

// What the fibers came to.
struct results {
    int ticks = 0;
    std::string heard;
    int from_outside = 0;
};

// Lines from the host for one fiber; both are on one thread, so nothing is locked.
struct mailbox {
    std::deque<std::string> lines;
    bool closed = false;
};

void tick(results& result) {
    for (int i = 0; i < 5; ++i) {
        sleep_for(1ms);
        ++result.ticks;
    }
}

void listen(mailbox& box, results& result) {
    while (!box.closed || !box.lines.empty()) {
        if (box.lines.empty()) {
            park();
            continue;
        }
        result.heard += box.lines.front();
        box.lines.pop_front();
    }
}

// How long poll(2) may sleep, in its milliseconds, rounded up.
int patience(const loop& guest) {
    const std::optional<time_point> deadline = guest.next_deadline();
    if (!deadline) return -1;
    const auto left =
        std::chrono::ceil<std::chrono::milliseconds>(*deadline - std::chrono::steady_clock::now());
    return static_cast<int>(std::clamp<std::chrono::milliseconds::rep>(left.count(), 0, 60'000));
}

// False: the other side has closed it.
bool read_line(int descriptor, mailbox& box) {
    char text[64];
    const ssize_t count = ::read(descriptor, text, sizeof text);
    if (count > 0) box.lines.emplace_back(text, static_cast<std::size_t>(count));
    if (count == 0) box.closed = true;
    return count > 0 || (count < 0 && errno == EINTR);
}

int main() {
    int ends[2];
    if (::pipe(ends) != 0) return 1;
    loop guest;
    results result;
    mailbox box;
    fiber listener(guest, {.name = "listener"}, [&] { listen(box, result); });
    go(guest, {.name = "ticker"}, [&] { tick(result); });

    // The rest of the world.
    std::jthread outside([&, write_end = ends[1]] {
        for (const char* word : {"warp ", "and ", "weft"}) {
            const std::string_view text(word);
            if (::write(write_end, text.data(), text.size()) < 0) break;
            go(guest, [&] { ++result.from_outside; });
        }
        ::close(write_end);
    });

    pollfd watched[2] = {{.fd = guest.descriptor(), .events = POLLIN, .revents = 0},
                         {.fd = ends[0], .events = POLLIN, .revents = 0}};
    int turns = 0;
    while (!box.closed || guest.alive() != 0) {
        ::poll(watched, 2, patience(guest));
        if (watched[1].revents != 0) {
            if (!read_line(watched[1].fd, box)) watched[1].fd = -1;  // poll(2) skips those
            unpark(listener.handle());
        }
        guest.poll();
        ++turns;
    }
    ::close(ends[0]);
    listener.join();

    std::printf("%d ticks, heard \"%s\", %d fibers from another thread, in %d turns\n",
                result.ticks, result.heard.c_str(), result.from_outside, turns);
    const bool right =
        result.ticks == 5 && result.heard == "warp and weft" && result.from_outside == 3;
    return right ? 0 : 1;
}
