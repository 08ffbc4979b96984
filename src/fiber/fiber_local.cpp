// fiber_local.cpp - the values of a fiber's locals. Few are expected: they are searched one by one.
//
// SPDX-License-Identifier: Apache-2.0
#include <weft/fiber/fiber_local.hpp>

#include <weft/base/assert.hpp>

#include "fiber/fiber_extras.hpp"
#include "fiber/fiber_worker.hpp"

namespace weft::inline v0::detail {

void* local_value(const void* key, void* (*make)(), void (*destroy)(void*) noexcept) {
    fiber_worker* const worker = fiber_worker::here();
    WEFT_ASSERT(worker != nullptr && worker->current != nullptr,
                "fiber_local: used outside any fiber");
    auto& locals = extras_of(*worker->current).locals;
    for (const fiber_extras::local& one : locals)
        if (one.key == key) return one.value;
    locals.reserve(locals.size() + 1);  // before the value is made: nothing can fail after
    void* const made = make();
    // Making it may have made others, or waited: the vector is asked for again.
    auto& now = extras_of(*fiber_worker::here()->current).locals;
    try {
        now.push_back({key, made, destroy});
    } catch (...) {
        destroy(made);
        throw;
    }
    return made;
}

}  // namespace weft::inline v0::detail
