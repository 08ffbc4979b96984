// intrusive_node.hpp - the links by which an object stands in a queue, without allocation.
//
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <weft/base/version.hpp>

namespace weft::inline v0 {

class runnable;

/// In one queue at a time. Who owns the queue owns the links.
class intrusive_node {
public:
    intrusive_node() noexcept = default;
    intrusive_node(const intrusive_node&) = delete;
    intrusive_node& operator=(const intrusive_node&) = delete;

    /// For the queues of weft: the next one.
    runnable* next_node = nullptr;
    /// And one some places further on.
    runnable* ahead_node = nullptr;
};

}  // namespace weft::inline v0
