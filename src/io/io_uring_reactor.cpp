// io_uring_reactor.cpp - the reactor over io_uring: not there yet, epoll serves.
//
// SPDX-License-Identifier: Apache-2.0
#include "io/reactor.hpp"

namespace weft::inline v0::detail {

std::shared_ptr<reactor> make_io_uring_reactor(const worker&) { return nullptr; }
bool io_uring_works() noexcept { return false; }

}  // namespace weft::inline v0::detail
