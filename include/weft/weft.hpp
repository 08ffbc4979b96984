// weft.hpp - the whole library in one include.
//
// SPDX-License-Identifier: Apache-2.0
#pragma once

// Said here, for otherwise it is the standard library that lacks something.
#if __cplusplus <= 202002L
#error "weft needs C++23: compile with -std=c++23"
#endif

#include <weft/actor/actor_context.hpp>
#include <weft/actor/isolated.hpp>
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
#include <weft/io/address.hpp>
#include <weft/io/blocking.hpp>
#include <weft/io/descriptor.hpp>
#include <weft/io/file.hpp>
#include <weft/io/memory_stream.hpp>
#include <weft/io/pipe.hpp>
#include <weft/io/process.hpp>
#include <weft/io/reactor.hpp>
#include <weft/io/resolve.hpp>
#include <weft/io/resolver.hpp>
#include <weft/io/result.hpp>
#include <weft/io/serve.hpp>
#include <weft/io/serve_limits.hpp>
#include <weft/io/signal_set.hpp>
#include <weft/io/socket.hpp>
#include <weft/io/standard_streams.hpp>
#include <weft/io/stream.hpp>
#include <weft/io/tcp.hpp>
#include <weft/io/udp.hpp>
#include <weft/io/unix.hpp>
#include <weft/scope/algorithms.hpp>
#include <weft/scope/deadline.hpp>
#include <weft/scope/options.hpp>
#include <weft/scope/task_group.hpp>
#include <weft/scope/task_local.hpp>
#include <weft/stack/overflow.hpp>
#include <weft/stack/stack.hpp>
#include <weft/stack/stack_cache.hpp>
#include <weft/stack/stack_depot.hpp>
#include <weft/stack/watermark.hpp>
#include <weft/sync/async.hpp>
#include <weft/sync/barrier.hpp>
#include <weft/sync/channel.hpp>
#include <weft/sync/condition_variable.hpp>
#include <weft/sync/debug.hpp>
#include <weft/sync/event.hpp>
#include <weft/sync/fair_mutex.hpp>
#include <weft/sync/future.hpp>
#include <weft/sync/latch.hpp>
#include <weft/sync/mutex.hpp>
#include <weft/sync/once.hpp>
#include <weft/sync/packaged_task.hpp>
#include <weft/sync/recursive_mutex.hpp>
#include <weft/sync/scope_exit.hpp>
#include <weft/sync/select.hpp>
#include <weft/sync/semaphore.hpp>
#include <weft/sync/shared_mutex.hpp>
#include <weft/sync/wait_group.hpp>
#include <weft/sync/when.hpp>
