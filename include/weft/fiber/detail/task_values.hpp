// task_values.hpp - what a fiber's task locals are bound to, as far as headers have to know it.
//
// A fiber refers to a table that never changes and may be shared with those that it started; to
// bind a value is to make another table, and to go back to the one before at the end.
//
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>

#include <weft/base/version.hpp>

namespace weft::inline v0::detail {

class task_values;

/// What the key is bound to in the running fiber; nullptr: nothing, or outside any fiber.
[[nodiscard]] const void* find_task_value(const void* key) noexcept;

/// Binds the key in the running fiber, and returns what unbind_task_value() goes back to. Aborts:
/// outside any fiber. Fails: std::bad_alloc.
[[nodiscard]] task_values* bind_task_value(const void* key, std::shared_ptr<const void> value);
void unbind_task_value(task_values* before) noexcept;

}  // namespace weft::inline v0::detail
