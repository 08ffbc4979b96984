// weft_source.hpp - a stack_source of weft as the workload wants it.
//
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <weft/stack/stack.hpp>

#include "cases/stack/workload.hpp"

namespace bench {

/// Calls through the virtual functions, as a coroutine does.
class weft_source {
public:
    explicit weft_source(weft::stack_source& source) : source_(&source) { keep(source_); }

    area take() {
        const weft::stack taken = source_->take(stack_size);
        return {taken.low, taken.size};
    }
    void give_back(const area& a) { source_->give_back({a.low, a.size}); }

private:
    weft::stack_source* source_;
};

}  // namespace bench
