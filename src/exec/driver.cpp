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

// A system call only for one that sleeps, or is about to:
//
//   waker                                     sleeper, one at a time
//   exchange: woken           (release)       awake -> asleep             (CAS, relaxed)
//   it was asleep? wakes it                   done? sleeps while the word says asleep
//                                             exchange: awake             (acquire)
//
// The word has one order. If the waker's exchange comes before the CAS, that fails and nobody
// sleeps; if it comes after it, the waker sees who sleeps, and the kernel, which looks at the word
// again, lets nobody sleep whom the call would miss. The last exchange takes the wake, and sees
// what was done before it, by its release. A second wake finds the first, and calls nobody.
class futex_driver final : public driver {
public:
    void wait(std::chrono::nanoseconds limit) noexcept override {
        std::uint32_t expected = awake;
        if (word_.compare_exchange_strong(expected, asleep, std::memory_order_relaxed))
            detail::futex_wait_for(word_, asleep, limit);
        clear();
    }
    void wake() noexcept override {
        if (word_.exchange(woken, std::memory_order_release) == asleep)
            detail::futex_wake_one(&word_);
    }
    void clear() noexcept override { word_.exchange(awake, std::memory_order_acquire); }

private:
    enum : std::uint32_t { awake, woken, asleep };
    std::atomic<std::uint32_t> word_ = awake;
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
