// epoll_reactor.cpp - the reactor over epoll.
//
// The event that wakes it is an eventfd, registered edge-triggered as well: each write is an edge,
// so it is never read.
//
// SPDX-License-Identifier: Apache-2.0
#include <fcntl.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <mutex>
#include <utility>

#include "io/reactor.hpp"

namespace weft::inline v0::detail {

namespace {

constexpr std::uint64_t wake_key = ~std::uint64_t{0};  // no watch has that index
constexpr std::uint32_t readable = EPOLLIN | EPOLLRDHUP | EPOLLPRI | EPOLLHUP | EPOLLERR;
constexpr std::uint32_t writable = EPOLLOUT | EPOLLHUP | EPOLLERR;
constexpr std::uint32_t ended = EPOLLRDHUP | EPOLLHUP | EPOLLERR | EPOLLPRI;
constexpr std::uint32_t both_ways = EPOLLIN | EPOLLOUT | EPOLLRDHUP | EPOLLPRI | EPOLLET;

class epoll_reactor final : public reactor {
public:
    explicit epoll_reactor(const worker& owner) : reactor(owner, io::reactor_kind::epoll) {
        epoll_ = ::epoll_create1(EPOLL_CLOEXEC);
        if (epoll_ >= 0) wakes_ = ::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
        if (wakes_ < 0 || add(wakes_, EPOLLIN | EPOLLET, wake_key) != 0) {
            const int error = errno;
            close_both();
            throw std::system_error(error, std::system_category(), "weft: epoll");
        }
    }
    ~epoll_reactor() override { close_both(); }

    // A number that somebody else has borrowed, too, is registered once more as a copy of it.
    [[nodiscard]] std::error_code submit(int number, std::uint64_t key) noexcept override {
        if (add(number, both_ways, key) == 0) return {};
        if (errno != EEXIST) return {errno, std::system_category()};
        const int copy = ::fcntl(number, F_DUPFD_CLOEXEC, 3);
        if (copy < 0) return {errno, std::system_category()};
        if (add(copy, both_ways, key) != 0) {
            const int error = errno;
            ::close(copy);
            return {error, std::system_category()};
        }
        static_cast<void>(exchange_copy(key, copy));
        return {};
    }

    // Explicitly: a copy of the descriptor elsewhere would keep the registration alive.
    void cancel(int number, std::uint64_t key) noexcept override {
        const int copy = exchange_copy(key, -1);
        ::epoll_ctl(epoll_, EPOLL_CTL_DEL, copy >= 0 ? copy : number, nullptr);
        if (copy >= 0) ::close(copy);
    }

    bool poll(std::chrono::nanoseconds limit) noexcept override {
        if (found_ != 0) return true;
        const int count = wait(limit);
        found_ = count > 0 ? static_cast<std::size_t>(count) : 0;
        return found_ != 0;
    }

    void deliver() noexcept override {
        const std::size_t count = std::exchange(found_, 0);
        for (std::size_t i = 0; i < count; ++i) {
            fetch_ahead(i, count, [this](std::size_t at) { return events_[at].data.u64; });
            const epoll_event one = events_[i];
            if (one.data.u64 != wake_key)
                tell(one.data.u64, (one.events & readable) != 0, (one.events & writable) != 0,
                     (one.events & ended) != 0);
        }
    }

    void interrupt() noexcept override {
        const std::uint64_t one = 1;
        while (::write(wakes_, &one, sizeof one) < 0 && errno == EINTR) {}
    }

    [[nodiscard]] int descriptor() const noexcept override { return epoll_; }

private:
    // -1: what is registered is the number itself.
    [[nodiscard]] int exchange_copy(std::uint64_t key, int copy) noexcept {
        watch& place = watches.at(static_cast<std::uint32_t>(key));
        const std::lock_guard guard(place.lock);
        return std::exchange(place.number, copy);
    }
    [[nodiscard]] int add(int number, std::uint32_t events, std::uint64_t key) const noexcept {
        epoll_event event{.events = events, .data = {.u64 = key}};
        return ::epoll_ctl(epoll_, EPOLL_CTL_ADD, number, &event);
    }

    // Interrupted, it has found nothing: whoever called looks around and comes again. epoll_pwait2
    // is missing in old kernels, and refused, with whatever error, by sandboxes that do not know
    // it.
    [[nodiscard]] int wait(std::chrono::nanoseconds limit) noexcept {
        using namespace std::chrono;
        const auto size = static_cast<int>(events_.size());
        if (limit == nanoseconds::max()) return ::epoll_wait(epoll_, events_.data(), size, -1);
        if (limit.count() <= 0) return ::epoll_wait(epoll_, events_.data(), size, 0);
        if (is_fine_) {
            const auto whole = std::min(duration_cast<seconds>(limit), seconds(1'000'000));
            const auto rest = std::min(limit - whole, nanoseconds(999'999'999));
            const timespec time{.tv_sec = whole.count(), .tv_nsec = rest.count()};
            const int count = ::epoll_pwait2(epoll_, events_.data(), size, &time, nullptr);
            if (count >= 0 || errno == EINTR) return count;
            is_fine_ = false;
        }
        const auto rounded = std::min(ceil<milliseconds>(limit), milliseconds(1'000'000'000));
        return ::epoll_wait(epoll_, events_.data(), size, static_cast<int>(rounded.count()));
    }

    void close_both() noexcept {
        if (wakes_ >= 0) ::close(wakes_);
        if (epoll_ >= 0) ::close(epoll_);
    }

    int epoll_ = -1;
    int wakes_ = -1;
    // Its own thread.
    std::size_t found_ = 0;
    bool is_fine_ = true;  // it sleeps to the nanosecond, not to the millisecond
    std::array<epoll_event, 128> events_;
};

}  // namespace

std::shared_ptr<reactor> make_epoll_reactor(const worker& owner) {
    return std::make_shared<epoll_reactor>(owner);
}

}  // namespace weft::inline v0::detail
