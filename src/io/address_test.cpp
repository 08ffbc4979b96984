// address_test.cpp - what is an address, and how it reads.
//
// SPDX-License-Identifier: Apache-2.0
#include <weft/io/address.hpp>

#include <sys/socket.h>

#include "weft_test.hpp"

using namespace weft;
using io::address;
using io::address_family;

WEFT_TEST("address: what is parsed reads as it was written") {
    for (const char* text : {"127.0.0.1:80", "0.0.0.0:0", "[::1]:65535", "[fe80::1%1]:9"}) {
        const auto parsed = address::parse(text);
        REQUIRE(parsed);
        CHECK(parsed->to_string() == text);
    }
    const address one("10.1.2.3", 443);
    CHECK(one.family() == address_family::ipv4);
    CHECK(one.host() == "10.1.2.3");
    CHECK(one.port() == 443);
    CHECK(one == address::parse("10.1.2.3:443").value());
    CHECK(one != address("10.1.2.3", 444));
    CHECK(one.with_port(444) == address("10.1.2.3", 444));
    CHECK(address::loopback_ipv6(5).with_port(6).to_string() == "[::1]:6");
    CHECK(address::any_ipv4(7).to_string() == "0.0.0.0:7");
    CHECK(address::any_ipv6(7).to_string() == "[::]:7");
}

WEFT_TEST("address: what is none is refused, by name") {
    for (const char* text : {"", ":", "127.0.0.1", "127.0.0.1:", "127.0.0.1:65536", "127.0.0.1:-1",
                             "127.0.0.1:8x", "::1:80", "[127.0.0.1]:80", "[::1]", "localhost:80",
                             "[::1%nowhere]:80", "256.0.0.1:80", "[]:1", "[::1:80"}) {
        const auto parsed = address::parse(text);
        EXPECT_TRUE(!parsed && parsed.error() == std::errc::invalid_argument) << text;
    }
    EXPECT_THROW(address("localhost", 80), std::system_error);
    CHECK(address::parse(std::string(300, '1'), 80).error() == std::errc::invalid_argument);
    CHECK(address::parse(std::string_view("1.2.3.4\0x", 9), 80).error() ==
          std::errc::invalid_argument);
}

WEFT_TEST("address: a local one is a path, or a name outside of the file system") {
    const auto path = address::local("/tmp/x").value();
    CHECK(path.family() == address_family::local);
    CHECK(path.to_string() == "/tmp/x");
    CHECK(path.port() == 0);
    CHECK(path.with_port(5) == path);
    const auto abstract = address::local(std::string_view("\0weft", 5)).value();
    CHECK(abstract.to_string() == "@weft");
    CHECK(address::local("").error() == std::errc::invalid_argument);
    CHECK(address::local(std::string_view("a\0b", 3)).error() == std::errc::invalid_argument);
    CHECK(address::local(std::string(108, 'x')).error() == std::errc::filename_too_long);
    CHECK(address::local(std::string(107, 'x')).has_value());
}

WEFT_TEST("address: none is none") {
    const address none;
    CHECK(none.family() == address_family::none);
    CHECK(none.to_string().empty());
    CHECK(none == address());
    CHECK(none.with_port(3) == none);
    const sockaddr_storage other{.ss_family = AF_APPLETALK, .__ss_padding = {}, .__ss_align = 0};
    CHECK(address::from_system(&other, sizeof(sockaddr)).error() ==
          std::errc::address_family_not_supported);
    CHECK(address::from_system(&other, 1).error() == std::errc::invalid_argument);
    CHECK(address::from_system(&other, sizeof other).error() == std::errc::invalid_argument);
}
