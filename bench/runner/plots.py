"""plots.py - the results of a case as pictures.

A table that names a plot (case.toml) is drawn as lines over its columns, which are numbers; both
axes are logarithmic. All other tables are bars, in one picture. A point or a bar is the median, the
thin line through it goes from the least to the greatest value. What could not be measured is a gap:
a cross below the axis, and the reason in words. Where a case has more rows than a picture bears, it
names those that are drawn; the picture says how many more its table has.

SPDX-License-Identifier: Apache-2.0
"""
import re
import textwrap

from runner.results import show
from runner.svg import FAINT, INK, LogScale, Picture, Scale, short, width_of

COLOURS = ["#0b6fb8", "#d1495b", "#2a9d5c", "#e08e1b", "#7a4fb5", "#0f9aa8", "#b0418e", "#6b7a1e",
           "#8c564b", "#4b5563"]
DASHES = [None, "7 3", "2 3"]
NAMES = 736  # where the words of a legend begin


def draw(case, found):
    """{file name: SVG} of all pictures of the case."""
    pictures = {}
    compiler = next(iter(found["compilers"]))
    bars = []
    for asked in case.tables:
        plot = asked.get("plot", True)
        if isinstance(plot, str):
            drawn = lines(asked, found, compiler)
            if drawn:
                pictures[f"{plot}.svg"] = drawn
        elif plot:
            bars.append(asked)
    panels = [p for p in (panel(asked, found, compiler) for asked in bars) if p]
    if panels:
        pictures[f"{case.name}.svg"] = all_panels(panels, found, compiler)
    return pictures


def entries_of(asked, found, compiler):
    return [e for e in found["rows"] if e["row"] in asked["rows"] and e["compiler"] == compiler]


def number(column):
    """A column as a number, or None: "80,000" is 80000."""
    return float(column.replace(",", "")) if re.fullmatch(r"[\d,.]+", column or "") else None


def label(row, title=""):
    """A row as a legend names it: without what the title says, which is N at least; with threads
    and D, weft's with its back end, too, also where the table leaves the usual ones out."""
    name = re.sub(r"^N = \d+(, strict)?: ", "", row)
    if name == row:
        return name
    first, *others = name.split(", ")
    name = ", ".join([first, *(word for word in others if word not in title)])
    if not name.startswith("weft"):
        return f"{name}, D=0" if "pthread" in name else f"{name}, P=1, D=0"
    rest = [word.strip() for word in name.split(",")[1:]]
    kind = next((k for k in ("swapped", "ucontext", "thread") if k in rest), "own")
    threads = next((w for w in rest if w.startswith("P = ")), "P = 1")
    extra = next((w for w in rest if w.startswith("D = ")), "D = 0")
    others = [w for w in rest if w not in (kind, threads, extra)]
    return ", ".join(["weft", kind, *others, threads.replace(" ", ""), extra.replace(" ", "")])


def said_below(found, compiler):
    host = found["machine"]
    at = f", commit {found['commit']}" if found.get("commit") else ""
    return (f"{host['cpu']}, {host['cpus']} CPUs; {compiler}; {found['date']}{at}; "
            f"medians of {found['rounds']} rounds, least to greatest")


# --- lines


def lines(asked, found, compiler):
    """A picture with a line for each row of a table; None without a value."""
    series = []
    drawn = asked.get("drawn", asked["rows"])
    for row in drawn:
        points = [e for e in entries_of(asked, found, compiler) if e["row"] == row]
        points = [e for e in points if number(e.get("at")) is not None]
        if points:
            series.append((row, sorted(points, key=lambda e: number(e["at"]))))
    known = [e for _, points in series for e in points if e.get("median")]
    if not known:
        return None
    gaps = reasons(series, asked["title"])
    height = max(460, 90 + 17 * len(series)) + 15 * len(gaps)
    names = [label(row, asked["title"]) for row, _ in series]
    end_of_names = NAMES + max(width_of(name, 11) for name in names)
    picture = Picture(max(1000, round(end_of_names) + 12), height, asked["title"])
    bottom = height - 72 - 15 * len(gaps)
    xs = [number(e["at"]) for _, points in series for e in points]
    x = LogScale(min(xs), max(xs), 66, 690, whole=False)
    lowest = min(e["min"] if e["min"] > 0 else e["median"] for e in known)
    y = LogScale(lowest, max(e["max"] for e in known), bottom, 50)
    axes(picture, asked["title"], sorted(set(xs)), known[0]["unit"], x, y)
    for index, (row, points) in enumerate(series):
        one_line(picture, index, points, x, y, bottom)
        legend(picture, index, names[index])
    for place, text in enumerate(gaps):
        picture.words(66, bottom + 58 + 15 * place, text, size=11)
    measured = {e["row"] for e in entries_of(asked, found, compiler)}
    more = len(measured - set(drawn))
    below = said_below(found, compiler) + (f"; {more} more rows in the table" if more else "")
    picture.words(66, height - 8, below, size=10, colour="#667")
    return picture.text()


def style(index):
    return COLOURS[index % len(COLOURS)], DASHES[index // len(COLOURS) % len(DASHES)]


def one_line(picture, index, points, x, y, bottom):
    """Its points, joined where there is no gap between them."""
    colour, dash = style(index)
    piece = []
    for e in points:
        place = x(number(e["at"]))
        if not e.get("median"):
            picture.cross(place, bottom + 8, colour)
            picture.path(piece, colour, dash)
            piece = []
            continue
        piece.append((place, y(e["median"])))
        if e["min"] > 0:
            picture.line(place, y(e["min"]), place, y(e["max"]), colour, 0.8)
        picture.dot(*piece[-1], colour)
    picture.path(piece, colour, dash)


def legend(picture, index, text):
    colour, dash = style(index)
    height = 58 + 17 * index
    picture.path([(706, height), (730, height)], colour, dash)
    picture.dot(718, height, colour)
    picture.words(NAMES, height + 4, text, size=11)


def reasons(series, title):
    """What is a gap and why, in lines; rows that have the same gaps together."""
    said = {}
    for row, points in series:
        missing = {}
        for e in points:
            if not e.get("median"):
                missing.setdefault(e.get("note", "failed"), []).append(short(number(e["at"])))
        for why, where in missing.items():
            said.setdefault((", ".join(where), why), []).append(label(row, title))
    lines = []
    for (where, why), names in said.items():
        text = f"x  nothing at {where} ({why}): {'; '.join(names)}"
        lines += textwrap.wrap(text, 140, subsequent_indent="    ")
    return lines


def axes(picture, title, columns, unit, x, y):
    bottom, top = y.at_low, y.at_high
    picture.words(66, 28, title, size=15, bold=True)
    for value in y.ticks():
        picture.line(x.at_low, y(value), x.at_high, y(value))
        picture.words(x.at_low - 6, y(value) + 4, short(value), anchor="end")
    end = 0.0
    for value in columns:
        place = x(value)
        picture.line(place, bottom, place, top, FAINT, 0.5)
        half = width_of(short(value)) / 2
        if place - half > end + 5:  # it does not touch the one before
            picture.words(place, bottom + 26, short(value), anchor="middle")
            end = place + half
    picture.line(x.at_low, bottom, x.at_high, bottom, INK)
    picture.words((x.at_low + x.at_high) / 2, bottom + 42, "fibers", anchor="middle")
    picture.words(18, (bottom + top) / 2, unit, anchor="middle", turned=True)


# --- bars


def panel(asked, found, compiler):
    """(title, unit, entries) of a table, in its order; None without a value."""
    entries = entries_of(asked, found, compiler)
    entries = [e for row in asked["rows"] for e in entries if e["row"] == row]
    return (asked["title"], entries) if any("median" in e for e in entries) else None


def all_panels(panels, found, compiler):
    height = 54 + sum(52 + 19 * len(entries) for _, entries in panels)
    picture = Picture(1000, height, found["title"])
    picture.words(16, 28, found["title"], size=15, bold=True)
    top = 46
    for title, entries in panels:
        bars(picture, title, entries, top)
        top += 52 + 19 * len(entries)
    picture.words(16, height - 8, said_below(found, compiler), size=10, colour="#667")
    return picture.text()


def bars(picture, title, entries, top):
    known = [e for e in entries if "median" in e]
    values = [e["median"] for e in known if e["median"] > 0]
    units = {e["unit"] for e in known}
    highest = max([e["max"] for e in known if e["max"] > 0], default=1.0)
    wide = len(values) > 1 and highest / min(values) > 50 or len(units) > 1
    for right in range(820, 500, -20):  # until what stands at the bars' ends has room
        scale = (LogScale(min(values) / 2, highest, 400, right, whole=False) if wide and values
                 else Scale(highest, 400, right))
        if all(end_of(e, scale) + width_of(said(e), 11) < 985 for e in known):
            break
    note = " (logarithmic)" if wide else ""
    picture.words(16, top + 16, title + note, bold=True)
    names = list(dict.fromkeys(e["row"] for e in entries))
    for place, e in enumerate(entries):
        y = top + 28 + 19 * place
        name = e["row"] + (f", {e['at']}" if "at" in e else "")
        picture.words(392, y + 11, name if len(name) < 66 else name[:63] + "...", anchor="end",
                      size=11)
        one_bar(picture, e, scale, y, COLOURS[names.index(e["row"]) % len(COLOURS)])


def one_bar(picture, e, scale, y, colour):
    if "median" not in e:
        picture.cross(406, y + 7, colour)
        picture.words(416, y + 11, e.get("note", "failed"), size=11)
        return
    if e["median"] > 0:
        picture.rectangle(400, y, scale(e["median"]) - 400, 14, colour)
    if e["min"] > 0 and e["max"] > e["min"]:
        picture.line(max(400, scale(e["min"])), y + 7, scale(e["max"]), y + 7, INK, 1.2)
    picture.words(end_of(e, scale) + 6, y + 11, said(e), size=11)


def end_of(e, scale):
    """Where the words begin: behind the bar and its line."""
    end = scale(e["median"]) if e["median"] > 0 else 400.0
    return max(end, scale(e["max"])) if e["max"] > e["min"] > 0 else end


def said(e):
    """What stands at the end of a bar."""
    note = f"; {e['note']}" if "note" in e else ""
    return textwrap.shorten(f"{show(e['median'])} {e['unit']}{note}", 60, placeholder="...")
