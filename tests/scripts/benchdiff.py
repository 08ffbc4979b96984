#!/usr/bin/env python3
"""benchdiff.py - tools/benchdiff tells what changed, and does not take noise for a change.

SPDX-License-Identifier: Apache-2.0
"""
import json
import os
import pathlib
import random
import statistics
import subprocess
import sys
import tempfile
import unittest

ROOT = pathlib.Path(os.environ.get("SOURCE_DIR", pathlib.Path(__file__).parents[2]))
TOOL = ROOT / "tools" / "benchdiff"


def row(name, values, unit="ns", at=None):
    known = [v for v in values if v is not None]
    made = {"row": name, "compiler": "g++", "program": "p", "unit": unit, "values": values}
    if known:
        made |= {"median": statistics.median(known), "min": min(known), "max": max(known)}
    return made | ({"at": at} if at else {})


def file(folder, name, rows, **more):
    path = pathlib.Path(folder) / name
    path.write_text(json.dumps({"case": "c", "commit": name, "machine": {}, "compilers": {},
                                "rows": rows} | more))
    return path


class Benchdiff(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)

    def diff(self, before, after, *options, **more):
        a = file(self.folder.name, "a", before)
        b = file(self.folder.name, "b", after, **more)
        done = subprocess.run([sys.executable, TOOL, a, b, *options], capture_output=True,
                              text=True)
        return done.returncode, done.stdout + done.stderr

    def test_a_time_that_grew_beyond_noise_is_worse(self):
        status, text = self.diff([row("r", [10, 11, 10, 12, 11])], [row("r", [20, 21, 22, 20, 21])])
        self.assertEqual(status, 1)
        self.assertIn("worse:\n  r (g++): 11 -> 21 ns  +90.9 %", text)

    def test_a_throughput_that_grew_is_better(self):
        status, text = self.diff([row("r", [10, 11, 10, 12, 11], "M/s")],
                                 [row("r", [20, 21, 22, 20, 21], "M/s")])
        self.assertEqual(status, 0)
        self.assertIn("better:", text)

    def test_a_median_that_moved_within_the_noise_is_no_change(self):
        status, text = self.diff([row("r", [10, 30, 12, 28, 11])], [row("r", [29, 12, 27, 11, 31])])
        self.assertEqual((status, text.splitlines()[-1]), (0, "1 same"))

    def test_a_change_of_a_few_percent_is_none_however_sure(self):
        values = [10.0, 10.001, 10.002, 10.003, 10.004, 10.005]
        status, text = self.diff([row("r", values)], [row("r", [v * 1.02 for v in values])])
        self.assertEqual((status, text.splitlines()[-1]), (0, "1 same"))
        status, _ = self.diff([row("r", values)], [row("r", [v * 1.02 for v in values])], "--least",
                              "1")
        self.assertEqual(status, 1)

    def test_few_values_are_not_judged(self):
        status, text = self.diff([row("r", [10, 10, 10])], [row("r", [20, 20, 20])])
        self.assertEqual(status, 0)
        self.assertIn("too few values", text)

    def test_four_values_against_four_or_five_cannot_tell(self):
        for after in ([20, 21, 22, 23], [20, 21, 22, 23, 24]):
            status, text = self.diff([row("r", [10, 11, 12, 13])], [row("r", after)])
            self.assertEqual((status, text.splitlines()[-1]), (0, "1 few"))

    def test_four_values_against_six_and_five_against_five_can_tell(self):
        status, text = self.diff([row("r", [10, 11, 12, 13])], [row("r", [20, 21, 22, 23, 24, 25])])
        self.assertEqual((status, text.splitlines()[-1]), (1, "1 worse"))
        status, text = self.diff([row("r", [10, 11, 12, 13, 14])], [row("r", [20, 21, 22, 23, 24])])
        self.assertEqual((status, text.splitlines()[-1]), (1, "1 worse"))

    def test_a_value_that_is_gone_is_a_failure(self):
        status, text = self.diff([row("r", [1, 1, 1, 1])], [row("r", [None] * 4)])
        self.assertEqual(status, 1)
        self.assertIn("has no value any more", text)

    def test_columns_are_kept_apart(self):
        before = [row("r", [1.0, 1.1, 1.2, 1.3, 1.4], at="16"), row("r", [9.0] * 5, at="800")]
        after = [row("r", [2.0, 2.1, 2.2, 2.3, 2.4], at="16"), row("r", [9.0] * 5, at="800")]
        _, text = self.diff(before, after)
        self.assertIn("r, 16 (g++)", text)
        self.assertEqual(text.splitlines()[-1], "1 worse, 1 same")

    def test_chance_alone_is_rarely_called_a_change(self):
        chance = random.Random(7)
        rows = [[row(f"r{i}", [chance.gauss(100, 10) for _ in range(9)]) for i in range(400)]
                for _ in range(2)]
        _, text = self.diff(*rows)
        same = int(text.splitlines()[-1].split(" same")[0].split()[-1])
        self.assertGreaterEqual(same, 390)

    def test_how_many_changes_may_be_chance_is_said_where_it_is_one_or_more(self):
        rows = [row(f"r{i}", [10, 11, 12, 13, 14]) for i in range(60)]
        _, text = self.diff(rows, [row("r0", [20, 21, 22, 23, 24]), *rows[1:]])
        self.assertIn("note: of 60 rows 1 may differ so by chance alone", text)
        _, text = self.diff(rows, rows)
        self.assertNotIn("chance", text)
        _, text = self.diff(rows[:5], [row("r0", [20, 21, 22, 23, 24]), *rows[1:5]])
        self.assertNotIn("chance", text)

    def test_a_row_with_another_unit_is_not_compared(self):
        status, text = self.diff([row("r", [1000] * 5, "ns")], [row("r", [1] * 5, "us")])
        self.assertEqual((status, text.splitlines()[-1]), (0, "1 unit"))
        self.assertIn("has another unit:\n  r (g++): 1000 -> 1 ns -> us", text)

    def test_many_values_are_compared_by_the_normal_curve(self):
        chance = random.Random(3)
        slow = [chance.gauss(100, 10) for _ in range(40)]
        status, _ = self.diff([row("r", slow)], [row("r", [v * 1.3 for v in slow])])
        self.assertEqual(status, 1)

    def test_another_machine_is_said(self):
        _, text = self.diff([row("r", [1] * 5)], [row("r", [1] * 5)], machine={"cpu": "other"})
        self.assertIn("note: another machine (cpu unknown -> other)", text)

    def test_of_compilers_it_says_what_differs_and_no_more(self):
        built = {"g++": {"version": "12", "flags": "-O2 -g"}, "clang++-19": {"version": "19"}}
        rows = [row("r", [1] * 5), row("r", [1] * 5) | {"compiler": "clang++-19"}]

        def notes(**others):
            a = file(self.folder.name, "a", rows, compilers=built)
            b = file(self.folder.name, "b", rows[:1], compilers=others)
            done = subprocess.run([sys.executable, TOOL, a, b], capture_output=True, text=True)
            return [line for line in done.stdout.splitlines() if line.startswith("note")]
        same = {"g++": built["g++"]}  # as QUICK=1 has it
        self.assertEqual(notes(**same), ["note: clang++-19 in one file only"])
        self.assertEqual(notes(**{"g++": built["g++"] | {"flags": "-O3 -g"}})[0],
                         "note: another g++ (flags -O2 -> -O3): what changed need not be the "
                         "library")

    def test_two_cases_or_no_results_are_refused(self):
        status, text = self.diff([], [], case="d")
        self.assertEqual(status, 2)
        self.assertIn("two cases: c and d", text)
        done = subprocess.run([sys.executable, TOOL, TOOL, TOOL], capture_output=True, text=True)
        self.assertEqual(done.returncode, 2)
        self.assertIn("not a result file", done.stderr)

    def test_json_that_is_no_result_is_refused_with_a_word(self):
        good = row("r", [1] * 5)
        broken = [[], None, "rows", 7, {}, {"case": "c"}, {"case": "c", "rows": None},
                  {"case": "c", "rows": ["r"]}, {"case": "c", "rows": {"r": 1}}, {"rows": [good]},
                  *({"case": "c", "rows": [good | wrong]} for wrong in (
                      {"values": None}, {"values": ["1"]}, {"values": [float("nan")]},
                      {"unit": ["ns"]})),
                  {"case": "c", "rows": [{"row": "r", "compiler": "g++"}]}]
        usual = file(self.folder.name, "a", [good])
        for what in broken:
            path = pathlib.Path(self.folder.name) / "b"
            path.write_text(json.dumps(what))
            for both in ((usual, path), (path, path)):
                done = subprocess.run([sys.executable, TOOL, *both], capture_output=True, text=True)
                self.assertEqual(done.returncode, 2, f"{what}: {done.stdout}{done.stderr}")
                self.assertRegex(done.stderr, r"^benchdiff: .*b: not a result file", what)

    def test_results_from_outside_of_a_clone_have_no_commit(self):
        _, text = self.diff([row("r", [1] * 5)], [row("r", [1] * 5)], commit=None)
        self.assertIn("c: a -> not recorded", text)


if __name__ == "__main__":
    unittest.main()
