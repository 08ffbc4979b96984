// io_uring_reactor.cpp - the reactor over io_uring: it tells when descriptors are ready.
//
// A descriptor is submitted once, as a multishot poll, which reports each edge. The kernel may end
// such a poll by itself (the completion queue was full, or the thread that submitted it is gone):
// its last report says so, and it is submitted again.
//
// What is submitted is written down, under a lock, and given to the kernel by the reactor's own
// thread at its next poll(): completions come by way of the thread that submitted. A cancellation
// cannot wait for that, for the descriptor is closed next: so the ring has neither SINGLE_ISSUER
// nor DEFER_TASKRUN. Only the reactor's own thread takes completions.
//
// Without liburing at build time, or where the kernel refuses, there is none, and epoll serves.
//
// SPDX-License-Identifier: Apache-2.0
#include "io/reactor.hpp"

#if defined(WEFT_HAS_LIBURING) && WEFT_HAS_LIBURING

#include <liburing.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <mutex>

#include "io/system_call.hpp"

namespace weft::inline v0::detail {

namespace {

constexpr std::uint64_t wake_key = ~std::uint64_t{0};  // no watch has that index
constexpr std::uint64_t no_key = wake_key - 1;         // of what needs no answer
constexpr unsigned readable = POLLIN | POLLRDHUP | POLLPRI | POLLHUP | POLLERR;
constexpr unsigned writable = POLLOUT | POLLHUP | POLLERR;
constexpr unsigned over = POLLRDHUP | POLLHUP | POLLERR | POLLPRI;
constexpr unsigned both_ways = POLLIN | POLLOUT | POLLRDHUP | POLLPRI;
constexpr unsigned places = 64;

class io_uring_reactor final : public reactor {
public:
    explicit io_uring_reactor(const worker& owner) : reactor(owner, io::reactor_kind::io_uring) {
        io_uring_params params{};
        params.flags = IORING_SETUP_CLAMP | IORING_SETUP_CQSIZE;
        params.cq_entries = 4096;
        const int error = -::io_uring_queue_init_params(places, &ring_, &params);
        if (error != 0) throw std::system_error(error, std::system_category(), "weft: io_uring");
        wakes_ = ::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
        const unsigned needed = IORING_FEAT_EXT_ARG | IORING_FEAT_NODROP | IORING_FEAT_CQE_SKIP;
        const bool can = (params.features & needed) == needed;
        if (wakes_ < 0 || !can || write_down(wakes_, wake_key, POLLIN)) {
            close_both();
            throw std::system_error(ENOSYS, std::system_category(), "weft: io_uring");
        }
    }
    ~io_uring_reactor() override { close_both(); }

    [[nodiscard]] std::error_code submit(int number, std::uint64_t key) noexcept override {
        return write_down(number, key, both_ways);
    }

    void cancel(int, std::uint64_t key) noexcept override {
        const std::lock_guard guard(submitting_);
        io_uring_sqe* const entry = free_place();
        if (entry == nullptr) return;
        ::io_uring_prep_poll_remove(entry, key);
        ::io_uring_sqe_set_data64(entry, no_key);
        entry->flags |= IOSQE_CQE_SKIP_SUCCESS;
        static_cast<void>(submit_now());
    }

    // One who only looks does not enter the kernel, unless there is something to submit, or the
    // kernel has something to flush.
    bool poll(std::chrono::nanoseconds limit) noexcept override {
        if (found_ != 0) return true;
        if (written_.load(std::memory_order_relaxed)) {
            const std::lock_guard guard(submitting_);
            static_cast<void>(submit_now());
        }
        found_ = ::io_uring_peek_batch_cqe(&ring_, found_list_.data(), places);
        if (found_ != 0 || limit.count() <= 0) return found_ != 0;
        using namespace std::chrono;
        const auto whole = std::min(duration_cast<seconds>(limit), seconds(1'000'000));
        __kernel_timespec time{
            .tv_sec = whole.count(),
            .tv_nsec = std::min(limit - whole, nanoseconds(999'999'999)).count()};
        io_uring_cqe* first = nullptr;
        static_cast<void>(::io_uring_wait_cqe_timeout(
            &ring_, &first, limit == nanoseconds::max() ? nullptr : &time));
        found_ = ::io_uring_peek_batch_cqe(&ring_, found_list_.data(), places);
        return found_ != 0;
    }

    void deliver() noexcept override {
        struct seen {
            std::uint64_t key;
            int result;
            unsigned flags;
        };
        std::array<seen, places> reports;
        const unsigned count = std::exchange(found_, 0);
        for (unsigned i = 0; i < count; ++i)
            reports[i] = {found_list_[i]->user_data, found_list_[i]->res, found_list_[i]->flags};
        ::io_uring_cq_advance(&ring_, count);  // their places are free: whoever is told may submit
        for (const seen& one : std::span(reports).first(count))
            report(one.key, one.result, (one.flags & IORING_CQE_F_MORE) == 0);
    }

    void interrupt() noexcept override {
        const std::uint64_t one = 1;
        while (::write(wakes_, &one, sizeof one) < 0 && errno == EINTR) {}
    }

    [[nodiscard]] int descriptor() const noexcept override { return ring_.ring_fd; }

private:
    void report(std::uint64_t key, int result, bool ended) noexcept {
        if (key == no_key) return;
        if (key == wake_key) {
            if (ended) static_cast<void>(write_down(wakes_, wake_key, POLLIN));
            return;
        }
        // What cannot be polled is left to the next call to find out.
        const bool lost = ended && ((result < 0 && result != -ECANCELED) || !rearm(key));
        const unsigned events = result > 0 ? static_cast<unsigned>(result) : 0;
        tell(key, lost || (events & readable) != 0, lost || (events & writable) != 0,
             lost || (events & over) != 0);
    }

    [[nodiscard]] std::error_code write_down(int number, std::uint64_t key,
                                             unsigned events) noexcept {
        const std::lock_guard guard(submitting_);
        io_uring_sqe* const entry = free_place();
        if (entry == nullptr) return {EBUSY, std::system_category()};
        ::io_uring_prep_poll_multishot(entry, number, events);
        ::io_uring_sqe_set_data64(entry, key);
        written_.store(true, std::memory_order_relaxed);
        return {};
    }

    // Under the lock. nullptr: the kernel takes nothing.
    [[nodiscard]] io_uring_sqe* free_place() noexcept {
        if (io_uring_sqe* const entry = ::io_uring_get_sqe(&ring_)) return entry;
        static_cast<void>(submit_now());
        return ::io_uring_get_sqe(&ring_);
    }

    // Under the lock.
    [[nodiscard]] std::error_code submit_now() noexcept {
        int done = -EINTR;
        while (done == -EINTR) done = ::io_uring_submit(&ring_);
        written_.store(done < 0, std::memory_order_relaxed);
        if (done >= 0) return {};
        return {-done, std::system_category()};
    }

    void close_both() noexcept {
        if (wakes_ >= 0) ::close(wakes_);
        ::io_uring_queue_exit(&ring_);
    }

    io_uring ring_{};
    int wakes_ = -1;
    spin_lock submitting_;
    std::atomic<bool> written_ = false;  // changed under the lock
    // Its own thread.
    unsigned found_ = 0;
    std::array<io_uring_cqe*, places> found_list_;
};

}  // namespace

std::shared_ptr<reactor> make_io_uring_reactor(const worker& owner) {
    try {
        return std::make_shared<io_uring_reactor>(owner);
    } catch (const std::system_error&) { return nullptr; }
}

bool io_uring_works() noexcept {
    io_uring ring{};
    if (::io_uring_queue_init(1, &ring, 0) != 0) return false;
    ::io_uring_queue_exit(&ring);
    return true;
}

}  // namespace weft::inline v0::detail

#else

namespace weft::inline v0::detail {

std::shared_ptr<reactor> make_io_uring_reactor(const worker&) { return nullptr; }
bool io_uring_works() noexcept { return false; }

}  // namespace weft::inline v0::detail

#endif
