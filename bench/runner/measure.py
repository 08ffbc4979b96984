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

    @property
    def key(self):
        return (self.name, self.compiler)

    def go(self, quick, at_most=None):
        """Runs it once; returns its rows."""
        command = self.command + (["--quick"] if quick else [])
        timeout = min(self.timeout, at_most) if at_most else self.timeout
        try:
            done = subprocess.run(command, capture_output=True, text=True, timeout=timeout)
        except subprocess.TimeoutExpired:
            raise Failure(f"{self}: not done after {timeout:.0f} s") from None
        sys.stderr.write(done.stderr)
        try:
            lines = [json.loads(line) for line in done.stdout.splitlines()]
        except json.JSONDecodeError:
            raise Failure(f"{self}: printed what is no JSON line:\n{done.stdout}") from None
        usage = lines.pop() if lines and "status" in lines[-1] else {"status": done.returncode}
        rows = self.rows_of(lines)
        if done.returncode != 0 or usage["status"] != 0 or "seconds" not in usage:
            failure = Failure(f"{self}: ended with status {usage['status']}{said(done.stderr)}")
            failure.rows = rows
            raise failure
        self.usage.append(usage)
        return rows

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
            if command is None:
                skipped.append(f"{program['name']} ({build.compiler}): {why}")
            else:
                launcher = builds[0].folder / "bench" / "launch"
                runs.append(Run(case, build, program, command, launcher))
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

    With a deadline, rounds and programs for which there is no time are left out, with a word; the
    first round begins in any case."""
    measured = {}
    progress = Progress(case.name, [run.key for _ in range(rounds) for run in runs], estimate,
                        deadline=deadline)
    number = 0
    while number < rounds:
        if deadline and number and time.monotonic() + estimated(runs, estimate) > deadline:
            break
        for run in runs:
            progress.begin(run.name + " " + run.compiler)
            one_run(measured, run, number, estimate, deadline, progress)
            progress.end()
        number += 1
        for entry in measured.values():
            entry.fill(number)
        progress.after_round(number, rounds)
    progress.finish()
    return measured, number


def estimated(runs, estimate):
    return sum(estimate.of(run.key) for run in runs)


def one_run(measured, run, number, estimate, deadline, progress):
    left = deadline - time.monotonic() if deadline else None
    if left is not None and left < min(1.2 * estimate.of(run.key), 20):
        progress.line(f"{run}: left out, no time")
        return
    try:
        collect(measured, run, run.go(quick=False, at_most=left), number)
    except Failure as failure:
        out_of_time = left is not None and "not done after" in str(failure)
        if not run.is_peer() and not out_of_time:
            raise
        run.error = str(failure)
        collect(measured, run, failure.rows, number)  # what it had done by then
        progress.line(f"failed, and left as a gap: {failure}")


def check_answers(runs):
    """Every program once, with tiny counts."""
    for run in runs:
        print(f"{run}: right, {len(run.go(quick=True))} rows", flush=True)
