"""tables.py - the results of a case as Markdown, which stands in its README.md between two markers.

SPDX-License-Identifier: Apache-2.0
"""
import textwrap

from runner.case import Failure
from runner.results import show

BEGIN = "<!-- results: bench/run writes from here -->"
END = "<!-- results: to here -->"


def show_range(summed):
    if summed["min"] == summed["max"]:
        return show(summed["median"])
    return f"{show(summed['median'])} ({show(summed['min'])} to {show(summed['max'])})"


def show_figure(value):
    """With the interval of 95 %, if there were enough rounds."""
    text = show_range(value)
    if "interval" not in value or value["min"] == value["max"]:
        return text
    low, high = value["interval"]
    return f"{text}; 95 %: {show(low)} to {show(high)}"


def table(head, lines):
    return ["| " + " | ".join(cells) + " |" for cells in (head, ["---"] * len(head), *lines)]


def table_of_figures(found):
    words = {True: "met", False: "**missed**", None: "not measured"}
    lines = []
    for figure in found["figures"]:
        says = figure["says"] + (f" ({figure['at']})" if figure["at"] else "")
        value = show_figure(figure["value"]) if figure["value"] else "-"
        lines.append([says, figure["compiler"], value, figure["bound"], words[figure["met"]]])
    return table(["figure", "compiler", "measured", "bound", ""], lines) if lines else []


def table_of_rows(found, rows, compilers, has_ratio):
    """A line a row; for each compiler the value and its ratio to the reference."""
    lines = []
    for row in rows:
        cells = [row]
        for compiler in compilers:
            entry = find(found, row, compiler)
            cells.append(cell(entry))
            if has_ratio:
                cells.append(f"{show(entry['ratio']['median'])} x" if "ratio" in entry else "-")
        lines.append(cells)
    head = ["row"]
    for compiler in compilers:
        head += [compiler] + (["ratio"] if has_ratio else [])
    return table(head, lines)


def table_of_columns(found, rows, compiler, columns):
    """A line a row, a column each `at`; ratios, if any, in brackets."""
    lines = []
    for row in rows:
        cells = [row]
        for column in columns:
            entry = find(found, row, compiler, column)
            against = f" [{show(entry['ratio']['median'])} x]" if "ratio" in entry else ""
            cells.append(cell(entry) + against)
        lines.append(cells)
    return table([compiler, *columns], lines)


def find(found, row, compiler, column=None):
    for entry in found["rows"]:
        if (entry["row"], entry["compiler"], entry.get("at")) == (row, compiler, column):
            return entry
    return {}


def cell(entry):
    if "median" not in entry:
        return entry.get("note", "-")
    text = f"{show_range(entry)} {entry['unit']}"
    return f"{text}; {entry['note']}" if "note" in entry else text


def commit_of(found):
    """With words for the + of a tree that had changes."""
    commit = found["commit"]
    return f"{commit} (with changes that were not committed)" if commit.endswith("+") else commit


def said_first(found):
    host = found["machine"]
    at = f", commit {commit_of(found)}" if found.get("commit") else ""
    text = (
        f"Measured on {found['date']}{at}: {host['cpu']}, {host['cpus']} CPUs, "
        f"{host['memory_gib']} GiB, {host['system']}, Linux {host['kernel']}. Medians of "
        f"{found['rounds']} interleaved rounds, with the least and the greatest; every value is in "
        f"`bench/results/{found['case']}.json`."
    )
    return textwrap.wrap(text, 110)


def peers(found):
    """What the peers said of themselves, each once."""
    said = [word for program in found["programs"] if not program["program"].startswith("weft")
            for word in program.get("about", "").split("; ") if word]
    return list(dict.fromkeys(said))


def skipped(case, found):
    """One that was there for no compiler stands there once, as the case calls it (`absent`)."""
    names = {program["name"]: program.get("absent") for program in case.programs}
    of = [word.split(" (")[0] for word in found["skipped"]]
    said = [names.get(name) if of.count(name) == len(found["compilers"]) else None for name in of]
    return list(dict.fromkeys(name or word for name, word in zip(said, found["skipped"])))


def tables(case, found, plots=()):
    """The part of README.md between the markers, as lines; plots are names of pictures."""
    compilers = list(found["compilers"])
    out = [*said_first(found), ""]
    said = found["compilers"].items()
    out += table(["compiler", "", "flags"], [[c, b["version"], f"`{b['flags']}`"] for c, b in said])
    if peers(found):
        out += ["", *textwrap.wrap(f"Peers: {'; '.join(peers(found))}.", 110)]
    if found["skipped"]:
        out += ["", *textwrap.wrap("Skipped: " + "; ".join(skipped(case, found)) + ".", 110)]
    for program in found["programs"]:
        if "error" in program:
            out += ["", *textwrap.wrap(f"Failed: {program['error']}.", 110)]
    for plot in plots:
        out += ["", f"![{found['title']}](../../../docs/plots/{plot})"]
    out += ["", *table_of_figures(found)]
    for asked in case.tables:
        out += ["", f"### {asked['title']}", ""]
        entries = [entry for entry in found["rows"] if entry["row"] in asked["rows"]]
        columns = list(dict.fromkeys(entry["at"] for entry in entries if "at" in entry))
        if "reference" in asked:
            out += [f"Ratios are to '{asked['reference']}' in the same round.", ""]
        if columns:
            for compiler in compilers:
                out += [*table_of_columns(found, asked["rows"], compiler, columns), ""]
            out.pop()
        else:
            out += table_of_rows(found, asked["rows"], compilers, "reference" in asked)
    out += ["", "### Programs", ""]
    lines = [[p["program"], p["compiler"], p.get("about", ""),
              f"{show_range(p['peak_rss_kib'])} KiB", f"{show_range(p['seconds'])} s"]
             for p in found["programs"] if "seconds" in p]
    return out + table(["program", "compiler", "", "peak RSS", "time of a run"], lines)


def put_into_readme(case, lines):
    readme = case.folder / "README.md"
    before, begin, rest = readme.read_text().partition(BEGIN)
    _, end, after = rest.partition(END)
    if not begin or not end:
        raise Failure(f"{case.name}/README.md: the markers of the results are missing")
    readme.write_text(f"{before}{begin}\n" + "\n".join(lines) + f"\n{end}{after}")
