// driver.cpp - the futex driver and the eventfd driver.
//
// SPDX-License-Identifier: Apache-2.0
#include <weft/exec/driver.hpp>

#include <poll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <system_error>

#include "base/futex.hpp"

namespace weft::inline v0 {

namespace {

// waker: exchange 1 (release), wake if it was 0.   sleeper: exchange 0 (acquire), sleep while 0.
class futex_driver final : public driver {
public:
    void wait(std::chrono::nanoseconds limit) noexcept override {
        if (woken_.exchange(0, std::memory_order_acquire) != 0) return;
        detail::futex_wait_for(woken_, 0, limit);
        woken_.exchange(0, std::memory_order_acquire);
    }
    void wake() noexcept override {
        if (woken_.exchange(1, std::memory_order_release) == 0) detail::futex_wake_one(&woken_);
    }
    void clear() noexcept override { woken_.exchange(0, std::memory_order_acquire); }

private:
    std::atomic<std::uint32_t> woken_ = 0;
};

class eventfd_driver final : public driver {
public:
    eventfd_driver() : descriptor_(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {
        if (descriptor_ < 0)
            throw std::system_error(errno, std::system_category(), "weft: loop::descriptor");
    }
    eventfd_driver(const eventfd_driver&) = delete;
    eventfd_driver& operator=(const eventfd_driver&) = delete;
    ~eventfd_driver() override { ::close(descriptor_); }

    void wait(std::chrono::nanoseconds limit) noexcept override {
        using namespace std::chrono;
        pollfd watched{.fd = descriptor_, .events = POLLIN, .revents = 0};
        const auto whole = std::min(duration_cast<seconds>(limit), seconds(1'000'000));
        const timespec time{.tv_sec = whole.count(),
                            .tv_nsec = std::min(limit - whole, nanoseconds(999'999'999)).count()};
        ::ppoll(&watched, 1, limit == nanoseconds::max() ? nullptr : &time, nullptr);
        clear();
    }
    void wake() noexcept override {
        const std::uint64_t one = 1;
        while (::write(descriptor_, &one, sizeof one) < 0 && errno == EINTR) {}
    }
    void clear() noexcept override {
        std::uint64_t count;
        while (::read(descriptor_, &count, sizeof count) < 0 && errno == EINTR) {}
    }
    [[nodiscard]] int descriptor() const noexcept override { return descriptor_; }

private:
    int descriptor_;
};

}  // namespace

std::unique_ptr<driver> make_futex_driver() { return std::make_unique<futex_driver>(); }
std::unique_ptr<driver> make_eventfd_driver() { return std::make_unique<eventfd_driver>(); }

}  // namespace weft::inline v0
