// first_wait_test.cpp - the first wait on an executor, which has to make its reactor, when there is
// no descriptor left to make it of.
//
// SPDX-License-Identifier: Apache-2.0
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <vector>

#include <weft/exec/loop.hpp>
#include <weft/exec/pool.hpp>
#include <weft/io/pipe.hpp>
#include <weft/io/reactor.hpp>
#include <weft/io/tcp.hpp>

#include "io_support.hpp"
#include "loops.hpp"
#include "pools.hpp"
#include "scarce_descriptors.hpp"

using namespace weft;
using weft_test::all_descriptors_taken;

namespace {

// Of a read that would have to wait.
int error_of_a_read(io::pipe_reader& from) {
    std::byte one[1];
    const auto got = from.read_some(one);
    return got ? 0 : got.error().value();
}

}  // namespace

// Each of its own descriptors may be the one that is missing.
MATRIX_TEST("reactor: a first wait without descriptors fails by name, and the next one waits") {
    NEEDS_NO_DESCRIPTOR_OF_UBSAN();
    io::pipe ends = io::pipe::make().value();
    all_descriptors_taken taken;
    int first = 0;
    int second = 0;
    bool read = false;
    spawn([&] { first = error_of_a_read(ends.reader); });
    run();
    CHECK(first == EMFILE);
    taken.give_back(1);
    spawn([&] { second = error_of_a_read(ends.reader); });
    run();
    CHECK(second == EMFILE);
    taken.give_back();
    spawn([&] { read = error_of_a_read(ends.reader) == 0; });
    run_until_blocked();
    CHECK(s.alive() == 1);
    CHECK(::write(ends.writer.native_handle(), "x", 1) == 1);
    run();
    CHECK(read);
}

MATRIX_TEST("reactor: first waits of every kind without descriptors fail by name") {
    NEEDS_NO_DESCRIPTOR_OF_UBSAN();
    auto [here, there] = weft_test::tcp_pair();
    io::pipe ends = io::pipe::make().value();
    const all_descriptors_taken taken;
    std::error_code errors[3];
    std::byte one[1];
    spawn([&, stream = &here] {
        errors[0] = stream->wait_readable().error();
        errors[1] = stream->read_some(one).error();
        errors[2] = io::wait_readable(ends.reader.native_handle()).error();
    });
    run();
    for (const std::error_code& error : errors) CHECK(error == std::errc::too_many_files_open);
}

POOL_TEST("reactor: first waits of a pool without descriptors fail by name, all of them") {
    NEEDS_NO_DESCRIPTOR_OF_UBSAN();
    constexpr int readers = 4;
    std::vector<io::pipe> pipes;
    for (int i = 0; i < readers; ++i) pipes.push_back(io::pipe::make().value());
    std::atomic<int> named = 0;
    std::atomic<int> read = 0;
    // Before descriptors are gone, for what a thread needs to begin.
    fiber begins(p, options(), [] { yield(); });
    begins.join();
    {
        const all_descriptors_taken taken;
        std::vector<fiber> all;
        for (io::pipe& one : pipes)
            all.emplace_back(p, options(), [&, from = &one.reader] {
                named += error_of_a_read(*from) == EMFILE;
            });
        for (fiber& one : all) one.join();
    }
    CHECK(named == readers);
    for (io::pipe& one : pipes)
        spawn([&, from = &one.reader] { read += error_of_a_read(*from) == 0; });
    for (const io::pipe& one : pipes) CHECK(::write(one.writer.native_handle(), "x", 1) == 1);
    p.drain();
    CHECK(read == readers);
}

WEFT_TEST("descriptor: a plain thread that would wait without descriptors is told by name") {
    NEEDS_NO_DESCRIPTOR_OF_UBSAN();
    io::pipe ends = io::pipe::make().value();
    int said = 0;
    {
        const all_descriptors_taken taken;
        said = error_of_a_read(ends.reader);
    }
    CHECK(said == EMFILE);
    CHECK(ends.writer.write_all("x"));
    CHECK(error_of_a_read(ends.reader) == 0);
}

// A reactor has two, and the first that is made may be the last that is to be had.
WEFT_TEST("reactor: one that cannot be made in whole gives back what it has") {
    NEEDS_NO_DESCRIPTOR_OF_UBSAN();
    io::pipe ends = io::pipe::make().value();
    loop s;
    io::choose_reactor(s, io::reactor_kind::io_uring);
    all_descriptors_taken taken;
    taken.give_back(1);
    for (int i = 0; i < 3; ++i) {
        int said = 0;
        go(s, [&] { said = error_of_a_read(ends.reader); });
        s.run();
        CHECK(said == EMFILE);
    }
    taken.give_back(1);
    bool read = false;
    go(s, [&] { read = error_of_a_read(ends.reader) == 0; });
    go(s, [&] { CHECK(ends.writer.write_all("x")); });
    s.run();
    CHECK(read);
}
