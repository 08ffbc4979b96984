// post.hpp - a plain callable on an executor, with no fiber.
//
//     post(loop, [&] { ++count; });
//
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <concepts>
#include <type_traits>
#include <utility>

#include <weft/exec/executor.hpp>

namespace weft::inline v0 {

namespace detail {

template <class F>
class posted_callable final : public runnable {
public:
    template <class G>
    posted_callable(executor& home, G&& function)
        : home_(home), function_(std::forward<G>(function)) {}

    runnable* run() noexcept override {
        if (home_.takes_exceptions())
            run_catching();
        else
            function_();
        executor& home = home_;
        delete this;
        home.add_work(-1);
        return nullptr;
    }

private:
    void run_catching() noexcept {
        try {
            function_();
        } catch (...) { home_.unhandled(std::current_exception(), *this); }
    }

    executor& home_;
    F function_;
};

}  // namespace detail

/// Runs function() on the executor's own stack, where nothing may wait: for that, go(). A wait of
/// the library's that would have to sleep there aborts, and names itself.
/// Suspends: never. From: any thread. Fails: as an allocation and the callable's move do; nothing
/// was posted then. An exception that leaves the function goes to executor::unhandled().
template <class F>
    requires std::invocable < std::decay_t<F>
& > void post(executor& home, F&& function) {
    auto* const posted =
        new detail::posted_callable<std::decay_t<F>>(home, std::forward<F>(function));
    home.add_work(1);
    home.post(posted);
}

}  // namespace weft::inline v0
