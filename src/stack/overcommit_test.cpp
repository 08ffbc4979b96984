// overcommit_test.cpp - a depot reserves less at a time where reservations are counted.
//
// No test sets vm.overcommit_memory to 2: it is a setting of the whole machine, and under it
// whatever reserves much dies that happens to start in that moment, such as every other test with
// ASan or TSan. That a refused reservation does no harm is in out_of_memory_test.cpp.
//
// SPDX-License-Identifier: Apache-2.0
#include "stack/overcommit.hpp"

#include <sys/mman.h>

#include <fstream>
#include <iterator>
#include <string>

#include <weft/base/sanitizer.hpp>
#include <weft/stack/stack_depot.hpp>

#include "subprocess.hpp"
#include "weft_test.hpp"

using weft::detail::chunk_size_here;
using weft::detail::chunk_size_under;

namespace {

constexpr std::size_t mebibyte = std::size_t{1} << 20;

}  // namespace

WEFT_TEST("overcommit: a whole chunk is reserved where nobody counts it") {
    for (const char* mode : {"0\n", "1\n", "0", "", "20\n", "of the future\n"})
        CHECK(chunk_size_under(mode, 1024 * mebibyte) == 1024 * mebibyte);
}

WEFT_TEST("overcommit: where it is counted no more than 16 MiB are reserved at a time") {
    for (const char* mode : {"2\n", "2"}) {
        CHECK(chunk_size_under(mode, 1024 * mebibyte) == 16 * mebibyte);
        CHECK(chunk_size_under(mode, mebibyte) == mebibyte);
    }
}

WEFT_TEST("overcommit: a depot reserves what this system's mode allows") {
    std::ifstream file("/proc/sys/vm/overcommit_memory");
    const std::string mode{std::istreambuf_iterator<char>(file), {}};
    const std::size_t most = chunk_size_under(mode, 1024 * mebibyte);
    CHECK(chunk_size_here(1024 * mebibyte) == most);
    weft::stack_depot depot;
    depot.give_back(depot.take(weft::default_stack_size()));
    CHECK(depot.counters().reserved_bytes <= most);
    CHECK(depot.counters().mapped == 1);
}

WEFT_TEST("overcommit: no more than 16 MiB are reserved at a time where memory is locked at once") {
    // The sanitizers say yes and lock nothing.
    if (WEFT_ASAN || WEFT_TSAN || weft_test::emulated || ::mlockall(MCL_FUTURE) != 0)
        GTEST_SKIP() << "memory cannot be locked here (RLIMIT_MEMLOCK, or a sanitizer)";
    const std::size_t chunk = chunk_size_here(1024 * mebibyte);
    const std::size_t small_chunk = chunk_size_here(mebibyte);
    ::munlockall();
    CHECK(chunk == 16 * mebibyte);
    CHECK(small_chunk == mebibyte);
}
