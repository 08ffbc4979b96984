// task_values.cpp - see task_values.hpp.
//
// SPDX-License-Identifier: Apache-2.0
#include "fiber/task_values.hpp"

#include <algorithm>
#include <bit>
#include <utility>

#include "fiber/fiber_life.hpp"

namespace weft::inline v0::detail {

task_values::task_values(const task_values* before, const void* key,
                         std::shared_ptr<const void> value)
    : entries_(std::bit_ceil(2 * ((before != nullptr ? before->used_ : 0) + 1))) {
    put(key, std::move(value));
    if (before == nullptr) return;
    for (const entry& one : before->entries_)
        if (one.key != nullptr && one.key != key) put(one.key, one.value);
}

std::size_t task_values::place_of(const void* key) const noexcept {
    const std::size_t mask = entries_.size() - 1;
    auto at = static_cast<std::size_t>(
        reinterpret_cast<std::uintptr_t>(key) * 0x9e3779b97f4a7c15ULL >> 32);
    while (entries_[at & mask].key != nullptr && entries_[at & mask].key != key) ++at;
    return at & mask;
}

void task_values::put(const void* key, std::shared_ptr<const void> value) {
    entries_[place_of(key)] = {key, std::move(value)};
    ++used_;
}

const void* task_values::find(const void* key) const noexcept {
    return entries_[place_of(key)].value.get();
}

// --- of the running fiber

namespace {

fiber_block* running() noexcept {
    fiber_worker* const worker = fiber_worker::here();
    return worker != nullptr ? worker->current : nullptr;
}

}  // namespace

task_values* inherited_values() noexcept {
    const fiber_block* const parent = running();
    if (parent == nullptr || parent->values == nullptr) [[likely]]
        return nullptr;
    parent->values->add_reference();
    return parent->values;
}

void drop_values(task_values& values) noexcept {
    if (values.drop()) delete &values;
}

const void* find_task_value(const void* key) noexcept {
    const fiber_block* const me = running();
    return me != nullptr && me->values != nullptr ? me->values->find(key) : nullptr;
}

task_values* bind_task_value(const void* key, std::shared_ptr<const void> value) {
    fiber_block& me = running_fiber("task_local::bind");
    return std::exchange(me.values, new task_values(me.values, key, std::move(value)));
}

void unbind_task_value(task_values* before) noexcept {
    fiber_block& me = running_fiber("task_local::bind");
    release_values(std::exchange(me.values, before));
}

}  // namespace weft::inline v0::detail
