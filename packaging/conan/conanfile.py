"""conanfile.py - a recipe for Conan 2, which builds weft from the clone that it is part of.

    conan create packaging/conan -s compiler.cppstd=23

SPDX-License-Identifier: Apache-2.0
"""
import os
import re

from conan import ConanFile
from conan.errors import ConanInvalidConfiguration
from conan.tools.build import check_min_cppstd
from conan.tools.cmake import CMake, CMakeDeps, CMakeToolchain, cmake_layout
from conan.tools.files import copy, load


class Weft(ConanFile):
    name = "weft"
    description = "Fibers for C++: schedulers, locks, channels, task groups and cancellation"
    license = "Apache-2.0"
    topics = ("fibers", "coroutines", "concurrency")
    package_type = "library"
    settings = "os", "arch", "compiler", "build_type"
    options = {"shared": [True, False], "fPIC": [True, False], "checks": [True, False]}
    default_options = {"shared": False, "fPIC": True, "checks": False}

    def set_version(self):
        header = load(self, os.path.join(self.clone(), "include/weft/base/version.hpp"))
        self.version = ".".join(re.findall(r"^#define WEFT_VERSION_\w+ (\d+)$", header, re.M))

    def clone(self):
        return os.path.join(self.recipe_folder, "..", "..")

    def export_sources(self):
        for pattern in ("CMakeLists.txt", "LICENSE", "cmake/*", "include/*", "src/*",
                        "tools/weft-gdb.py"):
            copy(self, pattern, self.clone(), self.export_sources_folder)

    def configure(self):
        if self.options.shared:
            self.options.rm_safe("fPIC")

    def validate(self):
        if self.settings.os != "Linux":
            raise ConanInvalidConfiguration("weft runs on Linux")
        check_min_cppstd(self, 23)

    def layout(self):
        cmake_layout(self)

    def generate(self):
        toolchain = CMakeToolchain(self)
        toolchain.cache_variables["WEFT_CHECKS"] = bool(self.options.checks)
        # Not whatever the machine happens to have: nobody would tell the users of the package.
        toolchain.cache_variables["WEFT_IO_URING"] = False
        toolchain.cache_variables["WEFT_CARES"] = False
        toolchain.generate()
        CMakeDeps(self).generate()

    def build(self):
        cmake = CMake(self)
        cmake.configure()
        cmake.build(target="weft")

    def package(self):
        copy(self, "LICENSE", self.source_folder, os.path.join(self.package_folder, "licenses"))
        CMake(self).install()

    def package_info(self):
        self.cpp_info.libs = ["weft"]
        self.cpp_info.system_libs = ["pthread"]
        self.cpp_info.set_property("cmake_file_name", "weft")
        self.cpp_info.set_property("cmake_target_name", "weft::weft")
        self.cpp_info.set_property("pkg_config_name", "weft")
        if self.options.checks:
            self.cpp_info.defines = ["WEFT_CHECKS=1"]
