// late_support.hpp - destructors that soon list who has not ended, and who reads the list.
//
//     weft_test::late_list list;
//     std::thread helper([&] { list.wait_for("fiber slow"); let it end; });
//     { loop s; ... }                                   // its destructor
//     helper.join();
//
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <string>
#include <string_view>
#include <system_error>

#include "exec/late.hpp"

namespace weft_test {

/// While one lives, loops and pools list the late after a millisecond, and stderr is read here.
class late_list {
public:
    late_list() {
        if (::pipe2(ends_, O_CLOEXEC) != 0)
            throw std::system_error(errno, std::generic_category(), "pipe2");
        stderr_ = ::fcntl(STDERR_FILENO, F_DUPFD_CLOEXEC, 0);
        ::dup2(ends_[1], STDERR_FILENO);
        weft::detail::time_until_late = std::chrono::milliseconds(1);
    }
    late_list(const late_list&) = delete;
    late_list& operator=(const late_list&) = delete;
    ~late_list() {
        weft::detail::time_until_late = before_;
        ::dup2(stderr_, STDERR_FILENO);
        for (const int one : {ends_[0], ends_[1], stderr_}) ::close(one);
    }

    /// Returns when this has been written to stderr; all that was, so far.
    std::string wait_for(std::string_view text) {
        char buffer[4096];
        while (read_.find(text) == read_.npos) {
            const ssize_t got = ::read(ends_[0], buffer, sizeof buffer);
            if (got > 0) read_.append(buffer, static_cast<std::size_t>(got));
            if (got < 0 && errno != EINTR) break;
        }
        return read_;
    }

private:
    int ends_[2];
    int stderr_;
    const std::chrono::nanoseconds before_ = weft::detail::time_until_late;
    std::string read_;
};

}  // namespace weft_test
