// io_uring_support.hpp - whether tests that want io_uring get it, and if not, why.
//
// A kernel that refuses io_uring leaves them to epoll, where they would pass and say nothing of
// io_uring. So they are skipped, with the kernel's reason; and if the kernel, asked without us,
// does all that our reactor needs, a refusal is our own, and a failure.
//
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>
#include <system_error>

#include <weft/io/reactor.hpp>

#include "weft_test.hpp"

namespace weft_test {

/// What the kernel says if it is asked for a ring like ours: "", or why there is none. By system
/// calls alone, for liburing may be what is wrong.
inline std::string kernel_refuses_io_uring() {
#if defined(SYS_io_uring_setup) && defined(SYS_io_uring_register)
    struct {  // io_uring_params
        std::uint32_t entries, reports, flags, cpu, idle, features, shared, reserved[3];
        std::uint64_t offsets[10];
    } asked{};
    constexpr std::uint32_t reports_size = 1 << 3, clamp = 1 << 4, all = 1 << 7, wait = 1 << 8,
                            flag = 1 << 9;
    asked.flags = reports_size | clamp | all | wait | flag;
    asked.reports = 4096;
    const long ring = ::syscall(SYS_io_uring_setup, 64, &asked);
    if (ring < 0) return "io_uring_setup: " + std::generic_category().message(errno);
    // Cancelling at once what is not there.
    struct {  // io_uring_sync_cancel_reg
        std::uint64_t key = ~std::uint64_t{1};
        std::int32_t number = -1;
        std::uint32_t flags = 0;
        std::int64_t seconds = -1, nanoseconds = -1;
        std::uint64_t reserved[4] = {};
    } cancelled;
    constexpr unsigned sync_cancel = 24;
    const long said = ::syscall(SYS_io_uring_register, ring, sync_cancel, &cancelled, 1);
    const int error = errno;
    ::close(static_cast<int>(ring));
    if (said >= 0 || error != ENOENT)
        return "io_uring_register: " + std::generic_category().message(error);
    constexpr std::uint32_t no_drop = 1 << 1, timeouts = 1 << 8, skips = 1 << 11;
    if ((asked.features & (no_drop | timeouts | skips)) != (no_drop | timeouts | skips))
        return "an old kernel's io_uring";
    return "";
#else
    return "no io_uring on this system";
#endif
}

/// Whether the library was built with it.
#if defined(WEFT_TEST_IO_URING) && WEFT_TEST_IO_URING
inline constexpr bool built_with_io_uring = true;
#else
inline constexpr bool built_with_io_uring = false;
#endif

/// For the test that runs: it is skipped, or fails, where there is no io_uring.
inline void need_io_uring() {
    if (weft::io::is_available(weft::io::reactor_kind::io_uring)) return;
    if (!built_with_io_uring) GTEST_SKIP() << "no io_uring here: built without liburing";
    const std::string reason = kernel_refuses_io_uring();
    if (!reason.empty()) GTEST_SKIP() << "no io_uring here: " << reason;
    FAIL() << "the kernel gives us io_uring, and the library does not take it";
}

/// The same if the environment says that all tests are to run with it.
inline void need_what_is_asked_for() {
    const char* const asked = std::getenv("WEFT_REACTOR");
    if (asked != nullptr && std::string_view(asked) == "io_uring") need_io_uring();
}

}  // namespace weft_test

/// Ends the test where there is none.
#define NEEDS_IO_URING()        \
    weft_test::need_io_uring(); \
    if (testing::Test::IsSkipped() || testing::Test::HasFatalFailure()) return
