// runnable.hpp - one unit of work.
//
// A fiber is one kind of runnable, a posted callable another. Read executor.hpp next.
//
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>

#include <weft/base/intrusive_node.hpp>

namespace weft::inline v0 {

class runnable : public intrusive_node {
public:
    /// Does its work and says what this thread runs next: itself, another, or nullptr for whatever
    /// is ready. Executors loop over what is returned; they never recurse.
    virtual runnable* run() noexcept = 0;

    /// For whoever recognises its own runnables without a virtual call. 0: nobody's.
    std::uint8_t kind = 0;
    /// Where, from its own address, it holds a pointer to memory that it will touch first when it
    /// runs: long queues fetch that ahead. 0: nowhere.
    std::uint16_t touches_offset = 0;
    /// The number, from 1, of the one worker of a pool that may run it; 0: any may.
    std::uint16_t bound_to = 0;

protected:
    runnable() noexcept = default;
    ~runnable() = default;
};

}  // namespace weft::inline v0
