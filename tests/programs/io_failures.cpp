// io_failures.cpp - connections when the i-th allocation fails, for every i.
//
// The program has its own operator new, which fails when told to. Over and over one connects and
// one accepts, with the first allocation failing, then the second, until one time none fails.
// connect() says that there is no memory and succeeds when it is tried again; accept() pauses and
// goes on. No descriptor may be left.
//
// Then a server stops while its handlers wait, again with the i-th allocation failing from there
// on: it must not return before they have ended. Says "right" and ends with status 0 if everything
// was; TSan has an operator new of its own, so there it says "not here".
//
// SPDX-License-Identifier: Apache-2.0
#include <weft/weft.hpp>

#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <iterator>
#include <new>
#include <utility>

#include "program_support.hpp"

#if !WEFT_TSAN

namespace {

long fuse = 0;  // the allocation that fails; 0: none

void* allocate(std::size_t size, std::size_t alignment) noexcept {
    if (fuse > 0 && --fuse == 0) return nullptr;
    return std::aligned_alloc(alignment, (size + alignment - 1) / alignment * alignment);
}

void* or_throw(void* memory) { return memory != nullptr ? memory : throw std::bad_alloc(); }

}  // namespace

void* operator new(std::size_t size) { return or_throw(allocate(size, 16)); }
void* operator new(std::size_t size, const std::nothrow_t&) noexcept { return allocate(size, 16); }
void* operator new(std::size_t size, std::align_val_t alignment) {
    return or_throw(allocate(size, static_cast<std::size_t>(alignment)));
}
void* operator new(std::size_t size, std::align_val_t alignment, const std::nothrow_t&) noexcept {
    return allocate(size, static_cast<std::size_t>(alignment));
}
void operator delete(void* memory) noexcept { std::free(memory); }
void operator delete(void* memory, std::size_t) noexcept { std::free(memory); }
void operator delete(void* memory, std::align_val_t) noexcept { std::free(memory); }
void operator delete(void* memory, std::size_t, std::align_val_t) noexcept { std::free(memory); }

namespace {

using namespace weft;
using namespace std::chrono_literals;
using weft_test::require;

std::ptrdiff_t descriptors() {
    return std::distance(std::filesystem::directory_iterator("/proc/self/fd"), {});
}

// What one conversation met.
struct failures {
    long connects = 0;
    std::uint64_t pauses = 0;
    bool is_used_up = false;
};

failures converse(long failing) {
    failures met;
    loop s;
    auto listener = io::tcp_listener::bind(io::address::loopback_ipv4(0), {.pause = 1ms}).value();
    const io::address where = listener.local_address().value();
    go(s, [&] {
        for (bool served = false; !served;) {
            auto peer = listener.accept();
            require(peer.has_value());
            std::byte got[1];
            served = peer->read_exactly(got) && peer->write_all("y");
        }
    });
    go(s, [&] {
        fuse = failing;
        for (bool served = false; !served;) {
            auto peer = io::tcp_stream::connect(where);
            if (!peer) {
                require(peer.error() == std::errc::not_enough_memory);
                ++met.connects;
                continue;
            }
            std::byte got[1];
            served = peer->write_all("x") && peer->read_exactly(got);
        }
    });
    require(!s.run());
    met.is_used_up = fuse == 0;
    fuse = 0;
    met.pauses = listener.pauses();
    return met;
}

// Accepts three; when all handlers have begun, allocations are to fail.
struct last_listener {
    io::result<io::unix_stream> accept() {
        if (accepted++ == 3) {
            while (begun < 3) yield();
            fuse = failing;
            return std::unexpected(make_error_code(errc::closed));
        }
        return std::move(io::unix_stream::pair().value().first);
    }
    const long failing;
    const int& begun;
    int accepted = 0;
};

// Whether so many allocations are made.
bool stop_a_server(long failing, stack_kind kind) {
    loop s({.unhandled = [](std::exception_ptr, runnable&) {}});
    int begun = 0;
    last_listener listener{failing, begun};
    int ended = 0;
    go(s, {.kind = kind}, [&] {
        try {
            io::serve(listener,
                      [&](io::connection<io::unix_stream>&) {
                          ++begun;
                          require(!sleep_for(1h));
                          ++ended;
                      },
                      {.grace = 1ms, .fiber = {.kind = kind}});
        } catch (const std::bad_alloc&) {}
        require(begun == ended);
    });
    require(!s.run());
    require(begun == 3);
    return std::exchange(fuse, 0) == 0;
}

}  // namespace

int main() {
    for (const stack_kind kind : {stack_kind::own, stack_kind::swapped})
        for (long i = 0; stop_a_server(i, kind); ++i) require(i < 1000);

    static_cast<void>(converse(0));  // what is made once is there
    const std::ptrdiff_t before = descriptors();
    failures all;
    for (long i = 1;; ++i) {
        require(i < 1000);
        const failures met = converse(i);
        require(descriptors() == before);
        all.connects += met.connects;
        all.pauses += met.pauses;
        if (!met.is_used_up) break;
    }
    require(all.connects > 0);
    require(all.pauses > 0);
    std::puts("right");
}

#else

int main() { std::puts("not here: TSan has its own operator new"); }

#endif
