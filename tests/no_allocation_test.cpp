// no_allocation_test.cpp - the hot paths allocate nothing, on any back end.
//
// SPDX-License-Identifier: Apache-2.0
#include <atomic>
#include <cstdlib>
#include <new>

#include <weft/weft.hpp>

#if WEFT_TSAN
#include <sanitizer/allocator_interface.h>
#endif

#include "weft_test.hpp"

namespace {

std::atomic<long> allocations = 0;

#if WEFT_TSAN

// TSan has an operator new of its own, and tells of every allocation.
void count(const volatile void*, std::size_t) {
    allocations.fetch_add(1, std::memory_order_relaxed);
}
void ignore(const volatile void*) {}
[[maybe_unused]] const int hooks = __sanitizer_install_malloc_and_free_hooks(count, ignore);

}  // namespace

#else

void* counted(std::size_t size) {
    allocations.fetch_add(1, std::memory_order_relaxed);
    if (void* memory = std::malloc(size)) return memory;
    throw std::bad_alloc();
}

}  // namespace

void* operator new(std::size_t size) { return counted(size); }
void* operator new[](std::size_t size) { return counted(size); }
void operator delete(void* memory) noexcept { std::free(memory); }
void operator delete[](void* memory) noexcept { std::free(memory); }
void operator delete(void* memory, std::size_t) noexcept { std::free(memory); }
void operator delete[](void* memory, std::size_t) noexcept { std::free(memory); }

#endif

namespace {

using namespace weft;

/// How often operator new is called by f.
template <class F>
long allocations_of(F f) {
    const long before = allocations.load(std::memory_order_relaxed);
    f();
    return allocations.load(std::memory_order_relaxed) - before;
}

template <class Coroutine>
long allocations_of_switches(const coroutine_options& options) {
    const auto endless = [] {
        for (;;) this_coroutine::yield();
    };
    Coroutine a(options, endless);
    Coroutine b(options, endless);
    const auto turns = [&] {
        for (int i = 0; i < 100; ++i) {
            a.resume();
            b.resume();
        }
    };
    turns();  // the first round may: a buffer for each on a shared stack
    return allocations_of(turns);
}

}  // namespace

WEFT_TEST("no allocation: the counter counts") {
    CHECK(allocations_of([] {
              int* volatile kept = new int;  // volatile: or the pair is optimised away
              delete kept;
          }) == 1);
}

WEFT_TEST("no allocation: resume and yield on a stack of its own") {
    CHECK(allocations_of_switches<coroutine>({}) == 0);
}

WEFT_TEST("no allocation: resume and yield on ucontext") {
    CHECK(allocations_of_switches<ucontext_coroutine>({}) == 0);
}

WEFT_TEST("no allocation: resume and yield on threads") {
    thread_cache threads;
    CHECK(allocations_of_switches<thread_coroutine>({.threads = &threads}) == 0);
}

WEFT_TEST("no allocation: resume, copy and yield on a shared stack") {
    shared_stack shared;
    CHECK(allocations_of_switches<swapped_coroutine>({.shared = &shared}) == 0);
}

WEFT_TEST("no allocation: the values of a generator") {
    generator<int> numbers([](auto& yield) {
        for (int i = 0;; ++i) yield(i);
    });
    auto i = numbers.begin();
    CHECK(allocations_of([&] {
              while (*i < 100) ++i;
          }) == 0);
}

WEFT_TEST("no allocation: taking a cached stack and giving it back") {
    stack_cache cache;
    cache.give_back(cache.take(default_stack_size()));
    CHECK(allocations_of([&] { cache.give_back(cache.take(default_stack_size())); }) == 0);
    CHECK(cache.cached() == 1);
}
