// weft.hpp - the whole library in one include.
//
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <weft/base/assert.hpp>
#include <weft/base/version.hpp>
#include <weft/context/context.hpp>
#include <weft/coroutine/coroutine.hpp>
#include <weft/coroutine/fiber_context.hpp>
#include <weft/coroutine/generator.hpp>
#include <weft/coroutine/shared_stack.hpp>
#include <weft/coroutine/thread_cache.hpp>
#include <weft/stack/overflow.hpp>
#include <weft/stack/stack.hpp>
#include <weft/stack/stack_cache.hpp>
#include <weft/stack/stack_depot.hpp>
#include <weft/stack/watermark.hpp>
