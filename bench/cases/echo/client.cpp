// client.cpp - the one client of the cases `echo` and `http`. See their workload.hpp.
//
//   client PORT CONNECTIONS MESSAGES RATE           each connection has one message under way; a
//                                                   rate of 0: the next is sent when one is back
//   client PORT CONNECTIONS MESSAGES RATE DEPTH     the same in HTTP, so many requests at once
//   client PORT CONNECTIONS hold                    no more than what follows
//
// It connects, sends a message on each connection and gets it back, says `ready`, and goes on when
// its input ends. Then it says how many messages it got back in a second, and how many microseconds
// 99 of 100 took at most. With a rate a message's time begins when it is due, whether or not it can
// be sent then.
//
// SPDX-License-Identifier: Apache-2.0
#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstring>
#include <deque>
#include <string>
#include <string_view>
#include <vector>

#include "support/row.hpp"

namespace {

using bench::require;
using clock_type = std::chrono::steady_clock;

constexpr std::size_t message = 64;
constexpr std::string_view request = "GET / HTTP/1.1\r\nHost: localhost\r\n\r\n";

struct connection {
    int number = -1;
    std::uint64_t sent = 0;
    std::size_t back = 0;  // bytes of the message under way
    clock_type::time_point due;
};

int connect_to(std::uint16_t port) {
    const int number = ::socket(AF_INET, SOCK_STREAM, 0);
    sockaddr_in where{};
    where.sin_family = AF_INET;
    where.sin_port = htons(port);
    where.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    require(::connect(number, reinterpret_cast<sockaddr*>(&where), sizeof where) == 0, "connect");
    const int on = 1;
    ::setsockopt(number, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    const linger none{.l_onoff = 1, .l_linger = 0};  // no port is kept for a minute
    ::setsockopt(number, SOL_SOCKET, SO_LINGER, &none, sizeof none);
    return number;
}

// What is said, and what must come back.
class talk {
public:
    explicit talk(unsigned depth) : depth_(depth) {
        for (unsigned i = 0; i < depth; ++i) requests_ += request;
    }

    void send_next(connection& c) {
        std::array<char, message> text;
        std::string_view all = requests_;
        if (depth_ == 0) {
            text.fill(letter(++c.sent));
            all = {text.data(), text.size()};
        }
        require(::send(c.number, all.data(), all.size(), MSG_NOSIGNAL) ==
                    static_cast<ssize_t>(all.size()),
                "send");
        c.back = 0;
    }

    // Whether all has come back.
    bool receive(connection& c) {
        char got[16384];
        const std::size_t whole = depth_ == 0 ? message : depth_ * answer_;
        const ssize_t size = ::recv(c.number, got, std::min(sizeof got, whole - c.back), 0);
        require(size > 0, "recv");
        const std::string_view text(got, static_cast<std::size_t>(size));
        if (depth_ == 0)
            require(text.find_first_not_of(letter(c.sent)) == text.npos, "the bytes");
        else if (c.back == 0)
            require(text.substr(0, 12) == std::string_view("HTTP/1.1 200").substr(0, text.size()),
                    "the answer");
        c.back += text.size();
        return c.back == whole;
    }

    // How long an answer is; all are alike.
    void learn(connection& c) {
        if (depth_ == 0) return;
        require(::send(c.number, request.data(), request.size(), MSG_NOSIGNAL) > 0, "send");
        std::string all;
        for (;;) {
            char got[4096];
            const ssize_t size = ::recv(c.number, got, sizeof got, 0);
            require(size > 0, "recv");
            all.append(got, static_cast<std::size_t>(size));
            const std::size_t head = all.find("\r\n\r\n");
            const std::size_t length = all.find("Content-Length: ");
            if (head == all.npos) continue;
            require(length < head, "the answer's length");
            answer_ = head + 4 + std::stoul(all.substr(length + 16));
            if (all.size() >= answer_) return;
        }
    }

    [[nodiscard]] unsigned messages_at_once() const { return depth_ == 0 ? 1 : depth_; }

private:
    [[nodiscard]] static char letter(std::uint64_t sent) {
        return static_cast<char>('a' + sent % 26);
    }

    const unsigned depth_;  // 0: echo
    std::string requests_;
    std::size_t answer_ = 0;
};

class client {
public:
    client(std::uint16_t port, std::size_t count, unsigned depth) : all_(count), talk_(depth) {
        for (connection& one : all_) {
            one.number = connect_to(port);
            if (&one == &all_.front()) talk_.learn(one);
            talk_.send_next(one);
            while (!talk_.receive(one)) {}
            epoll_event event{.events = EPOLLIN, .data = {.ptr = &one}};
            require(::epoll_ctl(epoll_, EPOLL_CTL_ADD, one.number, &event) == 0, "epoll_ctl");
        }
    }

    void run(std::uint64_t messages, double rate) {
        to_send_ = to_come_ = messages / talk_.messages_at_once();
        times_.reserve(to_come_);
        idle_.clear();
        for (connection& one : all_) idle_.push_back(&one);
        begun_ = clock_type::now();
        step_ = std::chrono::duration<double>(rate > 0 ? talk_.messages_at_once() / rate : 0);
        while (to_come_ != 0) {
            send_due();
            collect();
        }
        const std::chrono::duration<double> took = clock_type::now() - begun_;
        const auto slow = times_.begin() + static_cast<std::ptrdiff_t>(times_.size() * 99 / 100);
        std::nth_element(times_.begin(), slow, times_.end());
        std::printf("%.1f %.3f\n", static_cast<double>(messages) / took.count(), *slow);
    }

private:
    void send_due() {
        auto now = clock_type::now();
        while (to_send_ != 0 && !idle_.empty()) {
            const auto due =
                step_.count() == 0
                    ? now
                    : begun_ + std::chrono::duration_cast<clock_type::duration>(step_ * sent_);
            if (due > now) return;
            connection& one = *idle_.front();
            idle_.pop_front();
            one.due = due;
            --to_send_;
            ++sent_;
            talk_.send_next(one);
            now = clock_type::now();
        }
    }

    // Without ever sleeping: it is the server who would have to wake it, on its CPU's account.
    void collect() {
        std::array<epoll_event, 256> events;
        const int count = ::epoll_wait(epoll_, events.data(), events.size(), 0);
        for (int i = 0; i < count; ++i) {
            connection& one =
                *static_cast<connection*>(events[static_cast<std::size_t>(i)].data.ptr);
            if (!talk_.receive(one)) continue;
            --to_come_;
            const std::chrono::duration<double, std::micro> took = clock_type::now() - one.due;
            times_.push_back(took.count());
            idle_.push_back(&one);
            send_due();
        }
    }

    const int epoll_ = ::epoll_create1(0);
    std::vector<connection> all_;
    talk talk_;
    std::deque<connection*> idle_;
    std::uint64_t to_send_ = 0;
    std::uint64_t to_come_ = 0;
    std::uint64_t sent_ = 0;
    clock_type::time_point begun_;
    std::chrono::duration<double> step_{};
    std::vector<double> times_;
};

}  // namespace

int main(int argc, char** argv) {
    require(argc >= 4 && argc <= 6, "client PORT CONNECTIONS MESSAGES RATE [DEPTH]");
    const unsigned depth = argc == 6 ? static_cast<unsigned>(std::stoul(argv[5])) : 0;
    client one(static_cast<std::uint16_t>(std::stoul(argv[1])), std::stoul(argv[2]), depth);
    std::puts("ready");
    std::fflush(stdout);
    char end = 0;
    while (::read(STDIN_FILENO, &end, 1) > 0) {}
    if (std::string_view(argv[3]) != "hold")
        one.run(std::stoul(argv[3]), argc > 4 ? std::stod(argv[4]) : 0);
}
