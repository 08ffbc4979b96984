// no_prefetch.hpp - included first, it takes every prefetch out: to see what they are worth.
//
// SPDX-License-Identifier: Apache-2.0
#pragma once

#define __builtin_prefetch(...) static_cast<void>(0)
