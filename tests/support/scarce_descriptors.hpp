// scarce_descriptors.hpp - a process that has no descriptor left.
//
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fcntl.h>
#include <sys/resource.h>
#include <unistd.h>

#include <vector>

#include "io_support.hpp"

// UBSan reads a vptr that it has not met by way of a pipe(2) of its own, and takes it for a wrong
// one if there is none to be had.
#define NEEDS_NO_DESCRIPTOR_OF_UBSAN() \
    if (WEFT_ASAN) GTEST_SKIP() << "UBSan checks types by pipe(2), and this leaves no descriptor"

namespace weft_test {

/// Fills the descriptors of this process up to its limit while it lives.
class all_descriptors_taken {
public:
    all_descriptors_taken() {
        ::getrlimit(RLIMIT_NOFILE, &before_);
        rlimit few = before_;
        few.rlim_cur = open_descriptors() + 16;
        ::setrlimit(RLIMIT_NOFILE, &few);
        int number = 0;
        while ((number = ::open("/dev/null", O_RDONLY | O_CLOEXEC)) >= 0) taken_.push_back(number);
    }
    all_descriptors_taken(const all_descriptors_taken&) = delete;
    all_descriptors_taken& operator=(const all_descriptors_taken&) = delete;
    ~all_descriptors_taken() {
        give_back();
        ::setrlimit(RLIMIT_NOFILE, &before_);
    }
    void give_back() {
        for (const int number : taken_) ::close(number);
        taken_.clear();
    }
    /// So many are free from now on.
    void give_back(int count) {
        for (; count > 0 && !taken_.empty(); --count) {
            ::close(taken_.back());
            taken_.pop_back();
        }
    }

private:
    rlimit before_{};
    std::vector<int> taken_;
};

}  // namespace weft_test
