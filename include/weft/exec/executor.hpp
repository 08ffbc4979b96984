// executor.hpp - where work runs.
//
// A runnable is one unit of work, an executor a place that runs such units. Neither knows of
// fibers: a fiber is one kind of runnable (fiber/fiber.hpp). Read this file before anything else in
// exec/.
//
// A user writes an executor by defining post and defer, and calls run() on what it was given, over
// and over with what that returns, until that is nullptr:
//
//     while (runnable* r = take()) do r = r->run(); while (r != nullptr);
//
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstddef>
#include <exception>
#include <memory>

#include <weft/base/clock_source.hpp>
#include <weft/base/random_source.hpp>
#include <weft/exec/driver.hpp>
#include <weft/exec/runnable.hpp>

namespace weft::inline v0 {

class stack_source;

namespace detail {
class residents;
}

class executor {
public:
    executor(const executor&) = delete;
    executor& operator=(const executor&) = delete;
    virtual ~executor();

    /// Runs r soon, beside the caller, who goes on: it may wake a thread for it. Once r can be
    /// taken it touches nothing of the executor: r may be the last, and the executor be destroyed.
    /// Suspends: never. From: any thread. Fails: never.
    virtual void post(runnable* r) = 0;

    /// Runs r soon, in the caller's stead, who is about to stop: no thread is woken for it.
    /// Suspends: never. From: the executor's own threads; from elsewhere it is a post.
    virtual void defer(runnable* r) = 0;

    /// What the calling thread would run now, with everything done that is due between two
    /// runnables; nullptr: go back to the executor's own stack and let it see.
    /// From: the executor's own threads.
    [[nodiscard]] virtual runnable* next() noexcept { return nullptr; }

    /// Counts outstanding work: what will be posted here some time, so that the executor does not
    /// take an empty queue for the end. From: any thread.
    virtual void add_work(std::ptrdiff_t change) noexcept { static_cast<void>(change); }

    /// The time of whoever runs here.
    [[nodiscard]] virtual clock_source& clock() noexcept { return steady_clock_source(); }
    /// The chance of whoever runs here.
    [[nodiscard]] virtual random_source& random() noexcept;

    /// How many threads run what is posted here, at most. A fiber may name one of them.
    [[nodiscard]] virtual unsigned workers() const noexcept { return 1; }

    /// Whether a fiber that has held its worker for so long is to let others run (yield_if_due).
    [[nodiscard]] virtual bool slice_is_over(std::chrono::nanoseconds held) noexcept {
        return held > std::chrono::milliseconds(1);
    }

    /// For the io part: from now on the calling thread's worker, which has none so far, sleeps in
    /// this, and looks there when it is busy. False: there are no workers here.
    /// From: the executor's own threads.
    [[nodiscard]] virtual bool attach(std::unique_ptr<driver> reactor);

    /// An exception that left r, and nobody is there to take it.
    virtual void unhandled(std::exception_ptr error, runnable& r) noexcept;

    /// Whether unhandled() does something else than terminate. Otherwise such an exception is not
    /// caught at all, and terminate happens at the throw, with the stack as it was.
    [[nodiscard]] bool takes_exceptions() const noexcept { return takes_exceptions_; }

    /// Where the stacks of its fibers come from, unless they name another; nullptr: the library's.
    [[nodiscard]] stack_source* stacks() const noexcept { return stacks_; }

    /// For the fiber part: whom it keeps here (worker.hpp). Owned.
    std::atomic<detail::residents*> residents_ = nullptr;
    /// Those who live here were asked to stop, and whoever comes is, too.
    std::atomic<bool> stopping_ = false;
    // For the io part: which kind of reactor was asked for; 0: none.
    std::atomic<unsigned char> reactor_choice_ = 0;

protected:
    executor() noexcept;
    /// For an executor that overrides unhandled().
    void set_takes_exceptions(bool takes) noexcept { takes_exceptions_ = takes; }
    /// It must outlive the executor.
    void set_stacks(stack_source* stacks) noexcept { stacks_ = stacks; }

private:
    seeded_random random_;
    stack_source* stacks_ = nullptr;
    bool takes_exceptions_ = false;
};

}  // namespace weft::inline v0
