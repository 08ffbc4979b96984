#!/usr/bin/env python3
"""check_style.py - what every file must have, as far as a short script can tell.

A source opens with "NAME - what it is" in a comment, names its licence, and keeps to 100 columns
(Markdown: 120, tables aside). No file has a tab, a space at a line's end, or a path of somebody's
machine. Run it from anywhere, with no arguments.

SPDX-License-Identifier: Apache-2.0
"""
import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
LICENCE = "SPDX-License-Identifier: Apache-2.0"
MACHINE_PATH = re.compile(r"(?<![\w.$}~-])/(home|root|work|Users)/\w")
SOURCES = {".cpp", ".hpp", ".h", ".S", ".py", ".sh", ".cmake", ".in"}


def files():
    for path in sorted(ROOT.rglob("*")):
        inside = path.relative_to(ROOT)
        if inside.parts[0] in ("build", ".git") or "__pycache__" in inside.parts:
            continue
        if path.is_file() and not path.is_symlink() and path.name != "LICENSE":
            yield path, inside


def is_source(path, lines):
    if path.suffix in SOURCES or path.name in ("CMakeLists.txt", "Makefile"):
        return True
    return bool(lines) and lines[0].startswith("#!")


def check(path, inside, problems):
    try:
        lines = path.read_text(encoding="utf-8").splitlines()
    except UnicodeDecodeError:
        return  # not a text
    if is_source(path, lines):
        opening = "\n".join(lines[:2] if lines and lines[0].startswith("#!") else lines[:1])
        name = re.escape(path.name.removesuffix(".in"))
        if not re.search(rf'^(//|#|""")\s?{name} - \S', opening, re.MULTILINE):
            problems.append(f'{inside}:1: does not open with "{path.name} - what it is"')
        if not any(LICENCE in line for line in lines[:60]):
            problems.append(f"{inside}:1: names no licence")
    is_text = path.suffix == ".md"
    columns = 120 if is_text else 100
    for number, line in enumerate(lines, 1):
        where = f"{inside}:{number}"
        if is_source(path, lines) or is_text:
            table = is_text and (line.startswith("|") or "](" in line)
            if len(line) > columns and not table:
                problems.append(f"{where}: {len(line)} columns, more than {columns}")
            if line != line.rstrip():
                problems.append(f"{where}: space at the end of the line")
            if "\t" in line and path.name != "Makefile":
                problems.append(f"{where}: a tab")
        if MACHINE_PATH.search(line):
            problems.append(f"{where}: a path of somebody's machine")


def main():
    if {"-h", "--help"} & set(sys.argv):
        print(__doc__.split("SPDX")[0].strip())
        return 0
    problems = []
    count = 0
    for path, inside in files():
        count += 1
        check(path, inside, problems)
    print("\n".join(problems) if problems else f"style: {count} files")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
