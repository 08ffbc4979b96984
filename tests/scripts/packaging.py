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


class Conan(unittest.TestCase):
    def test_the_recipe_has_the_version_of_the_headers(self):
        made, _ = recipe()
        made.set_version()
        self.assertEqual(made.version, VERSION)

    def test_it_exports_files_that_are_there(self):
        made, _ = recipe()
        made.export_sources_folder = "/nowhere"
        copied = []
        sys.modules["weft_recipe"] = None
        made.export_sources.__func__.__globals__["copy"] = lambda _, pattern, *__: copied.append(
            pattern)
        made.export_sources()
        for pattern in copied:
            self.assertTrue(list(ROOT.glob(pattern)), pattern)
        needed = re.findall(r"include\((cmake/\S+)\)", (ROOT / "CMakeLists.txt").read_text())
        self.assertIn("cmake/*", copied)
        self.assertTrue(needed)

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


if __name__ == "__main__":
    unittest.main()
