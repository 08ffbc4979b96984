// options.hpp - what a task group can be told.
//
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>

#include <weft/exec/executor.hpp>
#include <weft/fiber/options.hpp>

namespace weft::inline v0 {

/// What a group can be told when it is opened.
struct task_group_options {
    /// At most so many children at once: add() waits. 0: any number.
    std::size_t limit = 0;
    /// A child that throws does not cancel the others; each result is taken by itself.
    bool collect = false;
    /// Results of children that end well are not kept: for a group that runs on and on. Then there
    /// is no next().
    bool discard = false;
    /// False: no child refers to locals of the fiber that opens the group. Otherwise that must not
    /// be a swapped one.
    bool shares_locals = true;
    /// Where the children run; nullptr: where the fiber that opens the group does.
    executor* home = nullptr;
    /// What kind of fibers they are.
    fiber_options fiber = {};
};

}  // namespace weft::inline v0
