// off_shared_stack.hpp - an object that others touch while its fiber is parked.
//
// It lies where it is declared, if that stays put, and on the heap if that is the stack that
// swapped fibers share.
//
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <new>
#include <utility>

#include <weft/fiber/detail/swapped.hpp>

namespace weft::inline v0::detail {

template <class T>
class off_shared_stack {
public:
    template <class... Args>
    explicit off_shared_stack(Args&&... args)
        : object_(running_is_swapped() ? new T(std::forward<Args>(args)...)
                                       : ::new (static_cast<void*>(storage_))
                                             T(std::forward<Args>(args)...)) {}
    off_shared_stack(const off_shared_stack&) = delete;
    off_shared_stack& operator=(const off_shared_stack&) = delete;
    ~off_shared_stack() {
        if (static_cast<void*>(object_) == static_cast<void*>(storage_))
            object_->~T();
        else
            delete object_;
    }

    [[nodiscard]] T& operator*() const noexcept { return *object_; }
    [[nodiscard]] T* operator->() const noexcept { return object_; }

private:
    alignas(T) std::byte storage_[sizeof(T)];
    T* object_;
};

}  // namespace weft::inline v0::detail
