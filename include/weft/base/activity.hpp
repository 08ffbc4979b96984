// activity.hpp - what runs on a thread right now, as far as a report needs to know it.
//
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>

#include <weft/base/version.hpp>

namespace weft::inline v0::detail {

struct activity {
    const char* kind = "";  // "coroutine", "fiber"
    const char* name = "";
    bool is_coroutine = false;  // whether it can yield to a resumer
    std::byte* stack_low = nullptr;
    std::size_t stack_size = 0;
};

}  // namespace weft::inline v0::detail
