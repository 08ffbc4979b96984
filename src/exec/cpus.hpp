// cpus.hpp - the processors of this process, one by one, and what its cgroup grants.
//
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <pthread.h>

#include <span>
#include <string>
#include <vector>

#include <weft/base/version.hpp>

namespace weft::inline v0::detail {

/// The numbers of those it may run on.
[[nodiscard]] std::vector<int> allowed_cpus();
/// The same for a thread that this one makes.
[[nodiscard]] std::vector<int> inherited_cpus();
/// From now on it runs on one of these. What the system refuses is not done.
void bind_to(pthread_t thread, std::span<const int> cpus) noexcept;

/// What the cgroups named in this file grant, as a number of processors; 0: no limit.
[[nodiscard]] unsigned cgroup_cpus(const std::string& proc_cgroup, const std::string& mount);

}  // namespace weft::inline v0::detail
