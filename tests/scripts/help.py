#!/usr/bin/env python3
"""help.py - everything that can be started says what it is when it is asked by --help.

SPDX-License-Identifier: Apache-2.0
"""
import os
import pathlib
import subprocess
import sys

ROOT = pathlib.Path(os.environ.get("SOURCE_DIR", pathlib.Path(__file__).parents[2]))
BUILD = pathlib.Path(os.environ.get("PROGRAM_DIR", ROOT / "build/dev/tests/programs")).parents[1]
EMULATOR = os.environ.get("EMULATOR", "").split()


def programs():
    """(command, what its help must name)"""
    for path in sorted([*ROOT.glob("tools/*"), ROOT / "bench/run", ROOT / "bench/plot",
                        *ROOT.glob("bench/cases/*/*.sh")]):
        if path.is_file():
            yield [path], path.name
    for folder in ("examples", "bench", "bench/*"):
        for path in sorted(BUILD.glob(f"{folder}/*")):
            if path.is_file() and os.access(path, os.X_OK):
                # Those of src/*/*_bench.cpp have the help of Google's library.
                name = "benchmark" if path.name.endswith("_bench") else path.name
                yield [*EMULATOR, path], name


wrong, count = [], 0
# Those in other languages are built with bench/ only: here it is seen whether they know the word.
for source in sorted(ROOT.glob("bench/cases/*/*.*")):
    if source.suffix in (".go", ".rs", ".rb") and '"--help"' not in source.read_text():
        wrong.append(f"{source.relative_to(ROOT)}: does not know --help")
for command, name in programs():
    count += 1
    # Benchmarks of other languages, and Google's library, know the long word alone.
    for word in ["--help"] if "/bench/" in str(command[-1]) else ["--help", "-h"]:
        try:
            done = subprocess.run([*map(str, command), word], capture_output=True, text=True,
                                  timeout=60)
        except subprocess.TimeoutExpired:
            wrong.append(f"{command[-1]} {word}: does not answer")
            continue
        except OSError as error:
            wrong.append(f"{command[-1]}: cannot be started: {error}")
            continue
        if done.returncode != 0 or name not in done.stdout:
            wrong.append(f"{command[-1]} {word}: status {done.returncode}, "
                         f"says: {done.stdout[:80]!r}")
print("\n".join(wrong) or f"{count} programs")
sys.exit(1 if wrong else 0)
