// no_prefetch.hpp - included first, it takes every prefetch out: to see what they are worth.
//
// SPDX-License-Identifier: Apache-2.0
#pragma once

// The address is still named, or a parameter for it alone would be unused.
#define __builtin_prefetch(address, ...) static_cast<void>(address)
