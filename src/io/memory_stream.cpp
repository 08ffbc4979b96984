// memory_stream.cpp - see memory_stream.hpp: two byte queues, crossed.
//
// SPDX-License-Identifier: Apache-2.0
#include <weft/io/memory_stream.hpp>

#include <algorithm>

#include "io/byte_queue.hpp"

namespace weft::inline v0::io {

namespace {

std::unexpected<std::error_code> none() noexcept {
    return std::unexpected(std::make_error_code(std::errc::bad_file_descriptor));
}

}  // namespace

memory_stream& memory_stream::operator=(memory_stream&& other) noexcept {
    if (this == &other) return *this;
    close();
    in_ = std::move(other.in_);
    out_ = std::move(other.out_);
    return *this;
}

memory_stream::~memory_stream() { close(); }

std::pair<memory_stream, memory_stream> memory_stream::pair(std::size_t capacity) {
    capacity = std::max<std::size_t>(capacity, 1);
    std::pair<memory_stream, memory_stream> both;
    both.first.in_ = both.second.out_ = std::make_shared<detail::byte_queue>(capacity);
    both.second.in_ = both.first.out_ = std::make_shared<detail::byte_queue>(capacity);
    return both;
}

result<std::size_t> memory_stream::read_some(std::span<std::byte> buffer) {
    return read_some(std::span(&buffer, 1));
}

result<std::size_t> memory_stream::write_some(std::span<const std::byte> bytes) {
    return write_some(std::span(&bytes, 1));
}

// A copy of the pointer: somebody may close and destroy the other end meanwhile.
result<std::size_t> memory_stream::read_some(std::span<const std::span<std::byte>> buffers) {
    const auto queue = in_;
    return queue != nullptr ? queue->read(buffers) : none();
}

result<std::size_t> memory_stream::write_some(std::span<const std::span<const std::byte>> buffers) {
    const auto queue = out_;
    return queue != nullptr ? queue->write(buffers) : none();
}

result<void> memory_stream::shutdown_write() {
    if (out_ == nullptr) return none();
    if (out_->is_closed(direction::write)) return std::unexpected(make_error_code(errc::closed));
    out_->end();
    return {};
}

void memory_stream::close() noexcept {
    if (in_ != nullptr) in_->close(direction::read);
    if (out_ != nullptr) out_->close(direction::write);
}

}  // namespace weft::inline v0::io
