// moving_test.cpp - descriptors whose first wait on another executor moves them there.
//
// The executor that they come from may be gone, and whoever moves them is not alone: others wait
// there for the first time as well, or close it.
//
// SPDX-License-Identifier: Apache-2.0
#include <sys/socket.h>
#include <unistd.h>

#include <atomic>
#include <string_view>
#include <thread>

#include <weft/exec/loop.hpp>
#include <weft/exec/pool.hpp>
#include <weft/fiber/fiber.hpp>
#include <weft/fiber/go.hpp>
#include <weft/io/unix.hpp>

#include "backends.hpp"
#include "io_support.hpp"
#include "test_points.hpp"

using namespace weft;

namespace {

// A stream that has waited on a loop that is gone: nothing can be read from it, or written to it.
class left_stream {
public:
    left_stream() : left_stream(io::unix_stream::pair().value()) {
        loop s;
        go(s, [this] {
            std::byte some[8];
            CHECK(here.read_some(some));
        });
        s.run_until_blocked();
        let_read();
        s.run();
        std::byte much[4096]{};
        while (::send(here.native_handle(), much, sizeof much, MSG_DONTWAIT) > 0) {}
    }
    void let_read() { CHECK(::write(there.native_handle(), "x", 1) == 1); }
    void let_write() {
        std::byte much[4096];
        while (::recv(there.native_handle(), much, sizeof much, MSG_DONTWAIT) > 0) {}
    }

    io::unix_stream here;
    io::unix_stream there;

private:
    explicit left_stream(std::pair<io::unix_stream, io::unix_stream> ends)
        : here(std::move(ends.first)), there(std::move(ends.second)) {}
};

[[maybe_unused]] void wait_until_one(const pool& where, std::string_view does) {
    for (bool found = false; !found; std::this_thread::yield())
        where.describe([&](std::string_view line) { found = found || line.contains(does); });
}

}  // namespace

#if defined(WEFT_CHECKS) && WEFT_CHECKS
// The reader knows the watch of the loop that is gone when the writer moves the stream.
WEFT_TEST("descriptor: moved by one from an executor that is gone while another looks there") {
    const weft_test::no_descriptor_left left;
    left_stream stream;
    pool p({.workers = 2});
    const std::size_t before = weft_test::open_descriptors();
    const weft_test::hold_at reader_is_held("watched: known, not looked at");
    fiber reader(p, {.worker = 0}, [&] {
        std::byte some[8];
        CHECK(stream.here.read_some(some));
    });
    weft_test::hold_at::wait_until_held();
    fiber writer(p, {.worker = 1}, [&] { CHECK(stream.here.write_all("x")); });
    wait_until_one(p, "waits to write");
    stream.let_write();
    writer.join();
    const std::size_t meanwhile = weft_test::open_descriptors();
    CHECK(meanwhile > before);  // the loop's reactor is still there, and a worker's
    weft_test::hold_at::let_go();
    stream.let_read();
    reader.join();
    CHECK(weft_test::open_descriptors() == meanwhile);  // another worker's instead of the loop's
}

// It was at home on the first loop, and has gone to the second when the reader there is to be
// listed: nothing would ever wake him.
WEFT_TEST("descriptor: moved under one who begins to wait, and then waited for, aborts by name") {
    weft_test::allow_threads_in_death_tests();
    const auto body = [] {
        ::alarm(30);  // instead of for ever
        auto [here, there] = io::unix_stream::pair().value();
        const auto read = [stream = &here] {
            std::byte some[8];
            static_cast<void>(stream->read_some(some));
        };
        loop first;
        go(first, read);
        first.run_until_blocked();
        CHECK(::write(there.native_handle(), "x", 1) == 1);
        first.run();
        const weft_test::hold_at reader_is_held("watched: at home, not listed");
        std::thread beside([&] {
            go(first, read);
            first.run();
        });
        weft_test::hold_at::wait_until_held();
        loop second;
        go(second, read);
        second.run_until_blocked();
        weft_test::hold_at::let_go();
        beside.join();
    };
    EXPECT_DEATH(body(), "used on another executor while somebody waits");
}
#endif

WEFT_TEST("descriptor: stress, closed while its first wait on a second loop moves it") {
    const weft_test::with_test_points points;
    const weft_test::no_descriptor_left left;
    const long rounds = weft_test::stress_count(50'000);
    std::atomic<int> wrong = 0;
    for (long i = 0; i < rounds; ++i) {
        left_stream stream;
        std::atomic<bool> begun = false;
        std::thread second([&] {
            loop s;
            go(s, [&] {
                std::byte some[8];
                begun = true;
                wrong += stream.here.read_some(some).error() != errc::closed;
            });
            s.run();
        });
        while (!begun) std::this_thread::yield();
        for (long spins = i % 16 * 200; spins > 0; --spins) begun = true;
        stream.here.close();
        second.join();
    }
    CHECK(wrong == 0);
}
