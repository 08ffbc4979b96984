// task_local.hpp - a value that belongs to what is being done, not to who does it.
//
//     task_local<std::string> request{"none"};         // namespace scope, or wherever it outlives
//                                                      // the fibers that use it
//     const auto bound = request.bind("GET /");        // until the end of this block
//     go([] { log(*request); });                       // "GET /", whenever that runs
//
// Every fiber that is started, by a group, go, fiber or async, has the values that its starter had
// at that moment. Reading takes the same short time however many there are; binding copies the
// table of those that are bound.
//
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <utility>

#include <weft/fiber/detail/task_values.hpp>

namespace weft::inline v0 {

/// Thread-safe: yes; values are never changed.
template <class T>
class task_local {
public:
    /// What it is where nothing is bound.
    template <class... Args>
        requires std::constructible_from<T, Args...>
    explicit task_local(Args&&... args) : otherwise_(std::forward<Args>(args)...) {}
    task_local(const task_local&) = delete;
    task_local& operator=(const task_local&) = delete;

    /// Valid until this fiber's innermost binding ends. Suspends: never. From: anywhere; outside of
    /// fibers nothing is bound.
    [[nodiscard]] const T& get() const noexcept {
        const void* const bound = detail::find_task_value(this);
        return bound != nullptr ? *static_cast<const T*>(bound) : otherwise_;
    }
    [[nodiscard]] const T& operator*() const noexcept { return get(); }
    [[nodiscard]] const T* operator->() const noexcept { return &get(); }

    /// Ends with the block that it is declared in, in the same fiber.
    class [[nodiscard]] binding {
    public:
        binding(const binding&) = delete;
        binding& operator=(const binding&) = delete;
        ~binding() { detail::unbind_task_value(before_); }

    private:
        friend class task_local;
        explicit binding(detail::task_values* before) noexcept : before_(before) {}
        detail::task_values* before_;
    };

    /// From: a fiber; elsewhere it aborts. Fails: as T's construction does, std::bad_alloc.
    template <class... Args>
    binding bind(Args&&... args) const {
        return binding(
            detail::bind_task_value(this, std::make_shared<const T>(std::forward<Args>(args)...)));
    }

private:
    const T otherwise_;
};

}  // namespace weft::inline v0
