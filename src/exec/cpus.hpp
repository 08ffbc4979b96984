// cpus.hpp - the processors of this process, one by one, and what its cgroup grants.
//
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include <weft/base/version.hpp>

namespace weft::inline v0::detail {

/// The numbers of those it may run on.
[[nodiscard]] std::vector<int> allowed_cpus();

/// What the cgroups named in this file grant, as a number of processors; 0: no limit.
[[nodiscard]] unsigned cgroup_cpus(const std::string& proc_cgroup, const std::string& mount);

}  // namespace weft::inline v0::detail
