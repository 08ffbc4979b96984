// fiber_local.hpp - a variable of which each fiber has its own.
//
//     fiber_local<int> depth;          // namespace scope, or wherever it outlives its fibers
//     ++*depth;
//
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>

#include <weft/base/version.hpp>

namespace weft::inline v0 {

namespace detail {
/// The running fiber's value for this key; made at first use. Aborts outside a fiber.
[[nodiscard]] void* local_value(const void* key, void* (*make)(), void (*destroy)(void*) noexcept);
}  // namespace detail

/// A T is made, by its default constructor, when a fiber first asks, and destroyed when that fiber
/// ends, the last made first. The variable must outlive the fibers that used it.
template <class T>
class fiber_local {
public:
    fiber_local() = default;
    fiber_local(const fiber_local&) = delete;
    fiber_local& operator=(const fiber_local&) = delete;

    /// Suspends: never. From: a fiber; elsewhere it aborts. Fails: as T's constructor does,
    /// std::bad_alloc.
    [[nodiscard]] T& get() {
        return *static_cast<T*>(detail::local_value(
            this, []() -> void* { return new T(); },
            [](void* value) noexcept { delete static_cast<T*>(value); }));
    }
    [[nodiscard]] T& operator*() { return get(); }
    [[nodiscard]] T* operator->() { return &get(); }
};

}  // namespace weft::inline v0
