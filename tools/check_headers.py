#!/usr/bin/env python3
"""check_headers.py - every public header compiles alone and brings in no OS header.

Compiles each header under include/weft by itself with g++, with our warnings as errors; allows no
include but of weft's headers and the standard library's; and sees that weft.hpp reaches every part.
clang++-19, if it is there, compiles weft.hpp and what that does not reach: whether a header
includes what it needs is the same for both, as they have the same standard library, and a warning
is found there. Run it from anywhere; with arguments, these compilers compile every header
(tools/soak: both).

With --of-sources those headers are left out that a source of the library includes first: who
compiles that with warnings as errors and without precompiled headers has compiled them alone, as
the preset release does.

SPDX-License-Identifier: Apache-2.0
"""
import concurrent.futures
import os
import pathlib
import re
import shutil
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
PUBLIC = ROOT / "include" / "weft"
# More than our own code is compiled with: it shall be quiet in what users compile, too.
FLAGS = ("-std=c++23 -fsyntax-only -Wall -Wextra -Wconversion -Wsign-conversion -Wpedantic "
         "-Wshadow -Werror").split()
INCLUDE = re.compile(r'\s*#\s*include\s*[<"]([^>"]+)[>"]')
# The standard library's have neither a folder nor an ending; <csignal> is the system's even so.
FOREIGN_HEADER = re.compile(r"(?!weft/).*/.*|.*\.h|csignal")


def includes(header):
    for number, line in enumerate(header.read_text().splitlines(), 1):
        match = INCLUDE.match(line)
        if match:
            yield number, match[1]


def check_os_headers(header, problems):
    for number, name in includes(header):
        if FOREIGN_HEADER.fullmatch(name):
            problems.append(f"{header.relative_to(ROOT)}:{number}: includes <{name}>")


def reached_from_umbrella():
    """What weft.hpp includes, itself with it."""
    reached, to_read = set(), [PUBLIC / "weft.hpp"]
    while to_read:
        header = to_read.pop()
        if header in reached or not header.exists():
            continue
        reached.add(header)
        for _, name in includes(header):
            to_read += [ROOT / "include" / name, (header.parent / name).resolve()]
    return reached


def check_umbrella(headers, reached, problems):
    """Every part with a public header is reached from weft.hpp."""
    for part in sorted({h.parent for h in headers if h.parent.parent == PUBLIC}):
        if not any(h.parent == part for h in reached):
            problems.append(f"include/weft/weft.hpp: does not reach the part {part.name}")


def first_of_sources():
    """The headers that a source of the library, on any machine, includes before anything else."""
    for source in (ROOT / "src").glob("*/*.cpp"):
        if not source.stem.endswith(("_test", "_bench", "x86_64", "aarch64")):
            match = re.match(r"(//.*\n|\n)*#include <(.+)>", source.read_text())
            if match:
                yield ROOT / "include" / match[2]


def compile_alone(job):
    compiler, header = job
    source = f'#include <{header.relative_to(ROOT / "include")}>\n'
    command = [compiler, *FLAGS, "-I", str(ROOT / "include"), "-x", "c++", "-"]
    done = subprocess.run(command, input=source, capture_output=True, text=True)
    if done.returncode == 0:
        return None
    return f"{header.relative_to(ROOT)}: does not compile alone with {compiler}\n{done.stderr}"


def main():
    if {"-h", "--help"} & set(sys.argv):
        print(__doc__.split("SPDX")[0].strip())
        return 0
    named = [a for a in sys.argv[1:] if a != "--of-sources"]
    compilers = [c for c in named or ["g++", "clang++-19"] if shutil.which(c)]
    thorough = compilers if named else compilers[:1]
    compiled = set(first_of_sources()) if "--of-sources" in sys.argv else set()
    headers = sorted(PUBLIC.rglob("*.hpp"))
    problems = []
    for header in headers:
        check_os_headers(header, problems)
    reached = reached_from_umbrella()
    check_umbrella(headers, reached, problems)
    jobs = [(compiler, header) for header in headers for compiler in compilers
            if (compiler in thorough and header not in compiled)
            or header.name == "weft.hpp" or header not in reached]
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as workers:
        problems += filter(None, workers.map(compile_alone, jobs))
    if not headers or not compilers:
        problems.append("no header, or no compiler")
    print("\n".join(problems) if problems else f"headers: {len(headers)}, {', '.join(compilers)}")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
