// scope_exit.hpp - something that is done when a scope is left, however that happens.
//
//     wg.add();
//     go([&] { const scope_exit done([&] { wg.done(); }); may_throw(); });
//
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <concepts>
#include <utility>

#include <weft/base/version.hpp>

namespace weft::inline v0 {

template <std::invocable F>
class [[nodiscard]] scope_exit {
public:
    explicit scope_exit(F function) noexcept(noexcept(F(std::move(function))))
        : function_(std::move(function)) {}
    scope_exit(scope_exit&& other) noexcept(noexcept(F(std::move(other.function_))))
        : function_(std::move(other.function_)), armed_(std::exchange(other.armed_, false)) {}
    scope_exit& operator=(scope_exit&&) = delete;
    ~scope_exit() noexcept(noexcept(function_())) {
        if (armed_) function_();
    }

    /// It will not be done.
    void release() noexcept { armed_ = false; }

private:
    F function_;
    bool armed_ = true;
};

}  // namespace weft::inline v0
