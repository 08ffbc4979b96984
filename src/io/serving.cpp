// serving.cpp - the life of a server; include/weft/io/detail/serving.hpp has the protocol.
//
// SPDX-License-Identifier: Apache-2.0
#include <weft/io/detail/serving.hpp>

#include <linux/sockios.h>
#include <netinet/in.h>
#include <sys/ioctl.h>
#include <sys/socket.h>

#include <algorithm>
#include <stdexcept>

#include <weft/base/assert.hpp>

#include "fiber/fiber_life.hpp"
#include "io/system_call.hpp"

namespace weft::inline v0::detail {

namespace {

io::serve_limits checked(const io::serve_limits& wanted) {
    const auto zero = std::chrono::nanoseconds::zero();
    if (wanted.connections == 0)
        throw std::invalid_argument("weft: serve_limits::connections is 0");
    if (wanted.line == 0) throw std::invalid_argument("weft: serve_limits::line is 0");
    if (wanted.idle <= zero || wanted.total <= zero || wanted.grace < zero || wanted.linger < zero)
        throw std::invalid_argument("weft: a time of serve_limits is negative, or 0");
    return wanted;
}

// Of a TCP connection: what is to be read here, or is on its way there. Of others 0: what was
// written to those, the other side has.
int bytes_left(const io::descriptor& socket, unsigned long which) {
    int count = 0;
    const auto asked = socket.call([&](int number) noexcept {
        return system_call([&] {
            int family = AF_UNSPEC;
            socklen_t size = sizeof family;
            if (::getsockopt(number, SOL_SOCKET, SO_DOMAIN, &family, &size) < 0) return -1;
            return family == AF_INET || family == AF_INET6 ? ::ioctl(number, which, &count) : 0;
        });
    });
    return asked ? count : 0;
}

// What has come is dropped without being copied. 0: no more will come.
io::result<std::size_t> drop_some(io::descriptor& socket) {
    constexpr std::size_t most = 1024 * 1024;
    return socket.perform(io::direction::read, [](int number) noexcept {
        return system_call([=] { return ::recv(number, nullptr, most, MSG_TRUNC); });
    });
}

}  // namespace

time_point serving::idle_deadline() const noexcept {
    if (limits.idle == io::serve_limits::never) return no_deadline;
    return deadline_after(now_for_sleep(), limits.idle);
}

serving::serving(const io::serve_limits& wanted)
    : limits(checked(wanted)),
      home_(home_of_running_fiber("serve")),
      places_(static_cast<std::ptrdiff_t>(
          std::min<std::size_t>(wanted.connections, counting_semaphore<>::max()))) {}

serving::~serving() {
    if (runs_) drain(std::chrono::nanoseconds::zero());
}

// --- the server's fiber

void serving::begin() {
    const std::lock_guard lock(lock_);
    accepting_.emplace();
    runs_ = true;
}

// A listener that cannot be waited for is not heard of: then this waits for a place alone.
bool serving::take_place_of(io::descriptor* listener) {
    bool is_heard = listener != nullptr;
    while (is_heard && !places_.try_acquire()) {
        const std::error_code ended = wait_while_full(*listener);
        if (ended == errc::closed) {
            stop(ended);
            return false;
        }
        if (this_fiber::stop_requested()) {
            stop(error_code_of(this_fiber::stop_reason()));
            return false;
        }
        is_heard = ended == std::errc::operation_canceled;
    }
    if (is_heard) return true;
    try {
        places_.acquire();
        return true;
    } catch (const cancelled& why) {
        stop(error_code_of(why.reason()));
        return false;
    }
}

// full_ is made while one lives, also if a suspend hook throws meanwhile.
class serving::filled {
public:
    explicit filled(serving& server) : server_(server) {
        const std::lock_guard lock(server_.lock_);
        server_.full_.emplace();
    }
    filled(const filled&) = delete;
    filled& operator=(const filled&) = delete;
    ~filled() {
        const std::lock_guard lock(server_.lock_);
        server_.full_.reset();
    }

private:
    serving& server_;
};

// operation_canceled: there is a place, or this fiber was asked to stop.
std::error_code serving::wait_while_full(io::descriptor& listener) {
    const filled full(*this);
    if (places_.try_acquire()) {
        places_.release();
        return std::make_error_code(std::errc::operation_canceled);
    }
    const auto waited = listener.wait_writable();
    return waited ? std::error_code() : waited.error();
}

void serving::count_one() noexcept {
    connections_.add();
    const std::lock_guard lock(lock_);
    ++report_.accepted;
    report_.most = std::max(report_.most, ++open_);
}

fiber_options serving::next_options() noexcept {
    fiber_options options = limits.fiber;
    if (!options.worker && home_.workers() > 1) options.worker = turn_++ % home_.workers();
    return options;
}

void serving::stop(std::error_code why) noexcept {
    const std::lock_guard lock(lock_);
    if (!report_.stopped_by) report_.stopped_by = why;
}

io::serve_report serving::finish() {
    drain(limits.grace);
    if (failure_ != nullptr) std::rethrow_exception(failure_);
    return report_;
}

// Calls on streams obey the cancellation of this fiber, so it does not hear of that meanwhile.
class serving::deaf {
public:
    explicit deaf(serving& server) : server_(server) {
        server_.deaf_.emplace(cancel_scope::shield::yes);
    }
    deaf(const deaf&) = delete;
    deaf& operator=(const deaf&) = delete;
    ~deaf() { server_.deaf_.reset(); }

private:
    serving& server_;
};

void serving::drain(std::chrono::nanoseconds grace) {
    {
        const std::lock_guard lock(lock_);
        accepting_.reset();
    }
    const deaf to_stops(*this);
    stop_all();
    if (grace == io::serve_limits::never)
        connections_.wait();
    else if (!connections_.wait_for(grace))
        cancel_all();
    connections_.wait();
    runs_ = false;
}

void serving::stop_all() noexcept {
    const std::lock_guard lock(lock_);
    stopping_ = true;
    for (served* one = first_; one != nullptr; one = one->next_) one->stop();
}

// Stop callbacks of a handler run in this, so not under the lock.
void serving::cancel_all() noexcept {
    std::unique_lock lock(lock_);
    cancelling_ = true;
    while (first_ != nullptr) {
        const fiber_handle one = take_out(*first_);
        ++report_.cut;
        lock.unlock();
        request_stop(*handle_access::block(one), cancel_reason::shutdown);
        lock.lock();
    }
}

// --- a handler's fiber

void serving::enter(served& connection) noexcept {
    bool is_late = false;
    {
        const std::lock_guard lock(lock_);
        is_late = cancelling_;
        if (is_late)
            ++report_.cut;
        else
            put_in(connection);
        if (stopping_) connection.stop();
    }
    if (is_late) request_stop(*handle_access::block(this_fiber::handle()), cancel_reason::shutdown);
}

// Until the other side has ended, or has all of it, so that close() resets nothing that matters.
void serving::linger(io::descriptor& socket) const {
    if (limits.linger == std::chrono::nanoseconds::zero()) return;
    if (bytes_left(socket, SIOCOUTQ) == 0 || bytes_left(socket, SIOCINQ) == 0) return;
    const time_point end = deadline_after(now_for_sleep(), limits.linger);
    static_cast<void>(socket.call([](int number) noexcept {
        return system_call([=] { return ::shutdown(number, SHUT_WR); });
    }));
    while (bytes_left(socket, SIOCOUTQ) != 0 && socket.wait_readable(end))
        if (drop_some(socket).value_or(0) == 0 || now_for_sleep() >= end) return;
}

void serving::exit(served& connection) noexcept {
    const std::lock_guard lock(lock_);
    if (connection.fiber_) static_cast<void>(take_out(connection));
}

void serving::put_in(served& connection) noexcept {
    connection.fiber_ = this_fiber::handle();
    connection.next_ = first_;
    if (first_ != nullptr) first_->previous_ = &connection;
    first_ = &connection;
}

fiber_handle serving::take_out(served& connection) noexcept {
    (connection.previous_ != nullptr ? connection.previous_->next_ : first_) = connection.next_;
    if (connection.next_ != nullptr) connection.next_->previous_ = connection.previous_;
    return std::move(connection.fiber_);
}

// Nobody else stands in accepting_ than the server's own waits, so no callback of anybody runs;
// nor in full_, of leave().
void serving::fail(std::exception_ptr error) noexcept {
    const std::lock_guard lock(lock_);
    if (failure_ == nullptr) failure_ = std::move(error);
    if (accepting_) accepting_->cancel(cancel_reason::failed);
}

// The last thing: then the server may be gone.
void serving::leave() noexcept {
    {
        const std::lock_guard lock(lock_);
        --open_;
    }
    places_.release();
    {
        const std::lock_guard lock(lock_);
        if (full_) full_->cancel();
    }
    connections_.done();
}

}  // namespace weft::inline v0::detail
