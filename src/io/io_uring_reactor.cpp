// io_uring_reactor.cpp - the reactor over io_uring: it tells when descriptors are ready.
//
// A descriptor is submitted once, as a multishot poll, which reports each edge. The kernel may end
// such a poll by itself (the completion queue was full, or the thread that submitted it is gone):
// its last report says so, and it is submitted again. A poll that begins reports what is ready
// already, so nothing is lost in between.
//
// What is submitted is written down, and given to the kernel at the next poll(). A cancellation
// cannot wait for that: the descriptor is closed next, and a poll keeps its file open.
//
//   cancels, any thread                       submits again, the reactor's own thread
//   retires the key (the watch's lock)        lock
//   lock; written down, not submitted?          key still the same (the watch's lock)? write down
//     take that back; unlock, done            unlock
//   unlock; the kernel cancels at once
//
// Either the second sees the key retired, or the first finds what it wrote, there or in the kernel.
//
// IORING_REGISTER_SYNC_CANCEL takes no place in a queue and cannot come too early: a poll that is
// being reported just then is marked, and ends after that. (IORING_OP_POLL_REMOVE says EALREADY
// instead and removes nothing: then the file stays open, and its other side never sees the end.)
// The file is let go by the thread that submitted.
//
// That thread also turns edges into completions, when it enters the kernel for whatever reason
// (COOP_TASKRUN), and is not interrupted for each; a flag in the ring tells one that only looks
// that it has to enter (TASKRUN_FLAG). Whoever cancels from another thread makes it pass through
// the kernel, by a barrier: else the file would stay open until a clock tick. Why neither
// SINGLE_ISSUER nor DEFER_TASKRUN: docs/decisions/0008-io-uring.md.
//
// Without liburing at build time, or where the kernel refuses, there is none, and epoll serves.
//
// SPDX-License-Identifier: Apache-2.0
#include "io/reactor.hpp"

#if defined(WEFT_HAS_LIBURING) && WEFT_HAS_LIBURING

#include <liburing.h>
#include <poll.h>
#include <pthread.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <mutex>
#include <new>
#include <span>
#include <vector>

#include <weft/base/process_barrier.hpp>
#include <weft/base/test_point.hpp>

namespace weft::inline v0::detail {

namespace {

constexpr std::uint64_t wake_key = ~std::uint64_t{0};  // no watch has that index
constexpr std::uint64_t no_key = wake_key - 1;         // of what was taken back
constexpr unsigned readable = POLLIN | POLLRDHUP | POLLPRI | POLLHUP | POLLERR;
constexpr unsigned writable = POLLOUT | POLLHUP | POLLERR;
constexpr unsigned over = POLLRDHUP | POLLHUP | POLLERR | POLLPRI;
constexpr unsigned both_ways = POLLIN | POLLOUT | POLLRDHUP | POLLPRI;
constexpr unsigned places = 64;
constexpr unsigned reports_at_once = 128;
constexpr unsigned reports_at_most = 4096;  // more are kept by the kernel, and cost memory there

__kernel_timespec time_of(std::chrono::nanoseconds limit) noexcept {
    using namespace std::chrono;
    const auto whole = std::min(duration_cast<seconds>(limit), seconds(1'000'000));
    return {.tv_sec = whole.count(),
            .tv_nsec = std::min(limit - whole, nanoseconds(999'999'999)).count()};
}

// 0, or minus errno: -ENOENT if there was nothing under that key.
int cancel_in_kernel(io_uring& ring, std::uint64_t key) noexcept {
    io_uring_sync_cancel_reg what{};
    what.addr = key;
    what.fd = -1;
    what.timeout = {.tv_sec = -1, .tv_nsec = -1};  // none
    int done = -EINTR;
    while (done == -EINTR) done = ::io_uring_register_sync_cancel(&ring, &what);
    return done;
}

// 0, or minus errno: it was refused, or cannot do what is needed here.
int make_ring(io_uring& ring) noexcept {
    io_uring_params params{};
    params.flags = IORING_SETUP_CLAMP | IORING_SETUP_CQSIZE | IORING_SETUP_SUBMIT_ALL |
                   IORING_SETUP_COOP_TASKRUN | IORING_SETUP_TASKRUN_FLAG;
    params.cq_entries = reports_at_most;
    if (const int error = ::io_uring_queue_init_params(places, &ring, &params)) return error;
    constexpr unsigned needed = IORING_FEAT_EXT_ARG | IORING_FEAT_NODROP | IORING_FEAT_CQE_SKIP;
    if ((params.features & needed) == needed && cancel_in_kernel(ring, no_key) == -ENOENT) return 0;
    ::io_uring_queue_exit(&ring);
    return -ENOSYS;
}

class io_uring_reactor final : public reactor {
public:
    explicit io_uring_reactor(const worker& owner) : reactor(owner, io::reactor_kind::io_uring) {
        if (const int error = make_ring(ring_))
            throw std::system_error(-error, std::system_category(), "weft: io_uring");
        wakes_ = ::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
        if (wakes_ >= 0 && await_wakes()) return;
        const int error = errno;
        close_both();
        throw std::system_error(error, std::system_category(), "weft: io_uring");
    }
    ~io_uring_reactor() override { close_both(); }

    [[nodiscard]] std::error_code submit(int number, std::uint64_t key) noexcept override {
        const std::lock_guard guard(submitting_);
        watch& place = watches.at(static_cast<std::uint32_t>(key));
        {
            const std::lock_guard also(place.lock);
            place.number = number;
        }
        if (write_down(number, key, both_ways)) return {};
        return {EBUSY, std::system_category()};
    }

    void cancel(int, std::uint64_t key) noexcept override {
        WEFT_TEST_POINT("io_uring: retired, not cancelled");
        {
            const std::lock_guard guard(submitting_);
            if (take_back(key)) return;
        }
        static_cast<void>(cancel_in_kernel(ring_, key));
        if (polls_in_.load(std::memory_order_relaxed) != ::pthread_self() &&
            process_barrier::available())
            process_barrier::heavy();
    }

    // One who only looks does not enter the kernel, unless there is something to submit, or the
    // kernel says that it has to do something.
    bool poll(std::chrono::nanoseconds limit) noexcept override {
        if (found_ != 0) return true;
        polls_in_.store(::pthread_self(), std::memory_order_relaxed);
        if (!lost_.empty()) submit_lost();
        if (written_.load(std::memory_order_relaxed)) {
            const std::lock_guard guard(submitting_);
            submit_now();
        }
        // The kernel has no memory just now, and reports nothing of what it has not taken.
        if (written_.load(std::memory_order_relaxed) || !lost_.empty())
            limit = std::min<std::chrono::nanoseconds>(limit, std::chrono::milliseconds(1));
        found_ = ::io_uring_peek_batch_cqe(&ring_, found_list_.data(), reports_at_once);
        if (found_ != 0 || limit.count() <= 0) return found_ != 0;
        __kernel_timespec time = time_of(limit);
        io_uring_cqe* first = nullptr;
        static_cast<void>(::io_uring_wait_cqe_timeout(
            &ring_, &first, limit == std::chrono::nanoseconds::max() ? nullptr : &time));
        found_ = ::io_uring_peek_batch_cqe(&ring_, found_list_.data(), reports_at_once);
        return found_ != 0;
    }

    void deliver() noexcept override {
        struct seen {
            std::uint64_t key;
            int result;
            unsigned flags;
        };
        std::array<seen, reports_at_once> reports;
        const unsigned count = std::exchange(found_, 0);
        for (unsigned i = 0; i < count; ++i)
            reports[i] = {found_list_[i]->user_data, found_list_[i]->res, found_list_[i]->flags};
        ::io_uring_cq_advance(&ring_, count);  // their places are free: whoever is told may submit
        for (std::size_t i = 0; i < count; ++i) {
            fetch_ahead(i, count, [&](std::size_t at) { return reports[at].key; });
            const seen& one = reports[i];
            report(one.key, one.result, (one.flags & IORING_CQE_F_MORE) == 0);
        }
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
            if (ended && !await_wakes()) static_cast<void>(keep_lost(wake_key));
            return;
        }
        // What cannot be polled is left to the next call to find out.
        const bool refused = result < 0 && result != -ECANCELED && result != -ENOMEM;
        const bool lost = ended && (refused || !(submit_again(key) || keep_lost(key)));
        const unsigned events = result > 0 ? static_cast<unsigned>(result) : 0;
        tell(key, lost || (events & readable) != 0, lost || (events & writable) != 0,
             lost || (events & over) != 0);
    }

    // False: it cannot be had.
    [[nodiscard]] bool submit_again(std::uint64_t key) noexcept {
        const std::lock_guard guard(submitting_);
        watch& ended = watches.at(static_cast<std::uint32_t>(key));
        int number = -1;
        {
            const std::lock_guard also(ended.lock);
            if (ended.key() != key) return true;  // it was cancelled
            number = ended.number;
        }
        WEFT_TEST_POINT("io_uring: wanted still, not written down");
        return write_down(number, key, both_ways);
    }

    // For the next poll(). False: there is no memory for that either.
    [[nodiscard]] bool keep_lost(std::uint64_t key) noexcept {
        try {
            lost_.push_back(key);
            return true;
        } catch (const std::bad_alloc&) { return false; }
    }
    void submit_lost() noexcept {
        const auto submits = [this](std::uint64_t key) {
            return key == wake_key ? await_wakes() : submit_again(key);
        };
        while (!lost_.empty() && submits(lost_.back())) lost_.pop_back();
    }

    [[nodiscard]] bool await_wakes() noexcept {
        const std::lock_guard guard(submitting_);
        return write_down(wakes_, wake_key, POLLIN);
    }

    // The rest is done under the lock.

    // False: the kernel takes nothing.
    [[nodiscard]] bool write_down(int number, std::uint64_t key, unsigned events) noexcept {
        io_uring_sqe* entry = ::io_uring_get_sqe(&ring_);
        if (entry == nullptr) {
            submit_now();
            entry = ::io_uring_get_sqe(&ring_);
        }
        if (entry == nullptr) return false;
        ::io_uring_prep_poll_multishot(entry, number, events);
        ::io_uring_sqe_set_data64(entry, key);
        written_.store(true, std::memory_order_relaxed);
        return true;
    }

    // What the kernel has not taken goes on standing there, and is submitted the next time.
    void submit_now() noexcept {
        int done = -EINTR;
        while (done == -EINTR) done = ::io_uring_submit(&ring_);
        written_.store(::io_uring_sq_ready(&ring_) != 0, std::memory_order_relaxed);
    }

    // Whether it was written down and the kernel has not seen it: it never will.
    [[nodiscard]] bool take_back(std::uint64_t key) noexcept {
        const unsigned waiting = ::io_uring_sq_ready(&ring_);
        for (unsigned i = 1; i <= waiting; ++i) {
            io_uring_sqe& entry = ring_.sq.sqes[(ring_.sq.sqe_tail - i) & (places - 1)];
            if (entry.user_data != key) continue;
            ::io_uring_prep_nop(&entry);
            ::io_uring_sqe_set_data64(&entry, no_key);
            entry.flags |= IOSQE_CQE_SKIP_SUCCESS;
            return true;
        }
        return false;
    }

    void close_both() noexcept {
        if (wakes_ >= 0) ::close(wakes_);
        ::io_uring_queue_exit(&ring_);
    }

    io_uring ring_{};
    int wakes_ = -1;
    std::mutex submitting_;
    std::atomic<bool> written_ = false;  // changed under the lock
    std::atomic<pthread_t> polls_in_{};  // the thread that polled last (relaxed: only a hint)
    // Its own thread.
    unsigned found_ = 0;
    std::vector<std::uint64_t> lost_;  // polls that ended, and could not be submitted again
    std::array<io_uring_cqe*, reports_at_once> found_list_;
};

}  // namespace

std::shared_ptr<reactor> make_io_uring_reactor(const worker& owner) {
    try {
        return std::make_shared<io_uring_reactor>(owner);
    } catch (const std::system_error&) { return nullptr; }
}

bool io_uring_works() noexcept {
    io_uring ring{};
    if (make_ring(ring) != 0) return false;
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
