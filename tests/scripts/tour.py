#!/usr/bin/env python3
"""tour.py - the tour has the stations that it is to have, and they tell figures of their own.

SPDX-License-Identifier: Apache-2.0
"""
import os
import pathlib
import re
import shlex
import subprocess
import sys

EXAMPLES = pathlib.Path(os.environ["PROGRAM_DIR"]).parent.parent / "examples"
COMMAND = [*shlex.split(os.environ.get("EMULATOR", "")), str(EXAMPLES / "tour")]
OWN = ["loop", "steps", "back_ends", "same_fringe", "ring", "million", "first_of_two", "actor"]
OTHER_PROGRAMS = ["level_loader", "caching_service", "load_generator"]
FIGURES = {"loop": "ns a yield", "steps": "ns a step", "same_fringe": "ns a leaf",
           "first_of_two": "us from the answer"}


def tour(*arguments):
    return subprocess.run([*COMMAND, *arguments], capture_output=True, text=True, check=True).stdout


if not (EXAMPLES / "tour").exists():
    sys.exit(77)
found = [line.split()[0] for line in tour("--list").splitlines()]
wanted = OWN + [name for name in OTHER_PROGRAMS if (EXAMPLES / name).exists()]
wrong = [f"there is no station {name}" for name in wanted if name not in found]

said = tour("--quick", *FIGURES)
for name, unit in FIGURES.items():
    if not re.search(rf"now: +[0-9.]+ {unit}", said):
        wrong.append(f"station {name} does not tell its {unit}:\n{said}")

print("\n".join(wrong) or f"{len(found)} stations")
sys.exit(1 if wrong else 0)
