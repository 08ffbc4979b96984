#!/usr/bin/env python3
"""packaging.py - the vcpkg port and the Conan recipe, as far as they can be checked offline.

The port is run by cmake against stand-ins for vcpkg's functions, the recipe is loaded with
stand-ins for Conan's modules; both must name what is there, and the version of the headers.

SPDX-License-Identifier: Apache-2.0
"""
import importlib.util
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import types
import unittest

sys.dont_write_bytecode = True
ROOT = pathlib.Path(os.environ.get("SOURCE_DIR", pathlib.Path(__file__).parents[2]))
HEADER = (ROOT / "include/weft/base/version.hpp").read_text()
VERSION = ".".join(re.findall(r"^#define WEFT_VERSION_\w+ (\d+)$", HEADER, re.MULTILINE))

STAND_INS = """
function(vcpkg_cmake_configure)
  cmake_parse_arguments(PARSE_ARGV 0 arg "" SOURCE_PATH OPTIONS)
  if(NOT EXISTS ${arg_SOURCE_PATH}/CMakeLists.txt)
    message(FATAL_ERROR "no sources in ${arg_SOURCE_PATH}")
  endif()
  file(READ ${arg_SOURCE_PATH}/CMakeLists.txt text)
  foreach(option IN LISTS arg_OPTIONS)
    string(REGEX REPLACE "^-D([A-Z_]+)=.*" "\\\\1" name ${option})
    if(NOT text MATCHES "option\\\\(${name} ")
      message(FATAL_ERROR "no option ${name}")
    endif()
  endforeach()
endfunction()
function(vcpkg_cmake_install)
endfunction()
function(vcpkg_cmake_config_fixup)
endfunction()
function(vcpkg_fixup_pkgconfig)
endfunction()
function(vcpkg_install_copyright)
  cmake_parse_arguments(PARSE_ARGV 0 arg "" "" FILE_LIST)
  if(NOT EXISTS ${arg_FILE_LIST})
    message(FATAL_ERROR "no ${arg_FILE_LIST}")
  endif()
endfunction()
"""


class Vcpkg(unittest.TestCase):
    folder = ROOT / "packaging/vcpkg"

    def test_the_manifest_has_the_version_of_the_headers(self):
        manifest = json.loads((self.folder / "vcpkg.json").read_text())
        self.assertEqual(manifest["version-semver"], VERSION)
        self.assertEqual(manifest["name"], "weft")

    def test_the_port_names_sources_options_and_files_that_are_there(self):
        with tempfile.TemporaryDirectory() as scratch:
            script = pathlib.Path(scratch) / "run.cmake"
            script.write_text(f'{STAND_INS}\nset(PORT weft)\n'
                              f'set(CURRENT_PACKAGES_DIR "{scratch}/p")\n'
                              f'include("{self.folder}/portfile.cmake")\n')
            done = subprocess.run(["cmake", "-P", script], capture_output=True, text=True)
            self.assertEqual(done.returncode, 0, done.stderr)
            self.assertTrue((pathlib.Path(scratch) / "p/share/weft/usage").exists())


def stand_in(name, **members):
    module = types.ModuleType(name)
    module.__dict__.update(members)
    return module


def recipe():
    class Anything:
        def __init__(self, *_, **__):
            pass

    def nothing(*_, **__):
        pass

    def read(_, path):
        return pathlib.Path(path).read_text()

    class Invalid(Exception):
        pass

    modules = [
        stand_in("conan", ConanFile=Anything),
        stand_in("conan.errors", ConanInvalidConfiguration=Invalid),
        stand_in("conan.tools"),
        stand_in("conan.tools.build", check_min_cppstd=nothing, can_run=nothing),
        stand_in("conan.tools.cmake", CMake=Anything, CMakeDeps=Anything, CMakeToolchain=Anything,
                 cmake_layout=nothing),
        stand_in("conan.tools.files", copy=nothing, load=read),
    ]
    sys.modules.update({module.__name__: module for module in modules})
    path = ROOT / "packaging/conan/conanfile.py"
    spec = importlib.util.spec_from_file_location("weft_recipe", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    made = module.Weft()
    made.recipe_folder = str(path.parent)
    return made, Invalid


def variables():
    """What the recipe sets for CMake."""
    class Toolchain:
        def __init__(self, _):
            self.cache_variables = {}
            made.toolchain = self

        def generate(self):
            pass
    made, _ = recipe()
    made.options = types.SimpleNamespace(checks=False)
    names = made.generate.__func__.__globals__
    names["CMakeToolchain"] = Toolchain
    names["CMakeDeps"] = lambda _: types.SimpleNamespace(generate=lambda: None)
    made.generate()
    return made.toolchain.cache_variables


class Conan(unittest.TestCase):
    def test_the_recipe_has_the_version_of_the_headers(self):
        made, _ = recipe()
        made.set_version()
        self.assertEqual(made.version, VERSION)

    def exported(self):
        made, _ = recipe()
        made.export_sources_folder = "/nowhere"
        copied = []
        sys.modules["weft_recipe"] = None
        made.export_sources.__func__.__globals__["copy"] = lambda _, pattern, *__: copied.append(
            pattern)
        made.export_sources()
        return copied

    def test_it_exports_files_that_are_there(self):
        for pattern in self.exported():
            self.assertTrue(list(ROOT.glob(pattern)), pattern)

    def test_what_it_exports_is_all_that_a_build_and_an_installation_need(self):
        with tempfile.TemporaryDirectory() as scratch:
            sources, build = pathlib.Path(scratch) / "sources", pathlib.Path(scratch) / "build"
            for pattern in self.exported():
                # As Conan matches: a * goes into folders, too.
                pattern = pattern.replace("/*", "/**/*")
                for file in filter(pathlib.Path.is_file, ROOT.glob(pattern)):
                    copy = sources / file.relative_to(ROOT)
                    copy.parent.mkdir(parents=True, exist_ok=True)
                    shutil.copy(file, copy)
            options = [f"-D{name}={value}" for name, value in variables().items()]
            done = subprocess.run(["cmake", "-S", sources, "-B", build, *options],
                                  capture_output=True, text=True)
            self.assertEqual(done.returncode, 0, done.stderr)
            self.assertNotIn("not used by the project", done.stderr)
            rules = (build / "cmake_install.cmake").read_text()
            installed = re.findall(rf'"({re.escape(str(sources))}/[^"]+)"', rules)
            self.assertGreater(len(installed), 2)
            for path in installed:
                self.assertTrue(pathlib.Path(path).exists(), path)

    def test_its_options_are_those_of_the_build(self):
        known = re.findall(r"^option\((\w+) ", (ROOT / "CMakeLists.txt").read_text(), re.MULTILINE)
        for name in variables():
            self.assertIn(name, known)
        # Neither package may depend on what the machine happens to have.
        port = (ROOT / "packaging/vcpkg/portfile.cmake").read_text()
        for name in ("WEFT_IO_URING", "WEFT_CARES"):
            self.assertIs(variables()[name], False)
            self.assertIn(f"-D{name}=OFF", port)

    def test_it_refuses_other_systems(self):
        made, invalid = recipe()
        made.settings = types.SimpleNamespace(os="Windows")
        with self.assertRaises(invalid):
            made.validate()

    def test_its_test_builds_a_program_that_is_there(self):
        text = (ROOT / "packaging/conan/test_package/CMakeLists.txt").read_text()
        source = re.search(r"add_executable\(hello (\S+)\)", text)[1]
        self.assertTrue((ROOT / "packaging/conan/test_package" / source).exists())
        compile((ROOT / "packaging/conan/test_package/conanfile.py").read_text(), "c", "exec")


class Headers(unittest.TestCase):
    def test_the_changelog_knows_this_version(self):
        self.assertIn(f"## {VERSION}", (ROOT / "CHANGELOG.md").read_text())

    def test_who_is_told_to_find_a_version_is_told_this_one(self):
        minor = VERSION.rpartition(".")[0]
        for name in ("README.md", "docs/hello.md", "tests/install/find_package/CMakeLists.txt"):
            told = re.findall(r"find_package\(weft ([\d.]+) REQUIRED\)", (ROOT / name).read_text())
            self.assertEqual(told, [minor], name)

    def test_port_and_recipe_say_the_same_of_weft(self):
        manifest = json.loads((ROOT / "packaging/vcpkg/vcpkg.json").read_text())
        made, _ = recipe()
        for key in ("name", "description", "license"):
            self.assertEqual(manifest[key], getattr(made, key), key)


if __name__ == "__main__":
    unittest.main()
