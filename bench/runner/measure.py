"""measure.py - runs the programs of a case in turns, and collects what they print.

A program prints a JSON line for each row (bench/support/row.hpp). One of weft's own that ends with
a status other than 0 ends the run. A peer that fails does not: its rows have no value for that
round, and the error stands where the value would be.

SPDX-License-Identifier: Apache-2.0
"""
import json
import math
import os
import statistics
import subprocess
import sys
import time

from runner.case import Failure, ROOT
from runner.progress import Progress


class Interrupted(Exception):
    """Somebody pressed Ctrl-C. Its arguments are what measure() would have returned: the whole
    rounds until then, one at least."""


class Run:
    """One program of a case with one compiler, and everything that it printed so far."""

    def __init__(self, case, build, program, command, launcher):
        self.case = case
        self.compiler = build.compiler
        self.name = program["name"]
        cpu = "all" if program.get("cpus", "one") == "all" else str(max(os.sched_getaffinity(0)))
        self.command = [launcher, cpu, *command]
        self.timeout = program.get("timeout", 120)
        self.about = None
        self.usage = []
        self.error = None  # the last failure of a peer
        self.broken = None  # why there is no program

    @property
    def key(self):
        return (self.name, self.compiler)

    def go(self, quick, at_most=None):
        """Runs it once; returns its rows."""
        if self.broken:
            raise Failure(f"{self}: {self.broken}")
        command = self.command + (["--quick"] if quick else [])
        timeout = min(self.timeout, at_most) if at_most else self.timeout
        try:
            done = subprocess.run(command, capture_output=True, text=True, timeout=timeout)
        except subprocess.TimeoutExpired as expired:
            failure = Failure(f"{self}: not done after {timeout:.0f} s")
            whole_lines = (expired.stdout or b"").decode().rpartition("\n")[0]
            failure.rows = self.rows_of(self.lines_of(whole_lines))
            raise failure from None
        sys.stderr.write(done.stderr)
        lines = self.lines_of(done.stdout)
        usage = lines.pop() if lines and "status" in lines[-1] else {"status": done.returncode}
        rows = self.rows_of(lines)
        if done.returncode != 0 or usage["status"] != 0 or "seconds" not in usage:
            failure = Failure(f"{self}: ended with status {usage['status']}{said(done.stderr)}")
            failure.rows = rows
            raise failure
        self.usage.append(usage)
        return rows

    def lines_of(self, text):
        try:
            return [json.loads(line) for line in text.splitlines()]
        except json.JSONDecodeError:
            raise Failure(f"{self}: printed what is no JSON line:\n{text}") from None

    def rows_of(self, lines):
        rows = []
        for line in lines:
            if "about" in line:
                self.tell(line["about"])
            elif line["row"] in self.case.rows:
                rows.append(line)
            else:
                raise Failure(f"{self}: no table has the row '{line['row']}'")
        return rows

    def tell(self, about):
        """A program may speak for several peers."""
        known = self.about.split("; ") if self.about else []
        self.about = "; ".join(known if about in known else [*known, about])

    def is_peer(self):
        return not self.name.startswith("weft")

    def __str__(self):
        return f"{self.case.name}/{self.name} ({self.compiler})"


def said(complaint):
    """The first line of what a program complained of, without paths of this machine."""
    lines = [line.strip() for line in complaint.splitlines() if line.strip()]
    return f": {lines[0]}".replace(f"{ROOT}/", "")[:200] if lines else ""


def runs_of(case, builds):
    """Every program with every compiler; and the words for those that are skipped."""
    runs, skipped = [], []
    for build in builds:
        for program in case.programs:
            command, why = build.program(case, program)
            if command is None and why not in build.failed.values():
                skipped.append(f"{program['name']} ({build.compiler}): {why}")
            else:
                launcher = builds[0].folder / "bench" / "launch"
                runs.append(Run(case, build, program, command or [], launcher))
                runs[-1].broken = why
    return runs, skipped


class Measured:
    """All values of a row (in a column, by a compiler): one a round, None where there is none."""

    def __init__(self, program, unit, values=(), note=None):
        self.program = program
        self.unit = unit
        self.note = note
        self.values = list(values)

    def add(self, line, number):
        """The value of round `number`; rounds before it that had none stay empty."""
        self.fill(number)
        self.values.append(line["value"])
        self.note = line.get("note", self.note)

    def fill(self, rounds):
        self.values += [None] * (rounds - len(self.values))

    def summary(self):
        return summary(self.values)


def summary(values):
    known = [value for value in values if value is not None]
    if not known:
        return None
    return {"median": statistics.median(known), "min": min(known), "max": max(known)}


def interval(values):
    """Where the median of what was measured from lies, with a probability of 95 % at least: two of
    the values, whatever their distribution. None for fewer than six."""
    known = sorted(value for value in values if value is not None)
    count = len(known)
    outside, total, cut = 0, 2 ** count, 0
    while 2 * (outside + math.comb(count, cut)) <= 0.05 * total:
        outside += math.comb(count, cut)
        cut += 1
    return [known[cut - 1], known[count - cut]] if cut else None


def collect(measured, run, rows, number):
    """Adds what a run printed in round `number`."""
    for line in rows:
        key = (run.compiler, line["row"], line.get("at"))
        entry = measured.setdefault(key, Measured(run.name, line.get("unit", "")))
        if len(entry.values) > number:
            raise Failure(f"{run}: '{line['row']}' is printed twice")
        entry.add(line, number)


def measure(case, runs, rounds, estimate, deadline=None):
    """{(compiler, row, column): Measured} and the number of rounds; the programs take turns.

    With a deadline, rounds for which there is no time are left out; the first begins in any case,
    and no program takes what the others need, so that a slow machine has a part of all. Ctrl-C
    takes back the round that runs, and ends it by Interrupted if there are whole ones."""
    measured = {}
    progress = Progress(case.name, [run.key for _ in range(rounds) for run in runs], estimate,
                        deadline=deadline)
    number = 0
    while number < rounds:
        if deadline and number and time.monotonic() + estimated(runs, estimate) > deadline:
            break
        used = [len(run.usage) for run in runs]
        try:
            one_round(measured, runs, number, estimate, deadline, progress)
        except KeyboardInterrupt:
            progress.finish()
            if number == 0:
                raise
            take_back(measured, runs, number, used)
            raise Interrupted(measured, number) from None
        number += 1
        for entry in measured.values():
            entry.fill(number)
        progress.after_round(number, rounds)
    progress.finish()
    return measured, number


def one_round(measured, runs, number, estimate, deadline, progress):
    for place, run in enumerate(runs):
        progress.begin(run.name + " " + run.compiler)
        at_most = most_for(runs[place:], estimate, deadline) if deadline else None
        one_run(measured, run, number, at_most, progress)
        progress.end()


def take_back(measured, runs, rounds, used):
    """What a round had measured that did not come to its end."""
    for entry in measured.values():
        del entry.values[rounds:]
        entry.fill(rounds)
    for run, count in zip(runs, used):
        del run.usage[count:]


def estimated(runs, estimate):
    return sum(estimate.of(run.key) for run in runs)


def most_for(runs, estimate, deadline):
    """The seconds that the first of these may take: what the others leave, or its share if they all
    need more than there is."""
    left = max(deadline - time.monotonic(), 1.0)
    needed = max(estimated(runs, estimate), 1e-9)
    return max(left - estimated(runs[1:], estimate), left * estimate.of(runs[0].key) / needed)


def one_run(measured, run, number, at_most, progress):
    try:
        collect(measured, run, run.go(quick=False, at_most=at_most), number)
    except Failure as failure:
        out_of_time = at_most is not None and "not done after" in str(failure)
        if not run.is_peer() and not out_of_time:
            raise
        run.error = str(failure)
        collect(measured, run, failure.rows, number)  # what it had done by then
        progress.line(f"failed, and left as a gap: {failure}")


def leave_gaps(measured, runs, rounds, before):
    """A row that has no value since its peer failed says so. Which rows those are that it never
    came to print is known from results before."""
    for run in runs:
        if run.error is None:
            continue
        known = [row for found in before if found for row in found["rows"]
                 if row["program"] == run.name and row["row"] in run.case.rows]
        for row in known:
            key = (run.compiler, row["row"], row.get("at"))
            measured.setdefault(key, Measured(run.name, row.get("unit", ""), [None] * rounds))
        for (compiler, _, _), entry in measured.items():
            mine = (entry.program, compiler) == run.key
            if mine and entry.note is None and entry.summary() is None:
                entry.note = run.error.removeprefix(f"{run}: ").replace("|", "/")[:80]


def check_answers(runs):
    """Every program once, with tiny counts."""
    for run in runs:
        if run.broken:
            print(f"{run}: left out, {run.broken}", flush=True)
            continue
        print(f"{run}: right, {len(run.go(quick=True))} rows", flush=True)
