#!/usr/bin/env python3
"""bench_sources.py - the programs of bench/cases compile, as far as their peers' headers are here.

No test builds them, for they need an optimised build; so what changes in the library could break
them, and nobody would know before the next measurement. This only looks at syntax and warnings.

SPDX-License-Identifier: Apache-2.0
"""
import concurrent.futures
import os
import pathlib
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(os.environ.get("SOURCE_DIR", pathlib.Path(__file__).parents[2]))
CXX = os.environ.get("CXX", "g++")
FLAGS = ["-std=c++23", "-Wall", "-Wextra", "-Wconversion", "-Wsign-conversion", "-Werror",
         *(f"-I{ROOT / folder}" for folder in ("include", "src", "bench"))]
# What a file's name begins with, and a header that it needs.
PEERS = {"boost_": "boost/context/fiber.hpp", "boostfiber": "boost/fiber/all.hpp",
         "boostasio": "boost/asio.hpp", "tbb": "tbb/task_group.h",
         "cppcoro": "cppcoro/single_consumer_async_auto_reset_event.hpp"}
# Compiled once for all. Whether each file includes what it needs, only a run of bench/run tells.
COMMON = "#include <weft/weft.hpp>\n"
# The library's files that have prefetches, as the rows without them compile them.
NO_PREFETCH = ["exec/loop", "exec/pool_worker", "fiber/block_depot", "fiber/straight_wait"]


def compiled(*arguments, text=None, folder=None):
    return subprocess.run([CXX, *FLAGS, *map(str, arguments)], input=text, capture_output=True,
                          text=True, cwd=folder)


def is_there(header):
    source = f"#if !__has_include(<{header}>)\n#error\n#endif\n"
    return compiled("-fsyntax-only", "-x", "c++", "-", text=source).returncode == 0


missing = [start for start, header in PEERS.items() if not is_there(header)]
jobs = [["-include", "common.hpp", path] for path in sorted(ROOT.glob("bench/cases/*/*.cpp"))
        if not path.name.startswith(tuple(missing))]
jobs += [["-include", ROOT / "bench/support/no_prefetch.hpp", ROOT / f"src/{name}.cpp"]
         for name in NO_PREFETCH]
with tempfile.TemporaryDirectory() as folder, \
        concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as workers:
    (pathlib.Path(folder) / "common.hpp").write_text(COMMON)
    done = [compiled("-x", "c++-header", "common.hpp", "-o", "common.hpp.gch", folder=folder)]
    done += workers.map(lambda job: compiled("-fsyntax-only", *job, folder=folder), jobs)
wrong = [result.stderr for result in done if result.returncode != 0]
print("\n".join(wrong) or f"{len(jobs)} files; without headers: {', '.join(missing) or 'none'}")
sys.exit(1 if wrong else 0)
