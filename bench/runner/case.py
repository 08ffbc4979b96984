"""case.py - what a benchmark case says about itself (bench/cases/CASE/case.toml).

SPDX-License-Identifier: Apache-2.0
"""
import pathlib
import re
import tomllib

ROOT = pathlib.Path(__file__).resolve().parents[2]
CASES = ROOT / "bench" / "cases"
RESULTS = ROOT / "bench" / "results"
PLOTS = ROOT / "docs" / "plots"


class Failure(Exception):
    """Something that ends the run, with a message for the user; rows: what a program had printed
    until it failed."""

    rows = ()


class Case:
    """case.toml: title, compilers, rounds (so many, and not more if the user asks for more), and

    [[program]]  name; optional: command (default: the program of that name; {bin}, {bench} and
                 {case} are replaced by the folders of the case's programs, of all programs and of
                 the sources), cpus ("one", the default, pins it to a CPU; "all" does not), timeout;
                 absent, what is said of it where it was not built; brief, false if it is left out
                 of a brief run
    [[table]]    title, rows in their order; optional: reference, the row that others are divided
                 by; stands, the row that stands for weft where peers are ahead (the first of
                 weft's if it is not given: runner/losses.py); plot, the name of a picture with a
                 line for each row over the columns, which are numbers then (all other tables are
                 bars in one picture named as the case), or false for a table that is no picture;
                 drawn, the rows that the picture with lines has (all if it is not given)
    [[figure]]   says; of, a row, alone or with over or minus, another row; at_most, at_least or
                 below, the bound; optional: at, the columns it is for; compilers
    """

    def __init__(self, name, folder=None):
        self.name = name
        self.folder = folder or CASES / name
        with open(self.folder / "case.toml", "rb") as file:
            said = tomllib.load(file)
        self.title = said["title"]
        self.compilers = said.get("compilers", ["g++"])
        self.rounds = said.get("rounds")
        self.programs = said["program"]
        self.left_out = []  # programs, by name
        self.tables = said["table"]
        self.figures = said.get("figure", [])
        self.rows = [row for table in self.tables for row in table["rows"]]
        self.check()

    def check(self):
        named = [table[key] for table in self.tables for key in ("reference", "stands")
                 if key in table]
        named += [row for table in self.tables for row in table.get("drawn", [])]
        for figure in self.figures:
            named += [figure[key] for key in ("of", "over", "minus") if key in figure]
        for row in named:
            if row not in self.rows:
                raise Failure(f"{self.name}/case.toml: no table has the row '{row}'")
        if len(set(self.rows)) != len(self.rows):
            raise Failure(f"{self.name}/case.toml: a row stands in two places")

    def shorten(self):
        """For a brief run: a program that can be done without is neither built nor run."""
        self.left_out = [p["name"] for p in self.programs if not p.get("brief", True)]
        self.programs = [p for p in self.programs if p.get("brief", True)]

    def uses(self):
        """The cases whose programs it runs: mostly its own alone."""
        words = [word for program in self.programs for word in program.get("command", ["{bin}/"])]
        found = re.findall(r"\{bench\}/(\w+)/", " ".join(words))
        own = [self.name] if any("{bin}" in word or "{case}" in word for word in words) else []
        return list(dict.fromkeys(own + found))


def known_cases():
    return sorted(path.parent.name for path in CASES.glob("*/case.toml"))
