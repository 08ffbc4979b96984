"""results.py - what comes out of a run: the JSON file, and how it grows from run to run.

Runs of one machine, one state of the sources and the same compilers add up: their rounds stand
after each other in the file. Anything else replaces what was there.

SPDX-License-Identifier: Apache-2.0
"""
import datetime
import json
import os
import pathlib
import platform
import re
import subprocess

from runner.case import Failure, ROOT
from runner.measure import Measured, interval, summary


def combined(measured, key, other, combine):
    """Two rows round by round; None if one of them is missing."""
    if key not in measured or other not in measured:
        return None
    pairs = zip(measured[key].values, measured[other].values)
    return [None if a is None or b is None else combine(a, b) for a, b in pairs]


def compared(measured, key, other, combine):
    """The same as a summary."""
    values = combined(measured, key, other, combine)
    return None if values is None else summary(values)


def ratio(a, b):
    return a / b if b != 0 else None


def difference(a, b):
    return a - b


BOUNDS = {
    "at_most": ("at most", lambda value, bound: value <= bound),
    "at_least": ("at least", lambda value, bound: value >= bound),
    "below": ("below", lambda value, bound: value < bound),
}


def show(value):
    if abs(value) >= 1000:
        return f"{value:,.0f}"
    return f"{value:.0f}" if abs(value) >= 100 else f"{value:.3g}"


def judge(case, measured, compilers):
    """Each figure of the case, for each compiler and column that it is for."""
    judged = []
    for figure in case.figures:
        kind = next(key for key in BOUNDS if key in figure)
        words, holds = BOUNDS[kind]
        for compiler in figure.get("compilers", compilers):
            for column in figure.get("at", [None]):
                value = figure_value(figure, measured, compiler, column)
                judged.append({
                    "says": figure["says"],
                    "compiler": compiler,
                    "at": column,
                    "value": value,
                    "bound": f"{words} {show(figure[kind])}",
                    "met": None if value is None else holds(value["median"], figure[kind]),
                })
    return judged


def figure_value(figure, measured, compiler, column):
    key = (compiler, figure["of"], column)
    if "over" in figure:
        values = combined(measured, key, (compiler, figure["over"], column), ratio)
    elif "minus" in figure:
        values = combined(measured, key, (compiler, figure["minus"], column), difference)
    else:
        values = measured[key].values if key in measured else None
    summed = summary(values) if values is not None else None
    between = interval(values) if summed else None
    return summed if between is None else {**summed, "interval": between}


# --- where and what


def machine():
    cpu = re.search(r"^model name\s*:\s*(.*)$", read("/proc/cpuinfo"), re.MULTILINE)
    memory = re.search(r"^MemTotal:\s*(\d+)", read("/proc/meminfo"), re.MULTILINE)
    system = re.search(r'^PRETTY_NAME="?([^"\n]*)', read("/etc/os-release"), re.MULTILINE)
    return {
        "cpu": cpu[1] if cpu else platform.machine(),
        "cpus": os.cpu_count(),
        "memory_gib": round(int(memory[1]) / 2**20, 1) if memory else None,
        "system": system[1] if system else platform.system(),
        "kernel": platform.release(),
    }


def read(path):
    try:
        return pathlib.Path(path).read_text()
    except OSError:
        return ""


def commit():
    """The last commit that changed what is measured, with a + if there are changes since; None
    without git. Results and documents do not count."""
    paths = ["--", "include", "src", "bench", "cmake", "CMakeLists.txt", "CMakePresets.json",
             ":(exclude)*.md", ":(exclude)bench/results"]
    last = git("log", "-1", "--format=%h", "--abbrev=10", *paths)
    if not last:
        return None
    return changed(last) if git("status", "--porcelain", *paths) else last


def lost(commit):
    """Whether the history of HEAD has no such commit, since it was rewritten: nobody can look at
    what was measured. Where there is no history at hand, nothing is said."""
    if commit is None or git("rev-parse", "--is-shallow-repository") != "false":
        return False
    named = git("rev-parse", "--verify", "--quiet", commit.rstrip("+") + "^{commit}")
    return not named or git("merge-base", "HEAD", named) != named


def changed(commit):
    """The mark of a commit with changes; such runs do not add up."""
    return commit if commit is None or commit.endswith("+") else f"{commit}+"


def git(*arguments):
    try:
        done = subprocess.run(["git", *arguments], cwd=ROOT, capture_output=True, text=True)
    except OSError:
        return ""
    return done.stdout.strip() if done.returncode == 0 else ""


# --- runs that add up


def adds_up(old, case, where, what, compilers):
    """Whether a run with these can go on where the old results end."""
    return (bool(old) and old.get("case") == case.name and old.get("machine") == where
            and what is not None and not what.endswith("+") and old.get("commit") == what
            and old.get("compilers") == compilers
            and all("values" in p["seconds"] for p in old.get("programs", []) if "seconds" in p))


def put_before(old, measured, runs, rounds):
    """Puts the old rounds before the new ones; returns how many there are now."""
    before = old["rounds"]
    for entry in measured.values():
        entry.values = [None] * before + entry.values
    for row in old["rows"]:
        key = (row["compiler"], row["row"], row.get("at"))
        entry = measured.setdefault(
            key, Measured(row["program"], row.get("unit", ""), [None] * (before + rounds)))
        entry.values[:before] = row["values"]
        if "median" in row or entry.summary() is None:  # not why there was none before
            entry.note = entry.note or row.get("note")
    for run in runs:
        for program in old["programs"]:
            if (program["program"], program["compiler"]) == run.key:
                run.about = run.about or program.get("about")
                run.error = run.error or program.get("error")
                if "seconds" in program:  # it did not fail each time
                    both = zip(program["seconds"]["values"], program["peak_rss_kib"]["values"])
                    run.usage[:0] = [{"seconds": s, "peak_rss_kib": k} for s, k in both]
    return before + rounds


def results(case, where, what, compilers, runs, skipped, measured, rounds):
    """What is written to bench/results/CASE.json."""
    references = {row: table.get("reference") for table in case.tables for row in table["rows"]}
    rows = []
    for (compiler, row, column), entry in measured.items():
        if row not in references:
            continue  # of an older form of the case
        reference = (compiler, references[row], column)
        against = compared(measured, (compiler, row, column), reference, ratio)
        rows.append({
            "row": row, "at": column, "compiler": compiler, "program": entry.program,
            "unit": entry.unit, **(entry.summary() or {}), "values": entry.values,
            "ratio": against, "note": entry.note,
        })
    programs = [{
        "program": run.name, "compiler": run.compiler, "about": run.about, "error": run.error,
        "peak_rss_kib": usage(run, "peak_rss_kib"), "seconds": usage(run, "seconds"),
    } for run in runs]
    return {
        "case": case.name,
        "title": case.title,
        "date": datetime.datetime.now(datetime.timezone.utc).strftime("%Y-%m-%d"),
        "commit": what,
        "rounds": rounds,
        "machine": where,
        "compilers": compilers,
        "skipped": skipped,
        "figures": judge(case, measured, list(compilers)),
        "rows": [{k: v for k, v in row.items() if v is not None} for row in rows],
        "programs": [{k: v for k, v in p.items() if v is not None} for p in programs],
    }


def usage(run, key):
    values = [u[key] for u in run.usage]
    return {**summary(values), "values": values} if values else None


def load(path):
    """What stands there; None if there is no such file."""
    try:
        return json.loads(path.read_text()) if path.exists() else None
    except ValueError as error:
        raise Failure(f"{path} is no JSON ({error}); remove it, or take it back from git") from None


def as_text(found):
    text = json.dumps(found, indent=1)
    # What has nothing but numbers in it stands on one line.
    for numbers in (r'(\[)\s+([^\[\]{}"]*?)\s+(\])', r'(\{)\s+("median"[^{}]*?)\s+(\})'):
        text = re.sub(numbers, lambda m: m[1] + " ".join(m[2].split()) + m[3], text)
    return without_own_paths(text) + "\n"


def without_own_paths(text):
    """What a peer complains of may name folders of this machine."""
    for path, name in ((ROOT, "."), (pathlib.Path(os.path.expanduser("~")), "~")):
        if len(path.parts) > 1:  # a home may be /
            text = re.sub(rf"(?<![\w.]){re.escape(str(path))}(?![\w.-])", name, text)
    return text


def seconds_before(found):
    """{(program, compiler): seconds} of an earlier run, for the estimate."""
    programs = found["programs"] if found else []
    return {(p["program"], p["compiler"]): p["seconds"]["median"] for p in programs
            if "seconds" in p}
