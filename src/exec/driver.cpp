// driver.cpp - the futex driver, and the one with a descriptor.
//
// SPDX-License-Identifier: Apache-2.0
#include <weft/exec/driver.hpp>

#include <poll.h>
#include <sys/epoll.h>
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

// An epoll over an eventfd and what else is included: one number that stays, whatever joins later.
class epoll_driver final : public descriptor_driver {
public:
    epoll_driver() : all_(::epoll_create1(EPOLL_CLOEXEC)) {
        if (all_ < 0) refuse();
        wakes_ = ::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
        if (wakes_ < 0 || !add(wakes_)) {
            const int error = errno;
            close_all();
            errno = error;
            refuse();
        }
    }
    epoll_driver(const epoll_driver&) = delete;
    epoll_driver& operator=(const epoll_driver&) = delete;
    ~epoll_driver() override { close_all(); }

    void wait(std::chrono::nanoseconds limit) noexcept override {
        using namespace std::chrono;
        pollfd watched{.fd = all_, .events = POLLIN, .revents = 0};
        const auto whole = std::min(duration_cast<seconds>(limit), seconds(1'000'000));
        const timespec time{.tv_sec = whole.count(),
                            .tv_nsec = std::min(limit - whole, nanoseconds(999'999'999)).count()};
        ::ppoll(&watched, 1, limit == nanoseconds::max() ? nullptr : &time, nullptr);
        clear();
    }
    void wake() noexcept override {
        const std::uint64_t one = 1;
        while (::write(wakes_, &one, sizeof one) < 0 && errno == EINTR) {}
    }
    void clear() noexcept override {
        std::uint64_t count;
        while (::read(wakes_, &count, sizeof count) < 0 && errno == EINTR) {}
    }
    void include(int readable) override {
        if (!add(readable)) refuse();
    }
    [[nodiscard]] int descriptor() const noexcept override { return all_; }

private:
    [[nodiscard]] bool add(int readable) noexcept {
        epoll_event event{.events = EPOLLIN, .data = {.fd = readable}};
        return ::epoll_ctl(all_, EPOLL_CTL_ADD, readable, &event) == 0;
    }
    void close_all() noexcept {
        ::close(all_);
        if (wakes_ >= 0) ::close(wakes_);
    }
    [[noreturn]] static void refuse() {
        throw std::system_error(errno, std::system_category(), "weft: loop::descriptor");
    }

    const int all_;
    int wakes_ = -1;
};

}  // namespace

std::unique_ptr<driver> make_futex_driver() { return std::make_unique<futex_driver>(); }
std::unique_ptr<descriptor_driver> make_descriptor_driver() {
    return std::make_unique<epoll_driver>();
}

}  // namespace weft::inline v0
