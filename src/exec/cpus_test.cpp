// cpus_test.cpp - what a cgroup grants, read from files as the kernel writes them.
//
// SPDX-License-Identifier: Apache-2.0
#include "exec/cpus.hpp"

#include <filesystem>
#include <fstream>
#include <string>

#include "temporary_folder.hpp"
#include "weft_test.hpp"

namespace {

// A /proc/self/cgroup and what is mounted for it.
class cgroups {
public:
    void member_of(const std::string& lines) { std::ofstream(folder_ / "self") << lines; }
    void set(const std::string& name, const std::string& value) {
        const std::filesystem::path file = folder_ / ("mount/" + name);
        std::filesystem::create_directories(file.parent_path());
        std::ofstream(file) << value << '\n';
    }
    [[nodiscard]] unsigned cpus() const {
        return weft::detail::cgroup_cpus(folder_ / "self", folder_ / "mount");
    }

private:
    weft_test::temporary_folder folder_;
};

}  // namespace

WEFT_TEST("cpus: a cgroup without a quota sets no limit") {
    cgroups c;
    c.member_of("0::/app\n");
    c.set("app/cpu.max", "max 100000");
    CHECK(c.cpus() == 0);
}

WEFT_TEST("cpus: a quota of one and a half gives two") {
    cgroups c;
    c.member_of("0::/app\n");
    c.set("app/cpu.max", "150000 100000");
    CHECK(c.cpus() == 2);
    c.set("app/cpu.max", "300000 100000");
    CHECK(c.cpus() == 3);
    c.set("app/cpu.max", "10000 100000");
    CHECK(c.cpus() == 1);
}

WEFT_TEST("cpus: the tightest quota on the way up counts") {
    cgroups c;
    c.member_of("0::/slice/app\n");
    c.set("slice/app/cpu.max", "400000 100000");
    CHECK(c.cpus() == 4);
    c.set("slice/cpu.max", "200000 100000");
    CHECK(c.cpus() == 2);
    c.set("cpu.max", "100000 100000");
    CHECK(c.cpus() == 1);
    c.set("cpu.max", "800000 100000");
    CHECK(c.cpus() == 2);
}

WEFT_TEST("cpus: a process at the root of its cgroups has the root's quota") {
    cgroups c;
    c.member_of("0::/\n");
    c.set("cpu.max", "200000 100000");
    CHECK(c.cpus() == 2);
}

WEFT_TEST("cpus: the first version of cgroups, with the controller among others") {
    cgroups c;
    c.member_of("12:memory:/app\n4:cpu,cpuacct:/app\n1:name=systemd:/app\n");
    c.set("cpu/app/cpu.cfs_quota_us", "250000");
    c.set("cpu/app/cpu.cfs_period_us", "100000");
    CHECK(c.cpus() == 3);
    c.set("cpu/cpu.cfs_quota_us", "50000");
    c.set("cpu/cpu.cfs_period_us", "100000");
    CHECK(c.cpus() == 1);
}

WEFT_TEST("cpus: a quota of -1, of the first version, is none") {
    cgroups c;
    c.member_of("4:cpu,cpuacct:/app\n");
    c.set("cpu/app/cpu.cfs_quota_us", "-1");
    c.set("cpu/app/cpu.cfs_period_us", "100000");
    CHECK(c.cpus() == 0);
}

WEFT_TEST("cpus: without such files there is no limit") {
    cgroups c;
    CHECK(c.cpus() == 0);
    c.member_of("0::/app\n");
    CHECK(c.cpus() == 0);
    c.member_of("nothing that the kernel writes\n");
    CHECK(c.cpus() == 0);
    c.set("app/cpu.max", "");
    c.member_of("0::/app\n");
    CHECK(c.cpus() == 0);
}
