"""losses.py - where weft is behind: bounds that were missed, and peers that are ahead of it.

In each table one of weft's rows stands for weft: the one that the case names (`stands`), else the
first. A program can have it by the public headers. A peer is ahead if the median of their ratios,
taken round by round, says so. Where weft's other rows (another back end, a fair lock) are behind
the same peer, they are named.

SPDX-License-Identifier: Apache-2.0
"""
import re
import textwrap

from runner import tables
from runner.case import Failure
from runner.measure import summary
from runner.results import ratio, show

FEW = 3  # so many rows are named, more are counted; so many columns have a figure each

# Which way is better, by the unit; a suspension is neither good nor bad.
MORE = ("M/s", "stacks", "of the fastest")
LESS = ("ns", "us", "ms", "B", "MiB", "lines")
NEITHER = ("a message",)


def is_more_better(unit):
    """True, False; None if it cannot be said."""
    if unit in NEITHER:
        return None
    if unit not in MORE + LESS:
        raise Failure(f"runner/losses.py does not know whether more of '{unit}' is better")
    return unit in MORE


def lead(weft, peer):
    """By how much the peer is ahead of weft, as a summary with the peer's note; None if it is not,
    or nobody knows."""
    more = is_more_better(weft.get("unit", peer.get("unit")))
    if more is None or "median" not in weft or "median" not in peer:
        return None
    ahead, behind = (peer, weft) if more else (weft, peer)
    pairs = zip(ahead["values"], behind["values"])
    found = summary([None if None in pair else ratio(*pair) for pair in pairs])
    if not found or float(f"{found['median']:.3g}") <= 1:
        return None
    return found | ({"note": peer["note"]} if "note" in peer else {})


def is_weft(entry):
    return "weft" in entry["row"] or entry["program"].startswith("weft")


def by_row(entries, order):
    """{row: entry}, in the order of the table."""
    known = {entry["row"]: entry for entry in entries}
    return {row: known[row] for row in order if row in known}


def leads(asked, found):
    """Of one table: (peer, column, compiler, the row that stands for weft, lead over it or None,
    weft's other rows that are behind) for each peer that is ahead of any of weft's."""
    entries = [entry for entry in found["rows"] if entry["row"] in asked["rows"]]
    if any(entry.get("at") == "weft" for entry in entries):
        return leads_by_column(entries)
    out = []
    for key in dict.fromkeys((entry["compiler"], entry.get("at")) for entry in entries):
        here = by_row([e for e in entries if (e["compiler"], e.get("at")) == key], asked["rows"])
        ours = [entry for entry in here.values() if is_weft(entry)]
        ours.sort(key=lambda entry: entry["row"] != asked.get("stands"))
        for peer in here.values():
            if is_weft(peer):
                continue
            ahead = [(entry["row"], lead(entry, peer)) for entry in ours]
            others = [row for row, by in ahead[1:] if by]
            if ahead and (ahead[0][1] or others):
                out.append((peer["row"], key[1], key[0], *ahead[0], others))
    return out


def leads_by_column(entries):
    """Of a table that has the peers for columns."""
    out = []
    for weft in (entry for entry in entries if entry.get("at") == "weft"):
        for peer in entries:
            same = (peer["row"], peer["compiler"]) == (weft["row"], weft["compiler"])
            if same and peer is not weft and (by := lead(weft, peer)):
                out.append((peer["at"], weft["row"], weft["compiler"], "weft", by, []))
    return out


# --- as Markdown


def plain(row):
    """A row without what the title of its table says already."""
    return re.sub(r"^N = \d+(, strict)?: ", "", row)


def missed(found):
    """The bounds that were not met, as a table; [] if there are none."""
    lines = []
    for figure in found["figures"]:
        if figure["met"] is False:
            says = figure["says"] + (f" ({figure['at']})" if figure["at"] else "")
            lines.append([says, figure["compiler"], tables.show_range(figure["value"]),
                          figure["bound"]])
    return tables.table(["bound missed", "compiler", "measured", "bound"], lines) if lines else []


def ahead(case, found):
    """The peers that are ahead, a line for each table and peer; [] if there are none."""
    compilers = list(found["compilers"])
    lines = []
    for asked in case.tables:
        title = asked["title"]  # in the first line only
        of_table = leads(asked, found)
        entries = [entry for entry in found["rows"] if entry["row"] in asked["rows"]]
        ours = len({entry["row"] for entry in entries if is_weft(entry)})
        columns = list(dict.fromkeys(entry.get("at") for entry in entries))
        for peer in dict.fromkeys(entry[0] for entry in of_table):
            mine = [entry for entry in of_table if entry[0] == peer]
            cells = [by_how_much(mine, compiler, columns) for compiler in compilers]
            first = plain(mine[0][3]) if any(entry[4] for entry in mine) else "-"
            lines.append([title, plain(peer), first, *cells, behind_too(mine, ours - 1)])
            title = ""
    head = ["table", "peer", "ahead of", *compilers, "other rows of weft's behind it"]
    return tables.table(head, lines) if lines else []


def by_how_much(mine, compiler, columns):
    known = [(column, by) for _, column, of, _, by, _ in mine if of == compiler and by]
    if len(known) > FEW and not any("note" in by for _, by in known):
        return from_to(known, columns)
    texts = []
    for column, by in known:
        where = "; ".join(word for word in (column, by.get("note")) if word)
        texts.append(f"{show(by['median'])} x" + (f" ({where})" if where else ""))
    return ", ".join(texts) or "-"


def from_to(known, columns):
    """The least and the greatest lead, and at which columns: for a table that has many of them."""
    medians = [by["median"] for _, by in known]
    first, last = (columns.index(known[end][0]) for end in (0, -1))
    if len(known) == len(columns):
        where = f"all {len(columns)}"
    elif len(known) == last - first + 1:
        where = f"{columns[first]} to {columns[last]}"
    else:
        where = f"{len(known)} of {len(columns)}"
    most = known[medians.index(max(medians))][0]
    return f"{show(min(medians))} to {show(max(medians))} x ({where}; most at {most})"


def behind_too(mine, how_many):
    names = list(dict.fromkeys(plain(row) for entry in mine for row in entry[5]))
    if len(names) <= FEW:
        return "; ".join(names)
    return f"all {how_many}" if len(names) == how_many else f"{len(names)} of {how_many}"


def section(results):
    """All of it, for [(case, what was found or None)]."""
    lines, without, unknown = [], [], []
    for case, found in results:
        if not found:
            unknown.append(case.name)
            continue
        parts = [part for part in (missed(found), ahead(case, found)) if part]
        if not parts:
            without.append(case.name)
            continue
        lines += [f"### {case.name}", ""]
        for part in parts:
            lines += [*part, ""]
    lines += textwrap.wrap("Every bound that was measured is met, and no peer is ahead: "
                           f"{', '.join(without) or 'in no case'}.", 120)
    if unknown:
        lines += ["", *textwrap.wrap(f"Not measured yet: {', '.join(unknown)}.", 120)]
    return lines
