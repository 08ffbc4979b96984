#!/usr/bin/env python3
"""tour.py - the tour has the stations that it is to have, and they tell figures of their own; and
as `make run` builds it, the whole is over within a minute.

SPDX-License-Identifier: Apache-2.0
"""
import os
import pathlib
import re
import resource
import shlex
import subprocess
import sys
import time

EXAMPLES = pathlib.Path(os.environ["PROGRAM_DIR"]).parent.parent / "examples"
COMMAND = [*shlex.split(os.environ.get("EMULATOR", "")), str(EXAMPLES / "tour")]
OWN = ["loop", "steps", "back_ends", "same_fringe", "ring", "million", "first_of_two", "actor"]
OTHER_PROGRAMS = ["level_loader", "caching_service", "load_generator"]
FIGURES = {"loop": "ns a yield", "steps": "ns a step", "same_fringe": "ns a leaf",
           "first_of_two": "us from the answer"}
# By the clock it is a minute on a machine that does nothing else; here others may be at work, so it
# is counted what the tour itself used of the processors, which is more than the clock says.
SECONDS, BY_THE_CLOCK = 60, 180
AS_MAKE_RUN = (os.environ.get("BUILD_TYPE") == "RelWithDebInfo" and not os.environ.get("SANITIZE")
               and not os.environ.get("EMULATOR"))


def tour(*arguments):
    return subprocess.run([*COMMAND, *arguments], capture_output=True, text=True, check=True).stdout


def how_long():
    """What is wrong with the time that the whole tour takes."""
    begun = time.monotonic()
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    said = tour()
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    passed = time.monotonic() - begun
    of_processors = used.ru_utime + used.ru_stime - before.ru_utime - before.ru_stime
    print(f"the whole tour: {passed:.0f} s, and {of_processors:.0f} s of the processors")
    wrong = []
    if of_processors > SECONDS or passed > BY_THE_CLOCK:
        wrong.append(f"the tour takes more than {SECONDS} s:\n{said}")
    if not re.search(r"^\d+ s\. One station again", said, re.MULTILINE):
        wrong.append("the tour does not say how long it took")
    return wrong


if not (EXAMPLES / "tour").exists():
    sys.exit(77)
found = [line.split()[0] for line in tour("--list").splitlines()]
wanted = OWN + [name for name in OTHER_PROGRAMS if (EXAMPLES / name).exists()]
wrong = [f"there is no station {name}" for name in wanted if name not in found]

said = tour("--quick", *FIGURES)
for name, unit in FIGURES.items():
    if not re.search(rf"now: +[0-9.]+ {unit}", said):
        wrong.append(f"station {name} does not tell its {unit}:\n{said}")
if AS_MAKE_RUN:
    wrong += how_long()

print("\n".join(wrong) or f"{len(found)} stations")
sys.exit(1 if wrong else 0)
