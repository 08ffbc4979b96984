"""build.py - the builds that a benchmark case is measured with, one for each compiler.

SPDX-License-Identifier: Apache-2.0
"""
import json
import os
import pathlib
import re
import shlex
import shutil
import subprocess

from runner.case import Failure, ROOT

# The compilers that a case may name, and what the build folder of each adds to BUILD_DIR's name.
COMPILERS = {"g++": "", "clang++-19": "-clang"}
# Peers that no package has: a checkout, that a variable of the environment names.
CHECKOUTS = ("USCHED_DIR", "CPPCORO_DIR")


class Build:
    """A build folder: where a compiler's programs are."""

    def __init__(self, compiler, folder):
        self.compiler = compiler
        self.folder = folder

    def make(self, case):
        """Configures it, if that was not done, and brings the case's programs up to date."""
        settings = [f"-D{name}={os.environ[name]}" for name in CHECKOUTS if name in os.environ]
        if not (self.folder / "CMakeCache.txt").exists():
            print(f"configuring for {self.compiler}", flush=True)
            settings += [f"-DCMAKE_CXX_COMPILER={self.compiler}"]
            settings += ["-DWEFT_TESTS=OFF", "-DWEFT_EXAMPLES=OFF"]
            command = ["cmake", "--preset", "bench", "--log-level=NOTICE", "-B", self.folder]
            checked(command + settings, stdout=subprocess.DEVNULL)
        elif settings:
            checked(["cmake", *settings, self.folder], stdout=subprocess.DEVNULL)
        used = self.setting("CMAKE_CXX_COMPILER")
        if pathlib.Path(used).name != self.compiler:
            raise Failure(f"the build folder for {self.compiler} is configured for {used}")
        targets = [f"bench_case_{name}" for name in case.uses()]
        checked(["cmake", "--build", self.folder, "--parallel", "--target", *targets])

    def setting(self, name):
        cache = (self.folder / "CMakeCache.txt").read_text()
        found = re.search(rf"^{re.escape(name)}:\w+=(.*)$", cache, re.MULTILINE)
        return found[1] if found else ""

    def version(self):
        command = [self.setting("CMAKE_CXX_COMPILER"), "--version"]
        first = subprocess.run(command, capture_output=True, text=True, check=True).stdout
        return first.splitlines()[0]

    def flags(self, case):
        """What all of the case's programs are compiled with."""
        commands = self.folder / "compile_commands.json"
        entries = json.loads(commands.read_text()) if commands.exists() else []
        sets = [without_paths(shlex.split(entry["command"])[1:]) for entry in entries
                if f"/bench/cases/{case.name}/" in entry["file"]]
        return " ".join(flag for flag in sets[0] if all(flag in s for s in sets)) if sets else ""

    def program(self, case, program):
        """The command that runs a program, or None and the reason why there is none."""
        programs = self.folder / "bench"
        places = {"bin": programs / case.name, "bench": programs, "case": case.folder}
        command = program.get("command", ["{bin}/" + program["name"]])
        command = [word.format(**places) for word in command]
        if shutil.which(command[0]) is None:
            return None, f"{pathlib.Path(command[0]).name} is not there"
        return command, None


def without_paths(arguments):
    kept, rest = [], iter(arguments)
    for argument in rest:
        if argument in ("-o", "-c", "-isystem", "-I"):
            next(rest, None)
        elif not argument.startswith("-I") and "/" not in argument:
            kept.append(argument)
    return kept


def checked(command, **how):
    if subprocess.run(command, cwd=ROOT, **how).returncode != 0:
        raise Failure(f"failed: {pathlib.Path(command[0]).name} {command[1]}")


def builds_for(case, build_dir, compilers):
    """One for each of the compilers that is there."""
    builds = []
    for compiler in compilers:
        if shutil.which(compiler) is None:
            print(f"{case.name}: {compiler} is skipped: it is not there")
            continue
        folder = build_dir.with_name(build_dir.name + COMPILERS[compiler])
        builds.append(Build(compiler, folder))
        builds[-1].make(case)
    return builds
