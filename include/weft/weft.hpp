// weft.hpp - the whole library in one include.
//
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <weft/base/assert.hpp>
#include <weft/base/clock_source.hpp>
#include <weft/base/errc.hpp>
#include <weft/base/random_source.hpp>
#include <weft/base/version.hpp>
#include <weft/context/context.hpp>
#include <weft/coroutine/coroutine.hpp>
#include <weft/coroutine/fiber_context.hpp>
#include <weft/coroutine/generator.hpp>
#include <weft/coroutine/shared_stack.hpp>
#include <weft/coroutine/thread_cache.hpp>
#include <weft/exec/driver.hpp>
#include <weft/exec/executor.hpp>
#include <weft/exec/loop.hpp>
#include <weft/exec/pool.hpp>
#include <weft/exec/post.hpp>
#include <weft/exec/runnable.hpp>
#include <weft/exec/stuck_report.hpp>
#include <weft/exec/timer_queue.hpp>
#include <weft/fiber/cancel.hpp>
#include <weft/fiber/dump.hpp>
#include <weft/fiber/fiber.hpp>
#include <weft/fiber/fiber_local.hpp>
#include <weft/fiber/go.hpp>
#include <weft/fiber/no_suspend.hpp>
#include <weft/fiber/options.hpp>
#include <weft/fiber/run.hpp>
#include <weft/fiber/suspend.hpp>
#include <weft/fiber/suspend_hook.hpp>
#include <weft/fiber/this_fiber.hpp>
#include <weft/fiber/waiter.hpp>
#include <weft/stack/overflow.hpp>
#include <weft/stack/stack.hpp>
#include <weft/stack/stack_cache.hpp>
#include <weft/stack/stack_depot.hpp>
#include <weft/stack/watermark.hpp>
#include <weft/sync/fair_mutex.hpp>
#include <weft/sync/mutex.hpp>
#include <weft/sync/recursive_mutex.hpp>
#include <weft/sync/scope_exit.hpp>
#include <weft/sync/wait_group.hpp>
