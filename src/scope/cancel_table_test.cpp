// cancel_table_test.cpp - everything in sync that waits, cancelled while it waits.
//
// A row for each contract line that says "Cancel: throws" or "Cancel: reported"; the script
// tests/scripts/cancel_table.py fails if a header has more of them than there are rows for it.
//
// SPDX-License-Identifier: Apache-2.0
#include <mutex>
#include <string>

#include <weft/scope/task_group.hpp>
#include <weft/sync/barrier.hpp>
#include <weft/sync/channel.hpp>
#include <weft/sync/condition_variable.hpp>
#include <weft/sync/event.hpp>
#include <weft/sync/fair_mutex.hpp>
#include <weft/sync/future.hpp>
#include <weft/sync/latch.hpp>
#include <weft/sync/mutex.hpp>
#include <weft/sync/recursive_mutex.hpp>
#include <weft/sync/select.hpp>
#include <weft/sync/semaphore.hpp>
#include <weft/sync/shared_mutex.hpp>
#include <weft/sync/wait_group.hpp>

#include "loops.hpp"

using namespace weft;
using namespace std::chrono_literals;

namespace {

enum class says { throws, reports };

// Nothing here ever happens, and every lock is held by another.
struct world {
    event never;
    latch closed{1};
    barrier<> at{100};
    wait_group work{1};
    counting_semaphore<> permits{0};
    mutex guard;
    condition_variable changed;
    condition_variable_any changed_any;
    promise<int> given;
    future<int> awaited = given.get_future();
    promise<int> shown;
    shared_future<int> shared = shown.get_future().share();
    channel<int> numbers{0};
    timed_mutex timed;
    recursive_timed_mutex recursive;
    fair_mutex fair;
    shared_timed_mutex readers;

    // By another fiber, which gives them up in its end.
    void take_all() {
        const std::scoped_lock all(timed, recursive, fair, readers);
        static_cast<void>(never.wait_for(1h));
    }
};

struct row {
    const char* header;
    const char* what;
    says how;
    bool (*wait)(world&);  // true: reported that it did not happen
};

const row rows[] = {
    {"event.hpp", "wait", says::throws, [](world& w) { return w.never.wait(), false; }},
    {"event.hpp", "wait_for", says::reports, [](world& w) { return !w.never.wait_for(1h); }},
    {"latch.hpp", "wait", says::throws, [](world& w) { return w.closed.wait(), false; }},
    {"barrier.hpp", "wait", says::throws, [](world& w) { return w.at.wait(w.at.arrive()), false; }},
    {"wait_group.hpp", "wait", says::throws, [](world& w) { return w.work.wait(), false; }},
    {"wait_group.hpp", "wait_for", says::reports, [](world& w) { return !w.work.wait_for(1h); }},
    {"semaphore.hpp", "acquire", says::throws, [](world& w) { return w.permits.acquire(), false; }},
    {"semaphore.hpp", "try_acquire_for", says::throws,
     [](world& w) { return !w.permits.try_acquire_for(1h); }},
    {"condition_variable.hpp", "wait", says::throws,
     [](world& w) {
         std::unique_lock lock(w.guard);
         w.changed.wait(lock);
         return false;
     }},
    {"condition_variable.hpp", "wait_for", says::throws,
     [](world& w) {
         std::unique_lock lock(w.guard);
         return w.changed.wait_for(lock, 1h) == std::cv_status::timeout;
     }},
    {"condition_variable.hpp", "any: wait", says::throws,
     [](world& w) {
         std::unique_lock lock(w.guard);
         w.changed_any.wait(lock);
         return false;
     }},
    {"condition_variable.hpp", "any: wait_for", says::throws,
     [](world& w) {
         std::unique_lock lock(w.guard);
         return w.changed_any.wait_for(lock, 1h) == std::cv_status::timeout;
     }},
    {"future.hpp", "wait", says::throws, [](world& w) { return w.awaited.wait(), false; }},
    {"future.hpp", "get", says::throws, [](world& w) { return w.awaited.get() == 1; }},
    {"future.hpp", "shared get", says::throws, [](world& w) { return w.shared.get() == 1; }},
    {"channel.hpp", "send", says::reports, [](world& w) { return !w.numbers.send(1); }},
    {"channel.hpp", "receive", says::reports, [](world& w) { return !w.numbers.receive(); }},
    {"select.hpp", "select", says::reports,
     [](world& w) { return !select(on_receive(w.numbers, [](auto) {})); }},
    {"mutex.hpp", "try_lock_for", says::reports,
     [](world& w) { return !w.timed.try_lock_for(1h); }},
    {"recursive_mutex.hpp", "try_lock_for", says::reports,
     [](world& w) { return !w.recursive.try_lock_for(1h); }},
    {"fair_mutex.hpp", "try_lock_for", says::reports,
     [](world& w) { return !w.fair.try_lock_for(1h); }},
    {"shared_mutex.hpp", "try_lock_for", says::reports,
     [](world& w) { return !w.readers.try_lock_for(1h); }},
};

}  // namespace

LOOP_TEST("cancellation: everything that waits says that it was cancelled, as its line says") {
    for (const row& one : rows) {
        SCOPED_TRACE(std::string(one.header) + " " + one.what);
        world w;
        fiber holder(s, [&] { w.take_all(); });
        std::string log;
        fiber waits(s, [&] {
            yield();
            for (int i = 0; i < 2; ++i) {  // it is level-triggered
                try {
                    log += one.wait(w) ? 'r' : '?';
                } catch (const cancelled& c) {
                    log += c.reason() == cancel_reason::requested ? 't' : '?';
                }
            }
        });
        run_until_blocked();
        CHECK(log.empty());
        waits.request_stop();
        run_until_blocked();
        CHECK(log == (one.how == says::throws ? "tt" : "rr"));
        holder.request_stop();
        run();
        holder.detach();
        waits.detach();
        CHECK(w.guard.try_lock());  // a condition variable took it, and its lock gave it up
        w.guard.unlock();
    }
}
