#!/usr/bin/env python3
"""setup.py - tools/setup installs what is missing or says what to type; tools/test goes on without.

The PATH leads to a scratch folder: what scripts are made of, and a dpkg-query, apt-get, id and sudo
that pretend, so nothing is installed.

SPDX-License-Identifier: Apache-2.0
"""
import json
import os
import pathlib
import re
import shutil
import subprocess
import tempfile
import unittest

ROOT = pathlib.Path(os.environ.get("SOURCE_DIR", pathlib.Path(__file__).parents[2]))
PLAIN = "awk bash cat date dirname env git grep head mktemp nproc rm sed sort tee xargs".split()
PRETENDERS = {
    "dpkg-query": 'case " $INSTALLED " in *" ${!#} "*) echo "install ok installed" ;; esac',
    "apt-get": 'echo "apt-get $*" >>"$CALLS"',
    "id": 'echo "$USER_ID"',
    "sudo": '[[ $MAY_SUDO == yes ]] || exit 1; shift; echo sudo >>"$CALLS"; "$@"',
}
EVERYTHING = "g++ cmake ninja python3 pkg-config git gdb valgrind doxygen mkdocs dpkg-shlibdeps"


class Setup(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)
        self.calls = self.folder / "calls"
        for name in PLAIN:
            if shutil.which(name):
                (self.folder / name).symlink_to(shutil.which(name))
        for name, text in PRETENDERS.items():
            self.program(name, text)

    def program(self, name, text=""):
        path = self.folder / name
        path.unlink(missing_ok=True)
        path.write_text(f"#!/usr/bin/env bash\n{text}\n")
        path.chmod(0o755)

    def run_tool(self, name, *arguments, root=False, sudo=False, installed="", ci=False):
        """(status, what it says, what it called)"""
        done = subprocess.run(
            [ROOT / "tools" / name, *arguments], stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
            stdin=subprocess.DEVNULL, text=True,
            env={"PATH": str(self.folder), "CALLS": str(self.calls), "INSTALLED": installed,
                 "USER_ID": "0" if root else "1000", "MAY_SUDO": "yes" if sudo else "no",
                 "CI": "true" if ci else ""})
        calls = self.calls.read_text() if self.calls.exists() else ""
        return done.returncode, done.stdout, calls

    def test_with_nothing_missing_it_is_silent(self):
        for name in ("g++", "cmake", "ninja", "python3"):
            self.program(name)
        done = self.run_tool("setup", "run", "test", installed="libgtest-dev")
        self.assertEqual(done, (0, "", ""))

    def test_a_package_counts_without_a_program_in_the_path(self):
        done = self.run_tool("setup", "run", installed="g++ cmake ninja-build")
        self.assertEqual(done, (0, "", ""))

    def test_as_root_it_installs_what_is_missing(self):
        status, text, calls = self.run_tool("setup", "run", root=True, installed="cmake")
        self.assertEqual(status, 0)
        self.assertIn("setup: missing packages: g++ ninja-build\n", text)
        self.assertIn("install --no-install-recommends g++ ninja-build\n", calls)
        self.assertNotIn("sudo", calls)

    def test_others_install_through_sudo(self):
        status, _, calls = self.run_tool("setup", "run", sudo=True, installed="cmake")
        self.assertEqual(status, 0)
        self.assertIn("sudo\n", calls)
        self.assertIn("install --no-install-recommends g++ ninja-build\n", calls)

    def test_without_sudo_it_prints_the_one_command_and_fails(self):
        status, text, calls = self.run_tool("setup", "run", "test", installed="cmake")
        self.assertEqual((status, calls), (1, ""))
        command = "    sudo apt-get install --no-install-recommends g++ libgtest-dev ninja-build"
        self.assertIn(command, text)
        self.assertEqual(text.count("apt-get"), 1)

    def test_what_fails_to_install_is_a_failure(self):
        self.program("apt-get", "exit 100")
        status, _, _ = self.run_tool("setup", "run", root=True)
        self.assertNotEqual(status, 0)

    def test_what_is_only_offered_never_fails(self):
        status, text, calls = self.run_tool("setup", "--offer", "run", root=True)
        self.assertEqual((status, calls), (0, ""))
        self.assertIn("going on without them", text)

    def test_a_preset_without_its_tools_is_skipped_with_a_word(self):
        for name in EVERYTHING.split():
            self.program(name)
        installed = ("libgtest-dev libbenchmark-dev libgoogle-perftools-dev libc6-dbg liburing-dev "
                     "libc-ares-dev")
        status, text, calls = self.run_tool("test", "clang", installed=installed)
        self.assertEqual((status, calls), (0, ""), text)
        self.assertIn("the tools of preset clang are missing (tools/setup clang)", text)
        self.assertRegex(text, "(?m)^clang +skipped")
        status, text, _ = self.run_tool("test", "clang", installed=installed, ci=True)
        self.assertEqual(status, 1, text)
        self.assertRegex(text, "(?m)^clang +MISSING")

    def test_what_it_leaves_out_of_a_preset_is_back_when_that_is_configured_by_hand(self):
        presets = json.loads((ROOT / "CMakePresets.json").read_text())["configurePresets"]
        base = next(preset for preset in presets if preset["name"] == "base")
        set_here = re.findall(r'"-D(WEFT_\w+)=', (ROOT / "tools/test").read_text())
        how = {"WEFT_TEST_BATCH"}  # and not what
        self.assertIn("WEFT_LAST_PART", set_here)
        self.assertLessEqual(set(set_here) - how, set(base["cacheVariables"]))

    def test_an_unknown_preset_is_refused_with_those_that_there_are(self):
        for wrong in ("nonsense", "--fast", "base"):
            status, text, calls = self.run_tool("test", wrong)
            self.assertEqual((status, calls), (2, ""), text)
            self.assertRegex(text, f"no preset or option '{wrong}'; there are: .*dev.*tsan")

    def test_no_preset_does_without_what_all_of_them_need(self):
        status, text, _ = self.run_tool("test", "dev")
        self.assertEqual(status, 1)
        self.assertIn("test: these are needed by every preset", text)


if __name__ == "__main__":
    unittest.main()
