// backtrace_support.hpp - which functions are on the stack, as backtrace() sees it.
//
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <execinfo.h>
#include <unwind.h>

#include <vector>

namespace weft_test {

/// The functions on the stack, innermost first, each by its first address.
inline std::vector<void*> functions_on_the_stack() {
    std::vector<void*> addresses(100);
    const int count = ::backtrace(addresses.data(), static_cast<int>(addresses.size()));
    addresses.resize(static_cast<std::size_t>(count));
    for (void*& address : addresses)
        address = ::_Unwind_FindEnclosingFunction(static_cast<char*>(address) - 1);
    return addresses;
}

}  // namespace weft_test
