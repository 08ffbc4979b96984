#!/usr/bin/env python3
"""without_packages.py - the library compiles where nothing but a compiler is installed.

A file that uses valgrind's headers, liburing or c-ares if they are there is compiled as if they
were not, with warnings as errors, as `make run` does it on a new machine.

SPDX-License-Identifier: Apache-2.0
"""
import os
import pathlib
import re
import subprocess
import sys

ROOT = pathlib.Path(os.environ.get("SOURCE_DIR", pathlib.Path(__file__).parents[2]))
CXX = os.environ.get("CXX", "g++")
FLAGS = ["-std=c++23", "-O1", "-Wall", "-Wextra", "-Wconversion", "-Wsign-conversion", "-Werror",
         f"-I{ROOT}/include", f"-I{ROOT}/src", "-DWEFT_NO_VALGRIND"]
OPTIONAL = re.compile(r'"base/valgrind\.hpp"|WEFT_HAS_')

wrong = []
sources = [path for folder in ("src/*", "tests/programs")
           for path in sorted(ROOT.glob(f"{folder}/*.cpp")) if OPTIONAL.search(path.read_text())]
for path in sources:
    command = [CXX, *FLAGS, f"-I{ROOT}/tests/support", "-S", "-o", "/dev/null", path]
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode != 0:
        wrong.append(done.stderr)
for path in sorted(ROOT.glob("src/**/*.?pp")):
    if path.name != "valgrind.hpp" and re.search(r"#include <valgrind/", path.read_text()):
        wrong.append(f"{path.relative_to(ROOT)}: valgrind's headers come by base/valgrind.hpp")
print("\n".join(wrong) or f"{len(sources)} files")
sys.exit(1 if wrong or not sources else 0)
