// chaos_proxy.hpp - stands between a client and a server, and treats their bytes badly.
//
// It splits what comes into pieces, down to one byte, merges pieces, holds them back, stalls one
// direction while the other goes on, and now and then drops the connection in the middle, by a
// reset or by an end. What it passes on it passes on in order and unchanged: so whoever uses it
// can check that nothing is lost and nothing comes twice. Chance comes from a seed.
//
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <memory>
#include <random>
#include <span>
#include <vector>

#include <weft/fiber/fiber.hpp>
#include <weft/fiber/this_fiber.hpp>
#include <weft/io/serve.hpp>
#include <weft/io/tcp.hpp>

namespace weft_test {

class chaos_proxy {
public:
    struct options {
        weft::io::address to;
        unsigned seed = 1;
        int drop_one_in = 0;  // pieces; 0: no connection is dropped
    };

    explicit chaos_proxy(const options& how) : how_(how) {}

    /// As serve()'s: until its fiber is asked to stop.
    void run() {
        weft::io::serve(listener_,
                        [this](weft::io::connection<weft::io::tcp_stream>& c) { pass(c); },
                        {.grace = std::chrono::milliseconds(1)});
    }

    [[nodiscard]] weft::io::address where() const { return listener_.local_address().value(); }
    [[nodiscard]] long dropped() const { return dropped_; }
    [[nodiscard]] long pieces() const { return pieces_; }
    /// How many connections it had at the same time.
    [[nodiscard]] long most_at_once() const { return most_at_once_; }

private:
    using peer = weft::io::connection<weft::io::tcp_stream>;

    void pass(peer& here) {
        auto there = weft::io::tcp_stream::connect(how_.to);
        if (!there) return;
        const unsigned seed = how_.seed + static_cast<unsigned>(++turn_) * 7919;
        const long now = ++under_way_;
        for (long most = most_at_once_; most < now;)
            if (most_at_once_.compare_exchange_weak(most, now)) break;
        weft::fiber back([&] { pump(*there, here.stream(), *there, seed + 1); });
        pump(here.stream(), *there, *there, seed);
        back.join();
        --under_way_;
    }

    // Both streams are closed when one direction fails or is dropped.
    void pump(weft::io::tcp_stream& from, weft::io::tcp_stream& to, weft::io::tcp_stream& reset,
              unsigned seed) {
        std::minstd_rand random(seed);
        std::vector<std::byte> held;
        std::array<std::byte, 2048> buffer;
        for (;;) {
            const std::size_t most = random() % 4 == 0 ? 1 : 1 + random() % buffer.size();
            const auto got = from.read_some(std::span(buffer).first(most));
            if (got && *got == 0) {
                if (weft::io::write_all(to, held) && to.shutdown_write()) return;
                break;
            }
            if (!got) break;
            held.insert(held.end(), buffer.begin(),
                        buffer.begin() + static_cast<std::ptrdiff_t>(*got));
            if (!misbehave(random)) {
                if (random() % 2 == 0) static_cast<void>(reset.set_reset_on_close(true));
                break;
            }
            if (held.size() < 4000 && random() % 3 == 0 && from.wait_readable(soon())) continue;
            if (!send_in_pieces(to, held, random)) break;
        }
        from.close();
        to.close();
    }

    static weft::time_point soon() {
        return weft::deadline_after(weft::steady_clock_source().now(),
                                    std::chrono::microseconds(200));
    }

    // False: the connection is to be dropped.
    bool misbehave(std::minstd_rand& random) {
        ++pieces_;
        if (how_.drop_one_in != 0 && random() % static_cast<unsigned>(how_.drop_one_in) == 0) {
            ++dropped_;
            return false;
        }
        if (random() % 16 == 0)
            weft::sleep_for(std::chrono::microseconds(random() % 500));  // a stall
        else if (random() % 4 == 0)
            weft::yield();
        return true;
    }

    static bool send_in_pieces(weft::io::tcp_stream& to, std::vector<std::byte>& held,
                               std::minstd_rand& random) {
        std::span<const std::byte> left = held;
        while (!left.empty()) {
            const std::size_t piece = std::min<std::size_t>(left.size(), 1 + random() % 700);
            if (!weft::io::write_all(to, left.first(piece))) return false;
            left = left.subspan(piece);
        }
        held.clear();
        return true;
    }

    const options how_;
    weft::io::tcp_listener listener_ =
        weft::io::tcp_listener::bind(weft::io::address::loopback_ipv4(0)).value();
    std::atomic<int> turn_ = 0;
    std::atomic<long> dropped_ = 0;
    std::atomic<long> pieces_ = 0;
    std::atomic<long> under_way_ = 0;
    std::atomic<long> most_at_once_ = 0;
};

}  // namespace weft_test
