// no_suspend.hpp - a stretch of code in which nothing may wait.
//
//     const no_suspend guard("the free list is inconsistent here");
//
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <weft/base/version.hpp>

namespace weft::inline v0 {

/// While it lives, whatever suspends this fiber aborts and names the scope. Outside a fiber it does
/// nothing. Suspends: never.
class no_suspend {
public:
    explicit no_suspend(const char* scope_name);
    no_suspend(const no_suspend&) = delete;
    no_suspend& operator=(const no_suspend&) = delete;
    ~no_suspend();

private:
    const char* outer_ = nullptr;
    bool active_;
};

namespace detail {
/// The same for stretches that may overlap. From: any fiber; elsewhere they do nothing.
void forbid_suspending(const char* name);
void allow_suspending() noexcept;
}  // namespace detail

}  // namespace weft::inline v0
