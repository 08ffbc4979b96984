// connect_by_name_test.cpp - a connection by a name that has dead addresses, too.
//
// fopen() takes the place of the system's in this program, and gives a table of hosts of our own
// for /etc/hosts when there is one.
//
// SPDX-License-Identifier: Apache-2.0
#include <dlfcn.h>

#include <atomic>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <string>
#include <vector>

#include <weft/io/resolve.hpp>
#include <weft/io/resolver.hpp>
#include <weft/io/tcp.hpp>

#include "dead_address.hpp"
#include "io_support.hpp"
#include "pools.hpp"
#include "temporary_folder.hpp"

using namespace weft;
using namespace std::chrono_literals;
using io::address;
using io::tcp_listener;

namespace {

std::atomic<const char*> hosts = nullptr;

// A name, and its addresses, while it lives.
class named {
public:
    explicit named(const std::vector<std::string>& addresses) {
        std::ofstream file(path_);
        for (const std::string& one : addresses) file << one << " several.invalid\n";
        file.close();
        hosts = path_.c_str();
    }
    named(const named&) = delete;
    named& operator=(const named&) = delete;
    ~named() { hosts = nullptr; }

private:
    const weft_test::temporary_folder folder_;
    const std::string path_ = folder_ / "hosts";
};

std::vector<std::string> loopbacks() { return {"::1", "127.0.0.1", "127.0.0.2"}; }

}  // namespace

extern "C" FILE* fopen(const char* path, const char* mode) {
    static auto* const next =
        reinterpret_cast<FILE* (*)(const char*, const char*)>(::dlsym(RTLD_NEXT, "fopen"));
    const char* const instead = hosts;
    if (instead != nullptr && std::strcmp(path, "/etc/hosts") == 0) path = instead;
    return next(path, mode);
}

POOL_TEST("connect: by a name whose first addresses are dead it comes out at the live one") {
    if (!io::shared_resolver().asks_servers())
        GTEST_SKIP() << "glibc resolves names here (no c-ares, or nsswitch.conf), and reads no "
                        "table of ours";
    const named several(loopbacks());
    for (const std::string& where : loopbacks()) {
        const auto hosts = weft_test::take_port(loopbacks(), where);
        if (hosts.missing)
            GTEST_SKIP() << "127.0.0.2 or ::1 is not there: " << hosts.missing.message();
        const address live = hosts.listener->local_address().value();
        const std::string port = std::to_string(hosts.port);
        std::size_t addresses = 0;
        address reached;
        fiber f(p, options(), [&] {
            addresses = io::resolve("several.invalid", port).value().size();
            const auto stream = io::connect("several.invalid", port, 10s);
            if (stream) reached = stream->peer_address().value();
        });
        f.join();
        CHECK(addresses == 3);
        CHECK(reached == live);
    }
}

POOL_TEST("connect: by a name whose addresses are all dead it says why") {
    if (!io::shared_resolver().asks_servers())
        GTEST_SKIP() << "glibc resolves names here (no c-ares, or nsswitch.conf), and reads no "
                        "table of ours";
    const named several(loopbacks());
    const auto nobody = weft_test::take_port(loopbacks(), "");
    if (nobody.missing)
        GTEST_SKIP() << "127.0.0.2 or ::1 is not there: " << nobody.missing.message();
    const std::string port = std::to_string(nobody.port);
    std::error_code error;
    fiber f(p, options(), [&] { error = io::connect("several.invalid", port, 10s).error(); });
    f.join();
    CHECK(error == std::errc::connection_refused);
}

// A full backlog of 0 does not answer, and refuses nothing.
POOL_TEST("connect: by a name whose first address says nothing it comes out at the live one") {
    if (!io::shared_resolver().asks_servers())
        GTEST_SKIP() << "glibc resolves names here (no c-ares, or nsswitch.conf), and reads no "
                        "table of ours";
    const named several({"127.0.0.1", "127.0.0.2"});
    const auto one = tcp_listener::bind(address("127.0.0.1", 0), {.backlog = 0}).value();
    const std::string port = std::to_string(one.local_address().value().port());
    const auto other =
        tcp_listener::bind(address("127.0.0.2", one.local_address()->port()), {.backlog = 0})
            .value();
    address first;
    address reached;
    std::vector<io::tcp_stream> fillers(1);
    fiber f(p, options(), [&] {
        first = io::resolve("several.invalid", port).value().front();
        fillers[0] = io::tcp_stream::connect(first).value();
        const auto stream = io::connect("several.invalid", port, 1ms);
        if (stream) reached = stream->peer_address().value();
    });
    f.join();
    CHECK(reached == (first == one.local_address().value() ? other : one).local_address().value());
}
