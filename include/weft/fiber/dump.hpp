// dump.hpp - who is there, and what everybody waits for.
//
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <string_view>

#include <weft/base/version.hpp>

namespace weft::inline v0 {

/// A line for every fiber of the process that was started and has not ended: name, state ("has not
/// started", "ready", "running") or what it waits for, where it was started. tools/weft-gdb.py
/// shows the same, with backtraces, in a debugger and from a core file.
/// Suspends: never. From: any thread; what runs meanwhile is told as it was some moment ago.
void dump(const std::function<void(std::string_view)>& sink);

}  // namespace weft::inline v0
