// descriptor.cpp - see descriptor.hpp; the work is done by watched.cpp.
//
// SPDX-License-Identifier: Apache-2.0
#include <weft/io/descriptor.hpp>

#include <fcntl.h>
#include <sys/uio.h>
#include <unistd.h>

#include <new>

#include "io/buffers.hpp"
#include "io/system_call.hpp"
#include "io/watched.hpp"
#include "io/write_quietly.hpp"

namespace weft::inline v0::io {

using detail::system_call;
using detail::watched;

namespace {

std::unexpected<std::error_code> no_descriptor() noexcept {
    return std::unexpected(std::make_error_code(std::errc::bad_file_descriptor));
}

long add_flags(int number) noexcept {
    const long flags = system_call([=] { return ::fcntl(number, F_GETFL); });
    if (flags < 0) return flags;
    if ((flags & O_NONBLOCK) == 0) {
        const long set = system_call(
            [=] { return ::fcntl(number, F_SETFL, static_cast<int>(flags) | O_NONBLOCK); });
        if (set < 0) return set;
    }
    return system_call([=] { return ::fcntl(number, F_SETFD, FD_CLOEXEC); });
}

// By a copy: whoever owns it may close it, and another get its number, while somebody waits.
result<void> wait_for_number(int number, direction which, time_point deadline) {
    result<descriptor> copy = descriptor::borrow(number);
    if (!copy) return std::unexpected(copy.error());
    return copy->wait(which, deadline);
}

}  // namespace

descriptor& descriptor::operator=(descriptor&& other) noexcept {
    if (this == &other) return *this;
    if (state_ != nullptr) state_->drop();
    state_ = std::exchange(other.state_, nullptr);
    return *this;
}

descriptor::~descriptor() {
    if (state_ != nullptr) state_->drop();
}

result<descriptor> descriptor::adopt_prepared(int number) noexcept {
    auto* const state = new (std::nothrow) watched(number, true);
    if (state != nullptr) return descriptor(state);
    ::close(number);
    return std::unexpected(std::make_error_code(std::errc::not_enough_memory));
}

result<descriptor> descriptor::adopt(int number) noexcept {
    result<descriptor> made = adopt_prepared(number);
    if (!made) return made;
    if (const long done = add_flags(number); done < 0) return detail::system_error_of(done);
    return made;
}

result<descriptor> descriptor::borrow(int number) noexcept {
    const long copy = system_call([=] { return ::fcntl(number, F_DUPFD_CLOEXEC, 3); });
    if (copy < 0) return detail::system_error_of(copy);
    return adopt_prepared(static_cast<int>(copy));
}

result<descriptor> descriptor::by_number(int number) noexcept {
    auto* const state = new (std::nothrow) watched(number, false);
    if (state == nullptr)
        return std::unexpected(std::make_error_code(std::errc::not_enough_memory));
    return descriptor(state);
}

result<std::size_t> descriptor::perform(direction which, const detail::attempt& attempt) {
    if (state_ == nullptr) [[unlikely]]
        return no_descriptor();
    return state_->perform(which, attempt);
}

result<std::size_t> descriptor::call(const detail::attempt& asked) const {
    if (state_ == nullptr) return no_descriptor();
    return state_->call(asked);
}

result<std::size_t> descriptor::read_some(std::span<std::byte> buffer) {
    return perform(direction::read, [=](int number) noexcept {
        return system_call([=] { return ::read(number, buffer.data(), buffer.size()); });
    });
}

result<std::size_t> descriptor::read_some(std::span<const std::span<std::byte>> buffers) {
    const detail::io_vector vector(buffers);
    return perform(direction::read, [&](int number) noexcept {
        return system_call([&] { return ::readv(number, vector.data(), vector.count()); });
    });
}

result<std::size_t> descriptor::write_some(std::span<const std::byte> bytes) {
    return write_some(std::span(&bytes, 1));
}

result<std::size_t> descriptor::write_some(std::span<const std::span<const std::byte>> buffers) {
    const detail::io_vector vector(buffers);
    return perform(direction::write, [&](int number) noexcept {
        return detail::write_quietly(number, vector.data(), vector.count());
    });
}

void descriptor::close() noexcept {
    if (state_ != nullptr) state_->close();
}

void descriptor::end_writing() noexcept {
    if (state_ != nullptr) state_->end_writing();
}

int descriptor::release() noexcept { return state_ != nullptr ? state_->release() : -1; }

int descriptor::native_handle() const noexcept { return state_ != nullptr ? state_->number() : -1; }

result<void> wait_readable(int number, time_point deadline) {
    return wait_for_number(number, direction::read, deadline);
}

result<void> wait_writable(int number, time_point deadline) {
    return wait_for_number(number, direction::write, deadline);
}

}  // namespace weft::inline v0::io
