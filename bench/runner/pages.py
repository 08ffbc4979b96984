"""pages.py - figures in the documents, which come from bench/results and from nowhere else.

A document has a place for them, and what stands between the two lines is written by bench/run and
bench/plot:

    <!-- figures: machine ring -->      where and with what a case was measured
    <!-- figures: measured -->          which cases were measured when, on what, at which commit
    <!-- figures: peers -->             which versions of the peers were measured, and where
    <!-- figures: costs -->             what costs what (COSTS below)
    <!-- figures: losses -->            bounds that were missed, and peers that are ahead of weft
    <!-- figures: others -->            cases that docs/benchmarks.md does not speak of by itself
    <!-- /figures -->

SPDX-License-Identifier: Apache-2.0
"""
import re

from runner import losses, tables
from runner.case import RESULTS, ROOT, Case, Failure, known_cases
from runner.results import load

PLACE = re.compile(r"(<!-- figures: (\w+)(?: (\w+))? -->\n).*?(<!-- /figures -->)", re.DOTALL)

# What it is, and where it is measured: case, row, column.
COSTS = [
    ("a switch, inlined, with no scheduler", "switch", "weft context, switch inlined", None),
    ("the same as a program gets it: context::swap", "switch", "weft context::swap", None),
    ("a coroutine's resume or yield", "switch", "weft coroutine, resume and yield", None),
    ("a generator's next value, one way", "switch", "weft generator", None),
    ("a yield to another fiber of a loop", "yield", "weft, own stacks", None),
    ("the same, swapped", "yield", "weft, swapped", None),
    ("the same, ucontext", "yield", "weft, ucontext", None),
    ("the same, a thread each", "yield", "weft, thread", None),
    ("a fiber that does nothing, born and ended on a loop", "spawn", "weft, own stacks", None),
    ("the same with a handle that is joined", "spawn", "weft, own stacks, joined", None),
    ("the same on a pool of two", "pool", "weft, spawn", "P = 2"),
    ("a lock and an unlock that nobody else wants", "locks", "weft::mutex", None),
    ("the same, two fibers on two threads", "locks", "weft::mutex, 2 fibers", None),
    ("a turn by a condition variable", "locks", "weft::condition_variable", None),
    ("an item through a channel of 0, one way", "channel", "weft, loop, ping-pong", None),
    ("an item through a channel of 128", "channel", "weft, loop, stream", None),
    ("an item by a select over four channels", "select", "weft, loop", None),
    ("a wake of a worker that spins", "wake", "weft, spinning", None),
    ("a wake of a worker that sleeps", "wake", "weft, asleep", None),
    ("a stack from a worker's cache, and back", "stack", "weft stack_cache", None),
    ("memory of a parked fiber, own stack", "memory", "weft, own stacks", "1,000,000"),
    ("the same, swapped", "memory", "weft, swapped", "1,000,000"),
]


def costs(_):
    lines = []
    for text, case, row, column in COSTS:
        found = load(RESULTS / f"{case}.json")
        entry = tables.find(found, row, "g++", column) if found else {}
        value = tables.cell(entry) if entry else "not measured yet"
        lines.append([text, value, short_machine(found),
                      f"[{case}](../bench/cases/{case}/README.md)"])
    return tables.table(["what", "g++", "machine", "case"], lines)


def short_machine(found):
    """Its CPU without what every name of one has ("Intel(R) Xeon(R) Processor" is an Intel Xeon),
    and how many."""
    if not found:
        return ""
    name = re.sub(r"\((R|TM)\)| @.*|\b(CPU|Processor)\b", " ", found["machine"]["cpu"])
    return f"{' '.join(name.split())}, {found['machine']['cpus']} CPUs"


def machine(case):
    found = load(RESULTS / f"{case}.json")
    if not found:
        return ["Not measured yet."]
    host = found["machine"]
    lines = [["machine", f"{host['cpu']}, {host['cpus']} CPUs, {host['memory_gib']} GiB"],
             ["system", f"{host['system']}, Linux {host['kernel']}"]]
    lines += [[name, about["version"]] for name, about in found["compilers"].items()]
    if peers := tables.peers(found):
        lines.append(["peers", "; ".join(peers)])
    lines += [["commit", commit_of(found)],
              ["measured", f"{found['date']}; medians of {found['rounds']} interleaved rounds, "
                           f"every value is in `bench/results/{case}.json`"]]
    return tables.table([f"case {case}", ""], lines)


def commit_of(found):
    """The runner has not always written it down. A + is for changes that were not committed."""
    return f"`{found['commit']}`" if found.get("commit") else "not recorded"


def peers(_):
    where = {}
    for name in known_cases():
        found = load(RESULTS / f"{name}.json")
        for version in tables.peers(found) if found else []:
            where.setdefault(version, []).append(name)
    return tables.table(["peer", "in the cases"],
                        [[version, ", ".join(names)] for version, names in sorted(where.items())])


def measured(_):
    lines = []
    for name in known_cases():
        found = load(RESULTS / f"{name}.json")
        link = f"[{name}](../bench/cases/{name}/README.md)"
        lines.append([link, Case(name).title] + (
            [found["date"], short_machine(found), commit_of(found), str(found["rounds"])] if found
            else ["not yet", "", "", ""]))
    return tables.table(["case", "", "measured on", "machine", "commit", "rounds"], lines)


def where_weft_loses(_):
    return losses.section([(Case(name), load(RESULTS / f"{name}.json")) for name in known_cases()])


def others(_):
    text = PLACE.sub("", (ROOT / "docs/benchmarks.md").read_text())
    lines = []
    for name in known_cases():
        if f"cases/{name}/" not in text:
            link = f"[{name}](../bench/cases/{name}/README.md)"
            lines += [f"## {link}: {Case(name).title}", ""]
    return lines[:-1] or ["All cases are above."]


KINDS = {"others": others, "costs": costs, "machine": machine, "losses": where_weft_loses,
         "measured": measured, "peers": peers}


def documents():
    return [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]


def filled(text):
    def fill(place):
        if place[2] not in KINDS:
            raise Failure(f"no such figures: {place[2]}")
        return place[1] + "\n".join(KINDS[place[2]](place[3])) + "\n" + place[4]
    return PLACE.sub(fill, text)


def fill_all():
    """Brings the figures of all documents to what is in bench/results; the names of those that
    changed."""
    changed = []
    for path in documents():
        text = path.read_text()
        if (new := filled(text)) != text:
            path.write_text(new)
            changed.append(str(path.relative_to(ROOT)))
    return changed
