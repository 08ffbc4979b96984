// byte_queue.cpp - see byte_queue.hpp.
//
// SPDX-License-Identifier: Apache-2.0
#include "io/byte_queue.hpp"

#include <algorithm>
#include <cstring>
#include <mutex>
#include <utility>

#include <weft/base/assert.hpp>
#include <weft/fiber/cancel.hpp>
#include <weft/fiber/this_fiber.hpp>
#include <weft/sync/detail/deadline.hpp>

namespace weft::inline v0::detail {

namespace {

constexpr wait_reason reasons[] = {{"waits to read"}, {"waits to write"}};
constexpr std::size_t most_at_once = 16 * 1024;  // under the lock

// Of each call, as of a descriptor's: one that never has to wait lets others run now and then.
bool is_stopped() {
    if (this_fiber::get_id()) yield_if_due_rarely();
    return this_fiber::stop_requested();
}

std::unexpected<std::error_code> stopped() noexcept {
    return std::unexpected(error_code_of(this_fiber::stop_reason()));
}

template <class Byte>
bool are_empty(std::span<const std::span<Byte>> buffers) noexcept {
    return std::ranges::all_of(buffers, [](std::span<Byte> one) { return one.empty(); });
}

// How much move() has moved of them, until it moves no more or that is enough for one time.
template <class Byte, class Move>
std::size_t in_order(std::span<const std::span<Byte>> buffers, Move move) noexcept {
    std::size_t all = 0;
    for (std::span<Byte> rest : buffers) {
        while (!rest.empty()) {
            const std::size_t count = move(rest.first(std::min(rest.size(), most_at_once - all)));
            if (count == 0) return all;
            all += count;
            rest = rest.subspan(count);
        }
    }
    return all;
}

}  // namespace

bool byte_queue::would_wait(io::direction which) noexcept {
    if (ended_ || sides_[0].closed || sides_[1].closed) return false;
    return which == io::direction::read ? size_ == 0 : size_ == capacity_;
}

// Under the lock: whoever waits there, to be woken after it.
waiter* byte_queue::claim(io::direction which) noexcept {
    waiter* const one = std::exchange(of(which).waiting, nullptr);
    return one != nullptr && one->claim() ? one : nullptr;
}

wait_outcome byte_queue::wait(io::direction which) {
    return weft::wait(
        reasons[std::to_underlying(which)], no_deadline,
        [this, which](waiter& me) noexcept {
            const std::lock_guard guard(lock_);
            if (!would_wait(which)) return false;
            WEFT_ASSERT(of(which).waiting == nullptr,
                        "memory_stream: a second fiber waits while one does already");
            of(which).waiting = &me;
            return true;
        },
        [this, which](waiter& me) noexcept {
            const std::lock_guard guard(lock_);
            if (of(which).waiting == &me) of(which).waiting = nullptr;
        });
}

// Under the lock: what is there, without a turn at the end of the memory.
std::size_t byte_queue::take(std::span<std::byte> buffer) noexcept {
    const std::size_t count = std::min({buffer.size(), size_, capacity_ - begin_});
    if (count != 0) std::memcpy(buffer.data(), bytes_.get() + begin_, count);
    begin_ = (begin_ + count) % capacity_;
    size_ -= count;
    return count;
}

// The same for what there is room for.
std::size_t byte_queue::put(std::span<const std::byte> bytes) noexcept {
    const std::size_t end = (begin_ + size_) % capacity_;
    const std::size_t count = std::min({bytes.size(), capacity_ - size_, capacity_ - end});
    if (count != 0) std::memcpy(bytes_.get() + end, bytes.data(), count);
    size_ += count;
    return count;
}

io::result<std::size_t> byte_queue::read(std::span<const std::span<std::byte>> buffers) {
    if (is_stopped()) return stopped();
    const bool is_over = are_empty(buffers);
    for (;;) {
        std::size_t count = 0;
        bool done = false;
        waiter* woken = nullptr;
        {
            const std::lock_guard guard(lock_);
            if (of(io::direction::read).closed)
                return std::unexpected(make_error_code(errc::closed));
            count = in_order(buffers, [this](std::span<std::byte> one) { return take(one); });
            if (count != 0) woken = claim(io::direction::write);
            done = is_over || count != 0 || ended_ || of(io::direction::write).closed;
        }
        if (woken != nullptr) woken->wake();
        if (done) return count;
        if (const auto outcome = wait(io::direction::read); outcome != wait_outcome::event)
            return std::unexpected(report_of(outcome).error());
    }
}

io::result<std::size_t> byte_queue::write(std::span<const std::span<const std::byte>> buffers) {
    if (is_stopped()) return stopped();
    for (;;) {
        std::size_t count = 0;
        waiter* woken = nullptr;
        {
            const std::lock_guard guard(lock_);
            if (of(io::direction::write).closed)
                return std::unexpected(make_error_code(errc::closed));
            if (ended_ || of(io::direction::read).closed)
                return std::unexpected(std::make_error_code(std::errc::broken_pipe));
            count = in_order(buffers, [this](std::span<const std::byte> one) { return put(one); });
            if (count != 0) woken = claim(io::direction::read);
        }
        if (woken != nullptr) woken->wake();
        if (count != 0 || are_empty(buffers)) return count;
        if (const auto outcome = wait(io::direction::write); outcome != wait_outcome::event)
            return std::unexpected(report_of(outcome).error());
    }
}

template <class Change>
void byte_queue::wake_both(Change change) noexcept {
    waiter* woken[2];
    {
        const std::lock_guard guard(lock_);
        change();
        woken[0] = claim(io::direction::read);
        woken[1] = claim(io::direction::write);
    }
    for (waiter* const one : woken)
        if (one != nullptr) one->wake();
}

void byte_queue::end() noexcept {
    wake_both([this] { ended_ = true; });
}

void byte_queue::close(io::direction which) noexcept {
    wake_both([this, which] { of(which).closed = true; });
}

bool byte_queue::is_closed(io::direction which) noexcept {
    const std::lock_guard guard(lock_);
    return of(which).closed;
}

}  // namespace weft::inline v0::detail
