// driver.hpp - what an idle thread sleeps in.
//
// A seam: the plain one sleeps on a futex; a loop that a foreign event loop watches has a
// descriptor; a loop that runs inside a fiber lets that fiber wait; I/O brings a reactor, which is
// looked at while its thread is busy, too (executor::attach()).
//
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <memory>

#include <weft/base/version.hpp>

namespace weft::inline v0 {

class driver {
public:
    virtual ~driver() = default;
    /// Sleeps until wake() or for this long; nanoseconds::max(): without limit. A wake() that came
    /// before counts. May return early. From: the one thread that it belongs to.
    virtual void wait(std::chrono::nanoseconds limit) noexcept = 0;
    /// From: any thread.
    virtual void wake() noexcept = 0;
    /// Whoever lent it may lend it to another.
    virtual void give_back() noexcept {}
    /// Forgets wakes that came so far.
    virtual void clear() noexcept {}
    /// Looks, without waiting, for what has come besides, and makes those ready who waited for it.
    /// From: as wait().
    virtual void poll() noexcept {}
    /// Whether somebody waits for something else to come than wake(). From: as wait().
    [[nodiscard]] virtual bool is_awaited() const noexcept { return false; }
    /// Readable when woken, or when poll() has something to do; -1: there is none.
    [[nodiscard]] virtual int descriptor() const noexcept { return -1; }
};

/// One whose descriptor others watch.
class descriptor_driver : public driver {
public:
    /// That one readable makes this one readable, too. Once each. Fails: std::system_error.
    virtual void include(int readable) = 0;
};

/// Sleeps on a word. No descriptors.
[[nodiscard]] std::unique_ptr<driver> make_futex_driver();

/// Sleeps in poll(2).
/// Fails: std::system_error when there is no descriptor to be had.
[[nodiscard]] std::unique_ptr<descriptor_driver> make_descriptor_driver();

}  // namespace weft::inline v0
