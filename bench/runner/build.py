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
        self.failed = {}  # what was not built, (case, name), and why

    def make(self, case):
        """Configures it, each time, for what it looks for may have come since; and brings the
        case's programs up to date. A peer that does not compile is left out."""
        settings = [f"-D{name}={os.environ[name]}" for name in CHECKOUTS if name in os.environ]
        if not (self.folder / "CMakeCache.txt").exists():
            print(f"configuring for {self.compiler}", flush=True)
            settings += [f"-DCMAKE_CXX_COMPILER={self.compiler}"]
            settings += ["-DWEFT_TESTS=OFF", "-DWEFT_EXAMPLES=OFF", "--preset", "bench"]
        checked(["cmake", "--log-level=NOTICE", *settings, "-B", self.folder],
                stdout=subprocess.DEVNULL)
        used = self.setting("CMAKE_CXX_COMPILER")
        if pathlib.Path(used).name != self.compiler:
            raise Failure(f"the build folder for {self.compiler} is configured for {used}")
        build = ["cmake", "--build", self.folder, "--parallel", "--target"]
        targets = [f"bench_case_{name}" for name in case.uses()]
        if case.left_out:
            targets = ["bench_launch", *(f"bench_{name}_{program}" for name in case.uses()
                                         for program in self.programs_of(name, case.left_out))]
        complete = subprocess.run([*build, *targets, "--", "-k", "0"], cwd=ROOT).returncode == 0
        for name in case.uses():
            programs = [] if complete else self.programs_of(name, case.left_out)
            self.look_for_failures(name, build, programs)
        if not complete and not self.failed:
            raise Failure(f"failed: cmake --build {self.folder}")

    def look_for_failures(self, case, build, names):
        """What of these programs is not built stands in `failed`; none of an older state is left,
        and beside its place the reason, for programs that start others (ring/play.hpp)."""
        programs = self.folder / "bench" / case
        for old in programs.glob("*.failed"):
            old.unlink()
        for name in names:
            done = subprocess.run([*build, f"bench_{case}_{name}"], cwd=ROOT, text=True,
                                  stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
            if done.returncode == 0:
                continue
            if name.startswith("weft"):
                raise Failure(f"{case}/{name} ({self.compiler}) does not compile")
            why = "does not compile: " + first_error(done.stdout)
            print(f"{case}/{name} ({self.compiler}) {why}", flush=True)
            self.failed[case, name] = why
            (programs / name).unlink(missing_ok=True)
            programs.mkdir(parents=True, exist_ok=True)
            (programs / f"{name}.failed").write_text(why + "\n")

    def programs_of(self, case, left_out):
        command = ["cmake", "--build", self.folder, "--target", "help"]
        known = subprocess.run(command, capture_output=True, text=True, check=True).stdout
        return sorted(set(re.findall(rf"\bbench_{case}_(\w+)(?=:)", known)) - set(left_out))

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
                if any(f"/bench/cases/{name}/" in entry["file"] for name in case.uses())]
        return " ".join(flag for flag in sets[0] if all(flag in s for s in sets)) if sets else ""

    def program(self, case, program):
        """The command that runs a program, or None and the reason why there is none."""
        programs = self.folder / "bench"
        places = {"bin": programs / case.name, "bench": programs, "case": case.folder}
        command = program.get("command", ["{bin}/" + program["name"]])
        command = [word.format(**places) for word in command]
        if why := self.failed.get(tuple(pathlib.Path(command[0]).parts[-2:])):
            return None, why
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


def first_error(text):
    """Of what a compiler complained of, without paths of this machine: one short line."""
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    errors = [line for line in lines if re.search(r"\b(error|undefined reference)\b", line)]
    # Not everybody says "error"; the last line is ninja's own.
    error = next(iter(errors + lines[-2:]), "no reason was given")
    return re.sub(r"(\.\./)+", "", error.replace(f"{ROOT}/", ""))[:160]


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
