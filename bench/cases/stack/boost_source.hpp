// boost_source.hpp - a stack allocator of Boost.Context as the workload wants it.
//
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <boost/context/stack_context.hpp>
#include <boost/version.hpp>

#include "cases/stack/workload.hpp"

namespace bench {

inline void about_boost() {
    about("Boost.Context " + std::to_string(BOOST_VERSION / 100'000) + "." +
          std::to_string(BOOST_VERSION / 100 % 1'000));
}

template <class Allocator>
class boost_source {
public:
    /// guard_size: what the allocator adds to the size that it is asked for.
    explicit boost_source(std::size_t guard_size)
        : guard_size_(guard_size), allocator_(stack_size) {}

    area take() {
        const boost::context::stack_context taken = allocator_.allocate();
        const std::size_t size = taken.size - guard_size_;
        return {static_cast<std::byte*>(taken.sp) - size, size};
    }
    void give_back(const area& a) {
        boost::context::stack_context taken;
        taken.size = a.size + guard_size_;
        taken.sp = a.low + a.size;
        allocator_.deallocate(taken);
    }

private:
    std::size_t guard_size_;
    Allocator allocator_;
};

}  // namespace bench
