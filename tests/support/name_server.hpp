// name_server.hpp - a name server on loopback, on a thread of its own, that answers as it is told.
//
//     weft_test::name_server server;
//     server.ttl = 60;
//     io::resolver names({.servers = {server.where()}});
//
// The first label of a name says what comes:
//
//     one    A 192.0.2.1                        four   A, four of them
//     both   A 192.0.2.1, AAAA 2001:db8::1      alias  CNAME with a TTL of 5, then as one
//     none   no such name                       empty  no address
//     wrong  the server says that it failed     mute   nothing at all
//     late   nothing to the first two questions, then as one
//     local  A 127.0.0.1 and 127.0.0.2, AAAA ::1
//     cut    that the answer is too long, and to be asked for by TCP
//
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <arpa/inet.h>

#include <array>
#include <atomic>
#include <cstring>
#include <initializer_list>
#include <string>
#include <thread>
#include <vector>

#include <weft/io/udp.hpp>

namespace weft_test {

class name_server {
public:
    name_server()
        : socket_(weft::io::udp_socket::bind(weft::io::address::loopback_ipv4(0)).value()),
          where_(socket_.local_address().value()),
          thread_([this] { serve(); }) {}
    name_server(const name_server&) = delete;
    name_server& operator=(const name_server&) = delete;
    ~name_server() {
        socket_.close();
        thread_.join();
    }

    [[nodiscard]] weft::io::address where() const { return where_; }

    std::atomic<std::uint32_t> ttl = 60;  // of what it answers
    std::atomic<unsigned> questions = 0;  // how many came
    std::atomic<unsigned> unheard = 2;    // questions for `late` that get no answer

private:
    using bytes = std::vector<unsigned char>;
    enum type : std::uint16_t { a = 1, cname = 5, aaaa = 28 };

    static void put16(bytes& to, unsigned value) {
        to.push_back(static_cast<unsigned char>(value >> 8));
        to.push_back(static_cast<unsigned char>(value));
    }
    static void put32(bytes& to, std::uint32_t value) {
        put16(to, value >> 16);
        put16(to, value & 0xffff);
    }

    void serve() {
        std::array<std::byte, 512> buffer;
        while (const auto got = socket_.receive(buffer)) {
            ++questions;
            bytes question(got->size);
            std::memcpy(question.data(), buffer.data(), got->size);
            const bytes reply = answer(question);
            if (!reply.empty())
                static_cast<void>(socket_.send_to(std::as_bytes(std::span(reply)), got->from));
        }
    }

    // A record for the name that stands at that place.
    static void put_record(bytes& to, std::size_t name, type what, std::uint32_t holds,
                           const bytes& data) {
        put16(to, 0xc000U | static_cast<unsigned>(name));
        put16(to, what);
        put16(to, 1);
        put32(to, holds);
        put16(to, static_cast<unsigned>(data.size()));
        to.insert(to.end(), data.begin(), data.end());
        ++to[7];  // one answer more
    }

    [[nodiscard]] bytes answer(const bytes& question) {
        std::size_t end = 12;
        while (end < question.size() && question[end] != 0) end += question[end] + 1U;
        if (end + 5 > question.size()) return {};
        const std::string label(reinterpret_cast<const char*>(&question[13]), question[12]);
        const unsigned asked = question[end + 1] * 256U + question[end + 2];
        bytes reply(question.begin(), question.begin() + static_cast<std::ptrdiff_t>(end) + 5);
        reply[2] = 0x85;  // an answer, by one who knows
        reply[3] = 0x80;
        for (std::size_t i = 6; i < 12; ++i) reply[i] = 0;
        if (label == "mute") return {};
        if (label == "late" && unheard != 0) return --unheard, bytes();
        if (label == "none") reply[3] |= 3;
        if (label == "wrong") reply[3] |= 2;
        if (label == "cut") reply[2] |= 2;
        if (label == "none" || label == "wrong" || label == "empty" || label == "cut") return reply;
        std::size_t name = 12;
        if (label == "alias") {
            put_record(reply, name, cname, 5, {3, 'o', 'n', 'e', 0xc0, 0x12});
            name = reply.size() - 6;
        }
        const bool local = label == "local";
        const int count = label == "four" ? 4 : local ? 2 : 1;
        for (int i = 1; i <= count && asked == a; ++i) {
            bytes number{192, 0, 2, static_cast<unsigned char>(i)};
            if (local) number = {127, 0, 0, static_cast<unsigned char>(i)};
            put_record(reply, name, a, ttl, number);
        }
        if (asked == aaaa && (label == "both" || local)) {
            bytes number;
            if (!local) number = {0x20, 0x01, 0x0d, 0xb8};
            number.resize(16);
            number[15] = 1;
            put_record(reply, name, aaaa, ttl, number);
        }
        return reply;
    }

    weft::io::udp_socket socket_;
    const weft::io::address where_;
    std::thread thread_;
};

}  // namespace weft_test
