// io_uring_submit_test.cpp - a kernel that takes no submissions for a while.
//
// io_uring_submit() takes the place of liburing's in this program, and fails as often as it is
// told to.
//
// SPDX-License-Identifier: Apache-2.0
#include <dlfcn.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <thread>

#include <weft/exec/loop.hpp>
#include <weft/fiber/go.hpp>
#include <weft/io/pipe.hpp>
#include <weft/io/reactor.hpp>

#include "io_support.hpp"
#include "io_uring_support.hpp"

struct io_uring;

using namespace weft;

namespace {

std::atomic<int> refusals = 0;

}  // namespace

extern "C" int io_uring_submit(struct io_uring* ring) {
    static auto* const next =
        reinterpret_cast<int (*)(struct io_uring*)>(::dlsym(RTLD_NEXT, "io_uring_submit"));
    if (refusals > 0) {
        --refusals;
        return -ENOMEM;
    }
    return next(ring);
}

WEFT_TEST("reactor: what io_uring takes no memory for is submitted again, and nobody sleeps on") {
    NEEDS_IO_URING();
    ::alarm(60);  // instead of for ever
    loop s;
    io::choose_reactor(s, io::reactor_kind::io_uring);
    io::pipe ends = io::pipe::make().value();
    std::atomic<bool> begun = false;
    bool read = false;
    go(s, [&] {
        refusals = 5;
        begun = true;
        std::byte some[8];
        read = ends.reader.read_some(some).value_or(0) == 1;
    });
    std::thread writer([&] {
        while (!begun || refusals > 3) std::this_thread::yield();
        CHECK(::write(ends.writer.native_handle(), "x", 1) == 1);
    });
    s.run();
    writer.join();
    ::alarm(0);
    CHECK(read);
    CHECK(refusals == 0);
}
