// weft_actors.hpp - the case `actor` on weft, over the kind of context. See workload.hpp.
//
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <mutex>

#include <weft/exec/loop.hpp>
#include <weft/exec/pool.hpp>
#include <weft/fiber/go.hpp>
#include <weft/fiber/this_fiber.hpp>
#include <weft/sync/wait_group.hpp>

#include "cases/actor/workload.hpp"

namespace bench::actors {

template <class Context>
class counter {
public:
    void call() {
        const std::lock_guard inside(context_);
        ++value_;
    }
    [[nodiscard]] std::uint64_t value() const { return value_; }

private:
    Context context_;
    std::uint64_t value_ = 0;
};

template <class Context>
void call_alone(task& t) {
    const second_thread there;
    counter<Context> c;
    weft::loop s;
    weft::go(s, [&] {
        t.clock.start();
        for (std::uint64_t n = t.each; n != 0; --n) c.call();
        t.clock.stop();
    });
    s.run();
    t.done = c.value();
}

// As many fibers as the task says; which counter each of them calls, `which` tells.
template <class Context, class Which>
void call_on(unsigned workers, task& t, std::uint64_t actors, Which which) {
    struct alignas(64) apart {
        counter<Context> c;
    };
    const auto all = std::make_unique<apart[]>(actors);
    weft::pool p({.workers = workers});
    weft::wait_group done(t.fibers);
    t.clock.start();
    for (std::uint64_t i = 0; i < t.fibers; ++i)
        weft::go(p, [&, i] {
            counter<Context>& mine = all[which(i)].c;
            for (std::uint64_t n = t.each; n != 0; --n) mine.call();
            done.done();
        });
    done.wait();
    t.clock.stop();
    for (std::uint64_t i = 0; i < actors; ++i) t.done += all[i].c.value();
}

template <class Context>
void yield_inside(task& t) {
    const second_thread there;
    Context context;
    weft::loop s;
    for (std::uint64_t i = 0; i < t.fibers; ++i)
        weft::go(s, [&] {
            const std::lock_guard inside(context);
            for (std::uint64_t n = t.each; n != 0; --n) {
                weft::yield();
                ++t.done;
            }
        });
    t.clock.start();
    s.run();
    t.clock.stop();
}

// The fibers have been inside once.
template <class Context>
void yield_outside(task& t) {
    const second_thread there;
    Context context;
    weft::loop s;
    for (std::uint64_t i = 0; i < t.fibers; ++i)
        weft::go(s, [&] {
            context.lock();
            context.unlock();
            for (std::uint64_t n = t.each; n != 0; --n) {
                weft::yield();
                ++t.done;
            }
        });
    t.clock.start();
    s.run();
    t.clock.stop();
}

template <class Context>
void play(const settings& how, const std::string& who) {
    measure(how, who + ", a call", 1, calls, call_alone<Context>);
    measure(how, who + ", 1 pair", 1, calls, [](task& t) {
        call_on<Context>(1, t, 1, [](std::uint64_t) { return std::uint64_t{0}; });
    });
    measure(how, who + ", 2,048 pairs", 2048, calls,
            [](task& t) { call_on<Context>(2, t, t.fibers, [](std::uint64_t i) { return i; }); });
    for (const auto& [name, fibers] : {std::pair{", 2 callers", 2U}, std::pair{", 64 callers", 64U},
                                       std::pair{", 1,024 callers", 1024U}})
        measure(how, who + name, fibers, contended, [](task& t) {
            call_on<Context>(2, t, 1, [](std::uint64_t) { return std::uint64_t{0}; });
        });
    measure(how, who + ", yields inside", 2, yields, yield_inside<Context>);
    measure(how, who + ", yields outside", 2, yields, yield_outside<Context>);
}

}  // namespace bench::actors
