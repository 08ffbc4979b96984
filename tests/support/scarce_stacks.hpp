// scarce_stacks.hpp - a source that has so many stacks and no more.
//
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <new>

#include <weft/stack/stack_depot.hpp>

namespace weft_test {

/// Thread-safe: no.
struct scarce_stacks final : weft::stack_source {
    explicit scarce_stacks(int count) : left(count) {}
    weft::stack take(std::size_t size) override {
        if (left == 0) throw std::bad_alloc();
        --left;
        return weft::shared_stacks().take(size);
    }
    void give_back(weft::stack used) noexcept override {
        ++left;
        weft::shared_stacks().give_back(used);
    }
    int left;
};

}  // namespace weft_test
