// io_support.hpp - what tests of the io part share.
//
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <dirent.h>
#include <poll.h>

#include <cstddef>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <weft/io/pipe.hpp>
#include <weft/io/tcp.hpp>
#include <weft/io/unix.hpp>

#include "weft_test.hpp"

namespace weft_test {

/// How many descriptors this process has open.
inline std::size_t open_descriptors() {
    std::size_t count = 0;
    DIR* const all = ::opendir("/proc/self/fd");
    while (all != nullptr && ::readdir(all) != nullptr) ++count;
    if (all != nullptr) ::closedir(all);
    return count;
}

/// Whether a read of that number would not block now.
inline bool is_readable(int number) {
    pollfd one{.fd = number, .events = POLLIN, .revents = 0};
    return ::poll(&one, 1, 0) == 1;
}

/// Fails the test if more descriptors are open at its end than at its beginning.
class no_descriptor_left {
public:
    no_descriptor_left() = default;
    no_descriptor_left(const no_descriptor_left&) = delete;
    no_descriptor_left& operator=(const no_descriptor_left&) = delete;
    ~no_descriptor_left() { EXPECT_LE(open_descriptors(), before_) << "a descriptor is left"; }

private:
    std::size_t before_ = open_descriptors();
};

inline std::span<const std::byte> bytes(std::string_view text) { return weft::io::bytes_of(text); }

/// A byte that tells its place in a stream.
inline std::byte byte_at(std::size_t place) {
    return static_cast<std::byte>((place * 131 + place / 251) & 0xff);
}

/// Two connected TCP streams over loopback. From a fiber or a thread.
inline std::pair<weft::io::tcp_stream, weft::io::tcp_stream> tcp_pair() {
    using namespace weft::io;
    auto listener = tcp_listener::bind(address::loopback_ipv4(0)).value();
    auto here = tcp_stream::connect(listener.local_address().value()).value();
    auto there = listener.accept().value();
    return {std::move(here), std::move(there)};
}

/// What is read until the end.
template <class Stream>
std::string read_all(Stream& stream, std::size_t at_once = 4096) {
    std::string all;
    std::vector<std::byte> buffer(at_once);
    for (;;) {
        const auto got = stream.read_some(buffer);
        if (!got || *got == 0) return all;
        all.append(reinterpret_cast<const char*>(buffer.data()), *got);
    }
}

}  // namespace weft_test
