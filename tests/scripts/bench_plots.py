#!/usr/bin/env python3
"""bench_plots.py - the pictures and pages of bench/run: they show what is in the results.

SPDX-License-Identifier: Apache-2.0
"""
import os
import pathlib
import sys
import types
import unittest
import xml.etree.ElementTree as tree

sys.dont_write_bytecode = True
ROOT = pathlib.Path(os.environ.get("SOURCE_DIR", pathlib.Path(__file__).parents[2]))
sys.path.insert(0, str(ROOT / "bench"))

from runner import losses, pages, plots, tables  # noqa: E402
from runner.case import RESULTS, Case, Failure, known_cases  # noqa: E402
from runner.results import load  # noqa: E402
from runner.svg import LogScale, Scale, short, width_of  # noqa: E402

SVG = "{http://www.w3.org/2000/svg}"


def entry(row, value, at=None, **more):
    made = {"row": row, "compiler": "g++", "program": "p", "unit": "M/s", **more}
    if at:
        made["at"] = at
    if value is not None:
        made |= {"median": value, "min": value * 0.9, "max": value * 1.1}
    return made


def found(rows):
    return {"case": "c", "title": "A & B", "date": "2026-01-02", "commit": "abc", "rounds": 5,
            "machine": {"cpu": "a <fast> one", "cpus": 2}, "compilers": {"g++": {}}, "rows": rows}


def case(*tables):
    return types.SimpleNamespace(name="c", tables=list(tables))


def words(svg):
    return [node.text for node in tree.fromstring(svg).iter(f"{SVG}text")]


class Lines(unittest.TestCase):
    table = {"title": "N = 8: messages", "plot": "c_n8", "rows": ["N = 8: weft, slot", "N = 8: Go"]}

    def draw(self, *rows):
        return plots.draw(case(self.table), found(list(rows)))["c_n8.svg"]

    def test_each_row_is_a_line_with_a_name_and_a_point_for_each_size(self):
        svg = self.draw(entry("N = 8: weft, slot", 100, "16"),
                        entry("N = 8: weft, slot", 50, "800"),
                        entry("N = 8: Go", 5, "16"), entry("N = 8: Go", 4, "800"))
        self.assertIn("weft, own, slot, P=1, D=0", words(svg))
        self.assertIn("Go, P=1, D=0", words(svg))
        circles = list(tree.fromstring(svg).iter(f"{SVG}circle"))
        self.assertEqual(len(circles), 4 + 2)  # points, and one for each name
        curves = [n.get("points") for n in tree.fromstring(svg).iter(f"{SVG}polyline")]
        self.assertEqual(len(curves), 2 + 2)

    def test_a_size_that_failed_is_a_gap_with_its_reason_and_no_zero(self):
        svg = self.draw(entry("N = 8: Go", 5, "16"),
                        entry("N = 8: Go", None, "800", note="no room"),
                        entry("N = 8: Go", 4, "80,000"))
        self.assertTrue(any("nothing at 800 (no room)" in text for text in words(svg)))
        curves = list(tree.fromstring(svg).iter(f"{SVG}polyline"))
        self.assertEqual(len(curves), 1)  # the name's only: nothing is joined over the gap

    def test_more_is_higher_and_larger_is_to_the_right(self):
        svg = self.draw(entry("N = 8: Go", 5, "16"), entry("N = 8: Go", 50, "800"))
        curve = [n.get("points") for n in tree.fromstring(svg).iter(f"{SVG}polyline")][0]
        (x1, y1), (x2, y2) = (map(float, p.split(",")) for p in curve.split())
        self.assertLess(x1, x2)
        self.assertGreater(y1, y2)

    def test_nothing_measured_is_no_picture(self):
        rows = [entry("N = 8: Go", None, "16", note="no room")]
        self.assertEqual(plots.draw(case(self.table), found(rows)), {})

    def test_a_case_may_name_the_rows_that_are_drawn_and_the_picture_says_how_many_are_not(self):
        rows = [entry(row, value, at) for row in self.table["rows"]
                for at, value in (("16", 5), ("800", 4))]
        asked = case({**self.table, "drawn": ["N = 8: weft, slot"]})
        said = words(plots.draw(asked, found(rows))["c_n8.svg"])
        self.assertNotIn("Go, P=1, D=0", said)
        self.assertTrue(any(text.endswith("; 1 more rows in the table") for text in said), said)

    def test_sizes_are_named_as_long_as_their_names_do_not_touch(self):
        sizes = ["16", "32", "33", "800"]
        said = words(self.draw(*[entry("N = 8: Go", 5, at) for at in sizes]))
        self.assertEqual([at in said for at in sizes], [True, True, False, True])

    def test_a_picture_is_as_wide_as_its_longest_name_needs(self):
        row = "N = 8: weft, strictly FIFO, no prefetch, and a few words more"
        self.table = self.table | {"rows": [row, "N = 8: Go"]}
        svg = self.draw(entry(row, 5, "16"), entry("N = 8: Go", 4, "16"))
        end = max(float(n.get("x")) + width_of(n.text, 11)
                  for n in tree.fromstring(svg).iter(f"{SVG}text") if ", P=1" in n.text)
        self.assertGreater(end, 1000)
        self.assertLess(end, float(tree.fromstring(svg).get("width")))

    def test_a_name_says_back_end_threads_and_d(self):
        self.assertEqual(plots.label("N = 2: weft, swapped, D = 1000"),
                         "weft, swapped, P=1, D=1000")
        self.assertEqual(plots.label("N = 8: weft, one loop a thread, P = 2"),
                         "weft, own, one loop a thread, P=2, D=0")
        self.assertEqual(plots.label("N = 8, strict: Rust async"), "Rust async, P=1, D=0")

    def test_a_name_does_without_what_the_title_says(self):
        title = "N = 8: peak RSS of the whole program, by number of fibers"
        self.assertEqual(plots.label("N = 8: weft, wake slot, peak RSS, D = 1000", title),
                         "weft, own, wake slot, P=1, D=1000")
        self.assertEqual(plots.label("N = 8: Go, peak RSS", title), "Go, P=1, D=0")

    def test_rows_that_have_the_same_gaps_have_one_line_with_their_reason(self):
        svg = self.draw(*[entry(row, value, at, **why) for row in self.table["rows"]
                          for at, value, why in (("16", 5, {}), ("800", None, {"note": "no room"}),
                                                 ("80,000", None, {"note": "not tried"}))])
        gaps = [text for text in words(svg) if text.startswith("x ")]
        both = "weft, own, slot, P=1, D=0; Go, P=1, D=0"
        self.assertEqual(gaps, [f"x  nothing at 800 (no room): {both}",
                                f"x  nothing at 80k (not tried): {both}"])


class Bars(unittest.TestCase):
    table = {"title": "times", "rows": ["weft", "Go"]}

    def draw(self, *rows):
        return plots.draw(case(self.table), found(list(rows)))["c.svg"]

    def test_a_bar_is_as_long_as_its_value(self):
        svg = self.draw(entry("weft", 10), entry("Go", 20))
        widths = [float(n.get("width")) for n in tree.fromstring(svg).iter(f"{SVG}rect")][1:]
        self.assertAlmostEqual(widths[1] / widths[0], 2.0, places=1)
        self.assertIn("10 M/s", words(svg))

    def test_what_failed_has_its_reason_in_place_of_a_bar(self):
        svg = self.draw(entry("weft", 10), entry("Go", None, note="crashed"))
        self.assertEqual(len(list(tree.fromstring(svg).iter(f"{SVG}rect"))), 2)
        self.assertIn("crashed", words(svg))

    def test_values_far_apart_are_drawn_by_their_logarithms_and_it_says_so(self):
        svg = self.draw(entry("weft", 1), entry("Go", 100_000))
        self.assertIn("times (logarithmic)", words(svg))

    def test_a_spread_that_would_hide_the_medians_is_drawn_by_its_logarithm(self):
        svg = self.draw(entry("weft", 10) | {"max": 4000}, entry("Go", 20))
        self.assertIn("times (logarithmic)", words(svg))
        widths = [float(n.get("width")) for n in tree.fromstring(svg).iter(f"{SVG}rect")][1:]
        self.assertGreater(min(widths), 30)

    def test_what_stands_at_the_end_of_a_bar_has_room(self):
        note = "mprotect: Cannot allocate memory"
        svg = self.draw(entry("weft", 19, note=note), entry("Go", 20))
        end = next(float(n.get("x")) for n in tree.fromstring(svg).iter(f"{SVG}text")
                   if (n.text or "").endswith(note))
        self.assertLess(end + 6 * len(f"19 M/s; {note}"), 1000)

    def test_a_value_of_zero_does_not_stop_it(self):
        svg = self.draw(entry("weft", 0.0), entry("Go", 20))
        self.assertIn("0 M/s", words(svg))

    def test_a_table_may_be_no_picture(self):
        rows = [entry("weft", 10)]
        self.assertEqual(plots.draw(case({**self.table, "plot": False}), found(rows)), {})


class Scales(unittest.TestCase):
    def test_ends_and_middles(self):
        scale = LogScale(1, 100, 0, 200)
        self.assertEqual([scale(1), scale(10), scale(100)], [0, 100, 200])
        self.assertEqual(Scale(10, 100, 200)(5), 150)
        self.assertEqual([short(v) for v in (0.5, 800, 80_000, 2e6)], ["0.5", "800", "80k", "2M"])

    def test_few_decades_have_steps_and_ends_at_them(self):
        def named(low, high):
            return " ".join(short(value) for value in LogScale(low, high, 0, 9).ticks())
        self.assertEqual(named(130, 450), "100 200 500")
        self.assertEqual(named(3, 2e6), "10 100 1k 10k 100k 1M")

    def test_one_size_alone_has_a_place(self):
        self.assertEqual(LogScale(16, 16, 0, 100, whole=False)(16), 50)


class Losses(unittest.TestCase):
    """A table of weft's row, another of weft's, and two peers, in two rounds."""

    table = {"title": "times", "rows": ["weft, own", "weft, swapped", "Go", "Boost"]}

    def found(self, unit="ns", figures=(), **values):
        names = {"own": "weft, own", "swapped": "weft, swapped"}
        rows = [{"row": names.get(name, name), "compiler": "g++", "program": "p", "unit": unit,
                 "values": list(both), "median": sum(both) / 2} for name, both in values.items()]
        return found(rows) | {"figures": list(figures)}

    def leads(self, **values):
        return [(peer, row, by and by["median"], others) for peer, _, _, row, by, others in
                losses.leads(self.table, self.found(**values))]

    def section(self, *results):
        return "\n".join(losses.section(list(results)))

    def test_a_peer_is_ahead_by_the_median_of_the_ratios_within_rounds(self):
        self.assertEqual(self.leads(own=(20, 40), Go=(10, 10), Boost=(30, 50)),
                         [("Go", "weft, own", 3.0, [])])

    def test_where_more_is_better_the_peer_with_more_is_ahead(self):
        self.assertEqual(self.leads(unit="M/s", own=(20, 20), Go=(10, 10), Boost=(30, 30)),
                         [("Boost", "weft, own", 1.5, [])])

    def test_what_is_neither_better_nor_worse_has_nobody_ahead(self):
        self.assertEqual(self.leads(unit="a message", own=(20, 20), Go=(10, 10)), [])

    def test_a_unit_that_nobody_knows_is_refused(self):
        with self.assertRaises(Failure):
            self.leads(unit="furlongs", own=(20, 20), Go=(10, 10))

    def test_rows_that_differ_by_less_than_is_shown_are_level(self):
        self.assertEqual(self.leads(own=(10.01, 10.01), Go=(10, 10)), [])

    def test_another_row_of_wefts_that_is_behind_is_named(self):
        self.assertEqual(self.leads(own=(5, 5), swapped=(20, 20), Go=(10, 10)),
                         [("Go", "weft, own", None, ["weft, swapped"])])

    def test_a_case_may_name_the_row_that_stands_for_weft(self):
        rows = self.found(own=(5, 5), swapped=(20, 20), Go=(10, 10))
        table = {**self.table, "stands": "weft, swapped"}
        (peer, _, _, row, by, others), = losses.leads(table, rows)
        self.assertEqual((peer, row, by["median"], others), ("Go", "weft, swapped", 2.0, []))

    def test_a_round_without_a_value_does_not_count(self):
        rows = self.found(own=(20, 20), Go=(10, 10))
        rows["rows"][1]["values"][0] = None
        self.assertEqual(losses.leads(self.table, rows)[0][4]["median"], 2.0)

    def test_what_a_peer_says_of_its_value_stands_beside_it(self):
        rows = self.found(own=(20, 20), Go=(10, 10))
        rows["rows"][1]["note"] = "only half of it"
        self.assertIn("2 x (only half of it)", self.section((case(self.table), rows)))

    def over_columns(self, *leads):
        """What the list says of Go, which has 10 at each column, where weft has so many times"""
        rows = [entry(row, value, at, unit="ns", values=[value]) for at, times in leads
                for row, value in (("weft, own", 10 * times), ("Go", 10))]
        line = next(line for line in self.section(
                    (case(self.table), found(rows) | {"figures": []})).splitlines()
                    if "| Go |" in line)
        return line.split(" | ")[3]

    def test_a_lead_at_a_few_columns_is_told_for_each(self):
        self.assertEqual(self.over_columns(("4", 2), ("8", 0.5), ("16", 3), ("32", 5)),
                         "2 x (4), 3 x (16), 5 x (32)")

    def test_a_lead_at_many_columns_is_told_from_the_least_to_the_greatest(self):
        self.assertEqual(self.over_columns(("4", 2), ("8", 3), ("16", 5), ("32", 4)),
                         "2 to 5 x (all 4; most at 16)")
        self.assertEqual(self.over_columns(("4", 1), ("8", 3), ("16", 5), ("32", 4), ("64", 6)),
                         "3 to 6 x (8 to 64; most at 64)")
        self.assertEqual(self.over_columns(("4", 2), ("8", 3), ("16", 1), ("32", 4), ("64", 6)),
                         "2 to 6 x (4 of 5; most at 64)")

    def test_peers_may_be_the_columns_of_a_table(self):
        table = {"title": "t", "rows": ["time per stack"]}
        rows = [entry("time per stack", value, at, unit="ns", values=[value])
                for at, value in (("weft", 30), ("mmap", 10), ("Boost", 40))]
        self.assertEqual([lead[:2] for lead in losses.leads(table, found(rows))],
                         [("mmap", "time per stack")])

    def test_the_list_has_missed_bounds_peers_ahead_and_the_cases_without_either(self):
        missed = {"says": "a switch", "at": None, "compiler": "g++", "met": False,
                  "bound": "at most 2", "value": {"median": 3, "min": 3, "max": 3}}
        met = missed | {"says": "a lock", "met": True}
        with_losses = self.found(figures=[missed, met], own=(20, 20), Go=(10, 10))
        text = self.section((case(self.table), with_losses),
                            (types.SimpleNamespace(name="good", tables=[]), self.found()),
                            (types.SimpleNamespace(name="new", tables=[]), None))
        self.assertIn("| a switch | g++ | 3 | at most 2 |", text)
        self.assertNotIn("a lock", text)
        self.assertIn("| times | Go | weft, own | 2 x |", text)
        self.assertIn("no peer is ahead: good.", text)
        self.assertIn("Not measured yet: new.", text)


class Stored(unittest.TestCase):
    def test_all_results_in_the_repository_can_be_drawn(self):
        for name in known_cases():
            with self.subTest(name):
                one = Case(name)
                results = load(RESULTS / f"{name}.json")
                for svg in plots.draw(one, results).values() if results else []:
                    tree.fromstring(svg)

    def test_figures_in_documents_have_a_place_that_can_be_filled(self):
        places = 0
        for path in pages.documents():
            text = path.read_text()
            places += len(pages.PLACE.findall(text))
            self.assertEqual(text.count("<!-- figures:"), text.count("<!-- /figures -->"), path)
            self.assertEqual(pages.filled(text), text, f"{path}: make plots writes it anew")
        self.assertGreater(places, 5)

    def test_figures_of_several_machines_say_of_which_they_are(self):
        said = [pages.short_machine({"machine": {"cpu": cpu, "cpus": 2}}) for cpu in (
            "Intel(R) Xeon(R) Processor", "AMD EPYC", "Intel(R) Core(TM) i5-8250U CPU @ 1.60GHz")]
        self.assertEqual(said, [f"{cpu}, 2 CPUs" for cpu in (
            "Intel Xeon", "AMD EPYC", "Intel Core i5-8250U")])
        for name in known_cases():
            results = load(RESULTS / f"{name}.json")
            for lines in (pages.measured(None), pages.costs(None)) if results else []:
                for line in lines:
                    if f"[{name}]" in line:
                        self.assertIn(f"| {pages.short_machine(results)} |", line)

    def test_the_front_page_says_machine_compilers_and_commit_of_the_ring(self):
        text = (ROOT / "README.md").read_text()
        for length in (8, 2):
            self.assertIn(f"](docs/plots/ring_sizes_n{length}.svg)", text)
        results = load(RESULTS / "ring_sizes.json")
        compilers = [about["version"] for about in results["compilers"].values()]
        for words in (results["machine"]["cpu"], *compilers, results.get("commit") or "not rec"):
            self.assertIn(words, text)

    def test_every_case_is_on_the_page_of_benchmarks_with_words_of_its_own(self):
        text = (ROOT / "docs/benchmarks.md").read_text()
        self.assertIn("All cases are above.", text)
        for name in known_cases():
            self.assertRegex(text, rf"(?m)^## .*cases/{name}/README.md", name)

    def test_the_pages_of_cases_have_the_tables_of_their_results(self):
        for name in known_cases():
            one, results = Case(name), load(RESULTS / f"{name}.json")
            if results:
                lines = tables.tables(one, results, plots.draw(one, results))
                self.assertIn("\n".join(lines), (one.folder / "README.md").read_text(),
                              f"{name}: make plots writes it anew")

    def test_where_weft_loses_follows_the_results(self):
        text = (ROOT / "docs/benchmarks.md").read_text()
        place = "## Where weft loses\n"
        self.assertIn("<!-- figures: losses -->", text[text.index(place):])
        parts = dict(part.split("\n", 1) for part in text[text.index(place):].split("\n### ")[1:])
        for name in known_cases():
            results = load(RESULTS / f"{name}.json")
            listed = parts.get(name, "")  # two cases may have figures of one name
            for figure in results["figures"] if results else []:
                line = f"| {figure['says']}" + (f" ({figure['at']})" if figure["at"] else "")
                line += f" | {figure['compiler']} | "
                self.assertEqual(line in listed, figure["met"] is False, line)

    def test_a_list_that_is_older_than_the_results_is_noticed(self):
        text = (ROOT / "docs/benchmarks.md").read_text()
        real = pages.load
        self.addCleanup(setattr, pages, "load", real)

        def measured_again(path):
            results = real(path)
            for figure in results["figures"] if results else []:
                figure["met"] = True
            return results
        pages.load = measured_again
        self.assertNotEqual(pages.filled(text), text)

    def test_what_costs_what_names_rows_that_exist(self):
        for _, case, row, _ in pages.COSTS:
            self.assertIn(row, Case(case).rows)

    def test_unknown_figures_are_refused(self):
        with self.assertRaises(Failure):
            pages.filled("<!-- figures: nonsense -->\n<!-- /figures -->")


if __name__ == "__main__":
    unittest.main()
