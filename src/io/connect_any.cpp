// connect_any.cpp - the first of several addresses that answers.
//
// Each address has a fiber. It begins when the one before has failed, or has not answered for the
// stagger; the first that is connected wins, and the group cancels the others. A plain thread runs
// these fibers itself, on a loop of its own.
//
// SPDX-License-Identifier: Apache-2.0
#include <exception>
#include <memory>
#include <utility>
#include <vector>

#include <weft/exec/loop.hpp>
#include <weft/fiber/cancel.hpp>
#include <weft/fiber/go.hpp>
#include <weft/fiber/this_fiber.hpp>
#include <weft/io/tcp.hpp>
#include <weft/scope/task_group.hpp>
#include <weft/sync/event.hpp>

namespace weft::inline v0::io {

namespace {

// On the heap: whoever opens the group may be a swapped fiber.
struct plan {
    plan(std::span<const address> all, std::chrono::milliseconds each)
        : to(all.begin(), all.end()), stagger(each), turns(std::make_unique<turn[]>(all.size())) {}

    result<tcp_stream> run(std::size_t i) {
        if (i != 0) {
            turns[i - 1].begun.wait();
            const auto failed = turns[i - 1].failed.wait_for(stagger);
            if (!failed && this_fiber::stop_requested()) return std::unexpected(failed.error());
        }
        turns[i].begun.set();
        result<tcp_stream> connected = tcp_stream::connect(to[i]);
        if (!connected) turns[i].failed.set();
        return connected;
    }

    struct turn {
        event begun;
        event failed;
    };
    const std::vector<address> to;
    const std::chrono::milliseconds stagger;
    const std::unique_ptr<turn[]> turns;
};

result<tcp_stream> connect_in_thread(std::span<const address> to,
                                     std::chrono::milliseconds stagger) {
    loop own;
    result<tcp_stream> made = std::unexpected(std::error_code());
    std::exception_ptr failure;
    go(own, [&] {
        try {
            made = tcp_stream::connect(to, stagger);
        } catch (...) { failure = std::current_exception(); }
    });
    own.run();
    if (failure != nullptr) std::rethrow_exception(failure);
    if (!made) return made;
    // It may have waited, and then keeps the reactor of this loop: its number goes on alone.
    auto alone = descriptor::adopt_prepared(made->get_descriptor().release());
    if (!alone) return std::unexpected(alone.error());
    return tcp_stream(std::move(*alone));
}

}  // namespace

result<tcp_stream> tcp_stream::connect(std::span<const address> to,
                                       std::chrono::milliseconds stagger) {
    if (to.empty()) return std::unexpected(std::make_error_code(std::errc::invalid_argument));
    if (to.size() == 1) return connect(to[0]);
    if (!this_fiber::get_id()) return connect_in_thread(to, stagger);
    using outcome = result<tcp_stream>;
    const auto all = std::make_shared<plan>(to, stagger);
    try {
        return with_task_group<outcome>({.shares_locals = false},
                                        [&all](task_group<outcome>& group) -> outcome {
                                            for (std::size_t i = 0; i < all->to.size(); ++i)
                                                group.add([all, i] { return all->run(i); });
                                            outcome last;
                                            for (std::size_t i = 0; i < all->to.size(); ++i) {
                                                last = group.next();
                                                if (last) break;
                                            }
                                            return last;
                                        });
    } catch (const cancelled& why) { return std::unexpected(error_code_of(why.reason())); }
}

}  // namespace weft::inline v0::io
