// sync_failures.cpp - channels, select and futures when the i-th allocation fails, for every i.
//
//     sync_failures CASE
//
// The program has its own operator new, which fails when told to. Each case does something over and
// over, with the first allocation failing, then the second, until one time none fails. What failed
// must have changed nothing, and must succeed when it is tried again. Says "right" and ends with
// status 0 if everything was; TSan has an operator new of its own, so there it says "not here".
//
// SPDX-License-Identifier: Apache-2.0
#include <weft/weft.hpp>

#include <cstdio>
#include <cstdlib>
#include <memory>
#include <new>
#include <string_view>
#include <vector>

#include <weft/sync/async.hpp>
#include <weft/sync/packaged_task.hpp>
#include <weft/sync/select.hpp>
#include <weft/sync/when.hpp>

#include "program_support.hpp"

#if !WEFT_TSAN

namespace {

long fuse = 0;  // the allocation that fails; 0: none
// Among those of channels alone, which are aligned or arrays: a swapped fiber needs buffers, too,
// on behalf of others, and what happens if it gets none is not the question here.
bool ours_only = false;

void* allocate(std::size_t size, std::size_t alignment, bool ours) {
    if (fuse > 0 && (ours || !ours_only) && --fuse == 0) throw std::bad_alloc();
    const std::size_t whole = (size + alignment - 1) / alignment * alignment;
    if (void* memory = std::aligned_alloc(alignment, whole)) return memory;
    throw std::bad_alloc();
}

}  // namespace

void* operator new(std::size_t size) { return allocate(size, 16, false); }
void* operator new[](std::size_t size) { return allocate(size, 16, true); }
void* operator new(std::size_t size, std::align_val_t alignment) {
    return allocate(size, static_cast<std::size_t>(alignment), true);
}
void operator delete(void* memory) noexcept { std::free(memory); }
void operator delete[](void* memory) noexcept { std::free(memory); }
void operator delete(void* memory, std::size_t) noexcept { std::free(memory); }
void operator delete[](void* memory, std::size_t) noexcept { std::free(memory); }
void operator delete(void* memory, std::align_val_t) noexcept { std::free(memory); }
void operator delete(void* memory, std::size_t, std::align_val_t) noexcept { std::free(memory); }

namespace {

using namespace weft;
using weft_test::require;
using boxed = std::unique_ptr<int>;

/// play() until none of its allocations fails. It returns whether one did.
template <class Play>
void with_each_failing(Play play) {
    for (long i = 1;; ++i) {
        require(i < 1000);
        if (!play(i)) break;
    }
    fuse = 0;
}

/// What f does, again if its memory cannot be had; whether that happened.
template <class F>
bool again_if_refused(F f) {
    try {
        f();
        return false;
    } catch (const std::bad_alloc&) {
        fuse = 0;
        f();
        return true;
    }
}

void sends(stack_kind kind, std::size_t capacity) {
    ours_only = kind == stack_kind::swapped;
    with_each_failing([&](long i) {
        loop s({.external_wakes = false});
        channel<boxed> c(capacity);
        boxed items[40];
        for (boxed& one : items) one = std::make_unique<int>(1);
        bool refused = false;
        int sum = 0;
        go(s, {.kind = kind}, [&] {
            fuse = i;
            for (boxed& one : items)
                refused |= again_if_refused([&] {
                    require(one != nullptr);  // what was not sent is still there
                    require(c.send(std::move(one)).has_value());
                    require(one == nullptr);
                });
            c.close();
        });
        go(s, {.kind = kind}, [&] {
            const auto add = [&] {
                for (;;) {
                    const auto item = c.receive();
                    if (!item) break;
                    sum += **item;
                }
            };
            while (again_if_refused(add)) refused = true;
        });
        s.run();
        require(sum == 40);
        return refused;
    });
}

void selects(stack_kind kind) {
    ours_only = kind == stack_kind::swapped;
    with_each_failing([&](long i) {
        loop s({.external_wakes = false});
        channel<boxed> a;
        channel<boxed> b;
        bool refused = false;
        int sum = 0;
        go(s, {.kind = kind}, [&] {
            fuse = i;
            for (int n = 0; n < 10; ++n) {
                if (fuse != 0 && !ours_only) ++fuse;  // not this one
                boxed item = std::make_unique<int>(1);
                refused |= again_if_refused([&] {
                    require(item != nullptr);
                    require(select(on_send(a, std::move(item), [](auto) {}),
                                   on_receive(b, [](auto&&) {}))
                                .has_value());
                });
            }
        });
        go(s, {.kind = kind}, [&] {
            for (int n = 0; n < 10; ++n)
                refused |= again_if_refused([&] {
                    auto receives = on_receive(a, [&](auto&& item) { sum += **item; });
                    auto idles = on_receive(b, [](auto&& item) { static_cast<void>(item); });
                    std::vector<select_case*> cases{&receives, &idles};
                    require(select(cases).has_value());
                });
        });
        s.run();
        require(sum == 10);
        return refused;
    });
}

void futures() {
    with_each_failing([](long i) {
        loop s({.external_wakes = false});
        fuse = i;
        int got = 0;
        const bool refused = again_if_refused([&] {
            packaged_task<int()> task([] { return 4; });
            auto lazy = async(launch::deferred, [] { return 2; });
            future<int> early = task.get_future();
            task();
            auto all = when_all(std::move(lazy), std::move(early));
            auto started = async(s, [&] { return 1; });
            // What is started must run, whatever else fails.
            fuse = 0;
            s.run();
            auto [x, y] = all.get();
            got = x.get() + y.get() + started.get();
        });
        require(got == 7);
        s.run();
        return refused;
    });
}

}  // namespace

int main(int argc, char** argv) {
    require(argc == 2);
    const std::string_view name = argv[1];
    using enum stack_kind;
    if (name == "sends")
        for (const stack_kind kind : {own, swapped})
            for (const std::size_t capacity : {0U, 1U, 20U, 200U}) sends(kind, capacity);
    else if (name == "selects")
        for (const stack_kind kind : {own, swapped}) selects(kind);
    else if (name == "futures")
        futures();
    else
        require(false);
    std::puts("right");
}

#else

int main() { std::puts("not here"); }

#endif
