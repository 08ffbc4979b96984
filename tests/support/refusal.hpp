// refusal.hpp - mmap, madvise, operator new and others that fail when told to.
//
//     weft_test::refuse.mmap = ENOMEM;
//     ...                                    // every mmap fails
//     weft_test::refuse = {};
//
// They take the place of the system's in the whole program and otherwise do as those do. It belongs
// in one file of a program, and in no build with a sanitizer, which does the same.
//
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <dlfcn.h>
#include <pthread.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <ucontext.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <limits>
#include <new>
#include <vector>

namespace weft_test {

inline constexpr long no_limit = std::numeric_limits<long>::max();

/// What fails, and with which error; 0: it does not.
struct refusals {
    int mmap = 0;
    std::size_t mmap_above = 0;  // only requests for more than that
    int madvise = 0;
    bool madvise_does_nothing = false;
    int mprotect = 0;
    int sigaction = 0;
    int sigaltstack = 0;  // asking which there is does not fail
    int key_create = 0;
    int setspecific = 0;
    int getcontext = 0;
    int pthread_create = 0;
    long allocations_left = no_limit;  // how often operator new still succeeds
};
inline refusals refuse;

inline std::size_t mapped_bytes = 0;            // by mmap, and not yet unmapped
inline std::vector<std::size_t> refused_sizes;  // of the calls of mmap that failed

inline int fail_with(int error) noexcept {
    errno = error;
    return -1;
}

/// The function of the system that ours stands in front of.
template <class Function>
Function* next_of(const char* name) noexcept {
    return reinterpret_cast<Function*>(::dlsym(RTLD_NEXT, name));
}

}  // namespace weft_test

extern "C" {

void* mmap(void* address, std::size_t size, int protection, int flags, int file,
           off_t offset) noexcept {
    if (weft_test::refuse.mmap != 0 && size > weft_test::refuse.mmap_above) {
        weft_test::refused_sizes.push_back(size);
        errno = weft_test::refuse.mmap;
        return MAP_FAILED;
    }
    const long got = ::syscall(SYS_mmap, address, size, protection, flags, file, offset);
    if (got == -1) return MAP_FAILED;
    weft_test::mapped_bytes += size;
    return reinterpret_cast<void*>(got);
}

int munmap(void* address, std::size_t size) noexcept {
    weft_test::mapped_bytes -= size;
    return static_cast<int>(::syscall(SYS_munmap, address, size));
}

int madvise(void* address, std::size_t size, int advice) noexcept {
    if (weft_test::refuse.madvise_does_nothing) return 0;
    if (weft_test::refuse.madvise != 0) return weft_test::fail_with(weft_test::refuse.madvise);
    return static_cast<int>(::syscall(SYS_madvise, address, size, advice));
}

int mprotect(void* address, std::size_t size, int protection) noexcept {
    if (weft_test::refuse.mprotect != 0) return weft_test::fail_with(weft_test::refuse.mprotect);
    return static_cast<int>(::syscall(SYS_mprotect, address, size, protection));
}

int sigaction(int signal, const struct sigaction* action, struct sigaction* before) noexcept {
    if (weft_test::refuse.sigaction != 0) return weft_test::fail_with(weft_test::refuse.sigaction);
    using function = int(int, const struct sigaction*, struct sigaction*) noexcept;
    return weft_test::next_of<function>("sigaction")(signal, action, before);
}

int sigaltstack(const stack_t* wanted, stack_t* before) noexcept {
    if (weft_test::refuse.sigaltstack != 0 && wanted != nullptr)
        return weft_test::fail_with(weft_test::refuse.sigaltstack);
    return weft_test::next_of<decltype(sigaltstack)>("sigaltstack")(wanted, before);
}

int pthread_key_create(pthread_key_t* key, void (*destroy)(void*)) noexcept {
    if (weft_test::refuse.key_create != 0) return weft_test::refuse.key_create;
    return weft_test::next_of<decltype(pthread_key_create)>("pthread_key_create")(key, destroy);
}

int pthread_setspecific(pthread_key_t key, const void* value) noexcept {
    if (weft_test::refuse.setspecific != 0) return weft_test::refuse.setspecific;
    return weft_test::next_of<decltype(pthread_setspecific)>("pthread_setspecific")(key, value);
}

// What the system's writes returns to a frame that is gone: it is for makecontext alone.
int getcontext(ucontext_t* context) noexcept {
    if (weft_test::refuse.getcontext != 0)
        return weft_test::fail_with(weft_test::refuse.getcontext);
    using function = int(ucontext_t*) noexcept;
    return weft_test::next_of<function>("getcontext")(context);
}

int pthread_create(pthread_t* thread, const pthread_attr_t* attributes, void* (*start)(void*),
                   void* argument) noexcept {
    if (weft_test::refuse.pthread_create != 0) return weft_test::refuse.pthread_create;
    return weft_test::next_of<decltype(pthread_create)>("pthread_create")(thread, attributes, start,
                                                                          argument);
}

}  // extern "C"

// noinline: g++ warns of a free() that it sees beside a new.
[[gnu::noinline]] void* operator new(std::size_t size) {
    if (weft_test::refuse.allocations_left == 0) throw std::bad_alloc();
    --weft_test::refuse.allocations_left;
    if (void* memory = std::malloc(size)) return memory;
    throw std::bad_alloc();
}
[[gnu::noinline]] void operator delete(void* memory) noexcept { std::free(memory); }
[[gnu::noinline]] void operator delete(void* memory, std::size_t) noexcept { std::free(memory); }
