#!/usr/bin/env python3
"""bench_runner.py - bench/run without a benchmark: rounds, failures, runs that add up, estimates.

SPDX-License-Identifier: Apache-2.0
"""
import contextlib
import importlib.machinery
import io
import json
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import types
import unittest
import unittest.mock

sys.dont_write_bytecode = True
ROOT = pathlib.Path(os.environ.get("SOURCE_DIR", pathlib.Path(__file__).parents[2]))
sys.path.insert(0, str(ROOT / "bench"))

from runner import build, measure, results, tables  # noqa: E402
from runner.case import RESULTS, Case, Failure, known_cases  # noqa: E402
from runner.measure import Measured, interval  # noqa: E402
from runner.progress import Estimate, Progress, as_time, seconds_of, whole  # noqa: E402


class FakeRun:
    """Prints what it is told to, or fails."""

    def __init__(self, name, script, compiler="g++"):
        self.name, self.compiler, self.script = name, compiler, list(script)
        self.usage, self.about, self.error = [], None, None
        self.key = (name, compiler)

    def go(self, quick, at_most=None):
        said = self.script.pop(0)
        if said is None:
            raise Failure(f"{self}: crashed")
        if said is KeyboardInterrupt:
            raise KeyboardInterrupt
        self.usage.append({"seconds": 1.0, "peak_rss_kib": 10})
        return [{"row": row, "unit": "ns", "value": value} for row, value in said.items()]

    def is_peer(self):
        return not self.name.startswith("weft")

    def __str__(self):
        return self.name


class FakeTerminal(io.StringIO):
    def isatty(self):
        return True


def a_case(rows=("w", "p")):
    return types.SimpleNamespace(name="c", title="C", rows=list(rows), figures=[
        {"says": "w against p", "of": "w", "over": "p", "at_most": 0.5}],
        tables=[{"title": "t", "rows": list(rows), "reference": "p"}])


HOST = {"cpu": "x", "cpus": 2, "memory_gib": 1, "system": "s", "kernel": "k"}
COMPILERS = {"g++": {"version": "12", "flags": "-O2"}}


class Rounds(unittest.TestCase):
    def setUp(self):
        self.real, sys.stderr = sys.stderr, io.StringIO()

    def tearDown(self):
        sys.stderr = self.real

    def run_case(self, *runs, rounds=3):
        return measure.measure(a_case(), list(runs), rounds, Estimate())

    def test_values_stand_in_the_order_of_their_rounds(self):
        measured, rounds = self.run_case(FakeRun("weft", [{"w": 1}, {"w": 2}, {"w": 3}]))
        self.assertEqual(measured[("g++", "w", None)].values, [1, 2, 3])
        self.assertEqual(rounds, 3)

    def test_a_peer_that_fails_leaves_a_gap_and_the_others_go_on(self):
        peer = FakeRun("go", [None, {"p": 5}, None])
        measured, _ = self.run_case(FakeRun("weft", [{"w": 1}] * 3), peer)
        self.assertEqual(measured[("g++", "p", None)].values, [None, 5, None])
        self.assertEqual(measured[("g++", "w", None)].values, [1, 1, 1])
        self.assertIn("crashed", peer.error)

    def test_a_program_that_fails_has_the_rows_until_then_and_its_own_words(self):
        with tempfile.TemporaryDirectory() as folder:
            program = pathlib.Path(folder) / "go"
            program.write_text("""#!/bin/sh
echo '{"row": "p", "unit": "ns", "value": 7}'
echo >&2
echo 'fatal error: out of memory' >&2
echo 'a long trace' >&2
echo '{"status": 2, "seconds": 1.0, "peak_rss_kib": 10}'
""")
            program.chmod(0o755)
            build = types.SimpleNamespace(compiler="g++")
            run = measure.Run(a_case(), build, {"name": "go"}, [], program)
            measured, _ = measure.measure(a_case(), [run], 2, Estimate())
        self.assertEqual(measured[("g++", "p", None)].values, [7, 7])
        self.assertEqual(run.error, "c/go (g++): ended with status 2: fatal error: out of memory")
        self.assertEqual(run.usage, [])

    def test_a_program_that_takes_too_long_has_the_rows_until_then(self):
        with tempfile.TemporaryDirectory() as folder:
            program = pathlib.Path(folder) / "go"
            program.write_text("""#!/bin/sh
echo '{"row": "p", "unit": "ns", "value": 7}'
printf '{"row": "w", '
exec sleep 100
""")
            program.chmod(0o755)
            run = measure.Run(a_case(), types.SimpleNamespace(compiler="g++"),
                              {"name": "go", "timeout": 1}, [], program)
            measured, _ = measure.measure(a_case(), [run], 1, Estimate())
        self.assertEqual(measured[("g++", "p", None)].values, [7])
        self.assertIn("not done after 1 s", run.error)

    def test_rows_of_a_peer_that_never_came_to_print_them_are_gaps_that_say_why(self):
        peer = FakeRun("go", [None, None, None])
        peer.case = a_case()
        before = {"rows": [{"row": "p", "program": "go", "unit": "ns", "at": "8"},
                           {"row": "w", "program": "weft"}, {"row": "old", "program": "go"}]}
        measured, rounds = self.run_case(FakeRun("weft", [{"w": 1}] * 3), peer)
        measure.leave_gaps(measured, [peer], rounds, [None, before])
        gap = measured[("g++", "p", "8")]
        self.assertEqual((gap.values, gap.note), ([None] * 3, "crashed"))
        self.assertEqual(len(measured), 2)
        self.assertIsNone(measured[("g++", "w", None)].note)

    def test_a_program_of_weft_that_fails_ends_the_run(self):
        with self.assertRaises(Failure):
            self.run_case(FakeRun("weft_two", [{"w": 1}, None, {"w": 1}]))

    def test_an_interrupt_takes_back_the_round_that_runs_and_keeps_those_before(self):
        weft = FakeRun("weft", [{"w": 1}, {"w": 2}, {"w": 3}])
        with self.assertRaises(measure.Interrupted) as caught:
            self.run_case(weft, FakeRun("go", [{"p": 4}, None, KeyboardInterrupt]))
        measured, rounds = caught.exception.args
        self.assertEqual((rounds, len(weft.usage)), (2, 2))
        self.assertEqual(measured[("g++", "w", None)].values, [1, 2])
        self.assertEqual(measured[("g++", "p", None)].values, [4, None])
        with self.assertRaises(KeyboardInterrupt):  # nothing whole to keep
            self.run_case(FakeRun("weft", [KeyboardInterrupt]))

    def test_a_row_that_is_printed_twice_is_an_error(self):
        run = FakeRun("weft", [])
        with self.assertRaises(Failure):
            measure.collect({}, run, [{"row": "w", "value": 1}, {"row": "w", "value": 2}], 0)

    def test_until_a_deadline_each_has_what_the_others_leave_and_its_share_at_least(self):
        runs = [FakeRun("weft", []), FakeRun("go", [])]
        estimate = Estimate({runs[0].key: 30.0, runs[1].key: 10.0})
        for left, first, second in ((80, 70, 80), (20, 15, 20)):
            deadline = measure.time.monotonic() + left
            self.assertAlmostEqual(measure.most_for(runs, estimate, deadline), first, 0)
            self.assertAlmostEqual(measure.most_for(runs[1:], estimate, deadline), second, 0)

    def test_a_deadline_leaves_rounds_out_but_not_the_first(self):
        clock = measure.time.monotonic
        run = FakeRun("weft", [{"w": 1}, {"w": 2}])
        _, rounds = measure.measure(a_case(), [run], 2, Estimate({run.key: 50.0}), clock() + 99)
        self.assertEqual(rounds, 2)
        run = FakeRun("weft", [{"w": 1}, {"w": 2}])
        _, rounds = measure.measure(a_case(), [run], 2, Estimate({run.key: 900.0}), clock() + 99)
        self.assertEqual(rounds, 1)


class AddingUp(unittest.TestCase):
    def found(self, script, old=None, commit="abc", peer=None):
        run = FakeRun("weft", [{"w": v} for v in script])
        peer = FakeRun("go", peer or [{"p": 4}] * 9)
        sys.stderr, real = io.StringIO(), sys.stderr
        measured, rounds = measure.measure(a_case(), [run, peer], len(script), Estimate())
        sys.stderr = real
        if results.adds_up(old, a_case(), HOST, commit, COMPILERS):
            rounds = results.put_before(old, measured, [run, peer], rounds)
        made = results.results(a_case(), HOST, commit, COMPILERS, [run, peer], [], measured, rounds)
        return json.loads(results.as_text(made))

    def test_runs_of_one_machine_and_commit_add_up(self):
        found = self.found([3, 4], self.found([1, 2]))
        self.assertEqual(found["rounds"], 4)
        self.assertEqual(found["rows"][0]["values"], [1, 2, 3, 4])
        self.assertEqual(found["rows"][0]["median"], 2.5)
        self.assertEqual(found["rows"][0]["ratio"]["max"], 1.0)
        self.assertEqual(len(found["programs"][0]["seconds"]["values"]), 4)

    def test_those_of_another_commit_or_of_a_changed_tree_do_not(self):
        self.assertEqual(self.found([3], self.found([1], commit="old"))["rounds"], 1)
        self.assertEqual(self.found([3], self.found([1], commit="abc+"), "abc+")["rounds"], 1)

    def test_those_of_another_machine_do_not(self):
        old = self.found([1]) | {"machine": HOST | {"cpus": 64}}
        self.assertEqual(self.found([3], old)["rounds"], 1)

    def test_a_peer_that_fails_each_time_does_not_keep_the_others_from_it(self):
        old = self.found([1, 2], peer=[None] * 2)
        found = self.found([3, 4], old, peer=[None] * 2)
        self.assertEqual(found["rounds"], 4)
        self.assertEqual(found["rows"][0]["values"], [1, 2, 3, 4])
        self.assertIn("crashed", found["programs"][1]["error"])

    def test_why_there_is_a_gap_is_remembered(self):
        found = self.found([3], self.found([1, 2], peer=[{"p": 4}, None]))
        self.assertEqual(found["rows"][1]["values"], [4, None, 4])
        self.assertIn("crashed", found["programs"][1]["error"])

    def test_paths_of_this_machine_are_not_written(self):
        home = os.environ.get("HOME")
        self.addCleanup(os.environ.__setitem__, "HOME", home or "/")
        os.environ["HOME"] = "/somebodys/home"
        text = results.as_text({"error": f"no {ROOT}/a, /somebodys/home/b, /somebodys/homely"})
        self.assertEqual(json.loads(text)["error"], "no ./a, ~/b, /somebodys/homely")
        os.environ["HOME"] = "/"
        self.assertIn("10 M/s", results.as_text({"unit": "10 M/s"}))

    def test_why_there_was_no_value_is_forgotten_when_there_is_one(self):
        old = self.found([1, 2], peer=[None] * 2)
        old["rows"].append({"row": "p", "compiler": "g++", "program": "go", "unit": "ns",
                            "values": [None, None], "note": "crashed"})
        found = self.found([3], old)
        row = next(row for row in found["rows"] if row["row"] == "p")
        self.assertEqual((row["values"], row.get("note")), ([None, None, 4], None))

    def test_a_row_that_was_missing_before_has_gaps_there(self):
        old = self.found([1, 2])
        old["rows"] = [row for row in old["rows"] if row["row"] != "p"]
        found = self.found([3, 4], old)
        values = {row["row"]: row["values"] for row in found["rows"]}
        self.assertEqual(values["p"], [None, None, 4, 4])

    def test_a_user_without_a_home_may_measure(self):
        with unittest.mock.patch.dict(os.environ, HOME="/"):  # as containers have it
            self.assertIn("a/b", results.as_text({"note": "a/b"}))
        with unittest.mock.patch.dict(os.environ, HOME="/house/of/a"):
            self.assertIn("read ~/b", results.as_text({"note": "read /house/of/a/b"}))

    def test_what_was_built_for_no_compiler_is_named_as_the_case_says(self):
        case = types.SimpleNamespace(programs=[{"name": "a", "absent": "A (set A_DIR)"},
                                               {"name": "b", "absent": "B"}, {"name": "c"}])
        words = ["a (g++): not there", "b (g++): not there", "a (clang): not there"]
        found = {"compilers": {"g++": 1, "clang": 1}, "skipped": [*words, "c (g++): not there"]}
        self.assertEqual(tables.skipped(case, found),
                         ["A (set A_DIR)", "b (g++): not there", "c (g++): not there"])

    def test_the_tables_name_commit_figures_and_failures(self):
        found = self.found([1, 2])
        found["programs"][1]["error"] = "go: crashed"
        text = "\n".join(tables.tables(a_case(), found, {"c.svg": ""}))
        for words in ("commit abc", "| w against p | g++ | 0.375", "Failed: go: crashed", "c.svg"):
            self.assertIn(words, text)


class Brief(unittest.TestCase):
    """bench/run --brief, with programs that only say that they were run."""

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)
        loader = importlib.machinery.SourceFileLoader("bench_run", str(ROOT / "bench/run"))
        self.bench = types.ModuleType("bench_run")
        self.bench.__file__ = loader.path
        loader.exec_module(self.bench)
        build = types.SimpleNamespace(compiler="g++", version=lambda: "12", flags=lambda _: "-O2")
        case = types.SimpleNamespace(**vars(a_case()), compilers=["g++"], rounds=None,
                                     shorten=lambda: None)
        self.bench.Case = lambda _: case
        self.bench.builds_for = lambda *_: [build]
        self.bench.runs_of = lambda *_: (
            [FakeRun("weft", [{"w": 1}] * 5), FakeRun("go", [{"p": 4}] * 5)], [])
        self.at("abc")

    def at(self, commit):
        self.bench.results = types.SimpleNamespace(
            **vars(results) | {"commit": lambda: commit, "machine": lambda: HOST})

    def run_once(self):
        wanted = types.SimpleNamespace(brief=True, quick=False, rounds=5, build_dir=self.folder)
        self.said = io.StringIO()
        with contextlib.redirect_stdout(self.said), contextlib.redirect_stderr(io.StringIO()):
            self.bench.run_case("c", wanted)
        return json.loads((self.folder / "brief/c.json").read_text())["rounds"]

    def test_runs_of_one_commit_add_up_in_their_own_folder(self):
        self.assertEqual([self.run_once(), self.run_once()], [5, 10])
        self.at("def")
        self.assertEqual(self.run_once(), 5)
        self.at("def+")
        self.assertEqual([self.run_once(), self.run_once()], [5, 5])

    def test_it_measures_for_what_a_build_leaves_of_three_minutes_and_a_minute_at_least(self):
        builds, now, deadlines = self.bench.builds_for(), [0.0], []
        self.bench.time = types.SimpleNamespace(monotonic=lambda: now[0])
        self.bench.measure = lambda *a: deadlines.append(a[-1]) or measure.measure(*a[:-1])
        for took, measuring in ((5, 160), (75, 90), (400, 60)):
            now[0] = 0.0
            self.bench.builds_for = lambda *_, t=took: now.__setitem__(0, t) or builds
            self.run_once()
            self.assertEqual(deadlines.pop(), took + measuring)

    def test_what_it_prints_names_its_own_files(self):
        self.run_once()
        self.assertIn("every value is in `c.json`", self.said.getvalue())
        self.assertNotIn("docs/plots", self.said.getvalue())


class Interrupts(unittest.TestCase):
    """The same, without --brief: what was committed is not to be lost for half a run."""

    set_up_as_brief, at = Brief.setUp, Brief.at

    def setUp(self):
        self.set_up_as_brief()
        self.bench.RESULTS, self.bench.PLOTS = self.folder / "results", self.folder / "plots"
        self.bench.tables = types.SimpleNamespace(
            tables=tables.tables, put_into_readme=lambda *_: None)
        self.bench.pages = types.SimpleNamespace(fill_all=lambda: [])

    def run_script(self, *script):
        self.bench.runs_of = lambda *_: ([FakeRun("weft", script)], [])
        wanted = types.SimpleNamespace(brief=False, quick=False, rounds=len(script),
                                       build_dir=self.folder)
        with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
            self.bench.run_case("c", wanted)

    def values(self, folder):
        path = self.folder / folder / "c.json"
        return json.loads(path.read_text())["rows"][0]["values"] if path.exists() else None

    def test_whole_rounds_lie_aside_until_the_next_run_takes_them_up(self):
        self.run_script({"w": 1}, {"w": 2})
        self.at("def")
        for first in (3, 4):
            with self.assertRaisesRegex(KeyboardInterrupt, "rounds of c are in .*interrupted$"):
                self.run_script({"w": first}, KeyboardInterrupt)
        self.assertEqual((self.values("results"), self.values("interrupted")), ([1, 2], [3, 4]))
        self.run_script({"w": 5})
        self.assertEqual((self.values("results"), self.values("interrupted")), ([3, 4, 5], None))
        self.run_script({"w": 6})
        self.assertEqual(self.values("results"), [3, 4, 5, 6])

    def test_nothing_whole_leaves_all_as_it_was(self):
        self.run_script({"w": 1}, {"w": 2})
        with self.assertRaises(KeyboardInterrupt):
            self.run_script(KeyboardInterrupt)
        self.assertEqual((self.values("results"), self.values("interrupted")), ([1, 2], None))

    def test_a_file_that_is_no_json_is_named(self):
        (self.folder / "results").mkdir()
        (self.folder / "results/c.json").write_text("{")
        with self.assertRaisesRegex(Failure, "c.json is no JSON"):
            self.run_script({"w": 1})


class Flags(unittest.TestCase):
    def test_a_case_that_runs_programs_of_another_has_their_flags(self):
        with tempfile.TemporaryDirectory() as folder:
            (pathlib.Path(folder) / "compile_commands.json").write_text(json.dumps([
                {"command": "g++ -O2 -I/a -g -c x.cpp", "file": "/w/bench/cases/ring/weft.cpp"},
                {"command": "g++ -O2 -Wall -c y.cpp", "file": "/w/bench/cases/ring/cpp20.cpp"},
                {"command": "g++ -O0 -c z.cpp", "file": "/w/bench/cases/yield/weft.cpp"}]))
            one = build.Build("g++", pathlib.Path(folder))
            self.assertEqual(one.flags(Case("ring_sizes")), "-O2")


class Builds(unittest.TestCase):
    """A case of two programs, weft's and a peer's, in a project of its own."""

    PROJECT = """cmake_minimum_required(VERSION 3.25)
project(c LANGUAGES CXX)
add_custom_target(bench_case_c)
file(GLOB sources CONFIGURE_DEPENDS *.cpp)
add_custom_target(bench_launch)
foreach(source IN LISTS sources)
  cmake_path(GET source STEM name)
  add_executable(bench_c_${name} ${source})
  set_target_properties(bench_c_${name} PROPERTIES OUTPUT_NAME ${name}
    RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/bench/c)
  add_dependencies(bench_case_c bench_c_${name})
endforeach()
if(EXISTS ${CMAKE_SOURCE_DIR}/installed)
  file(TOUCH ${CMAKE_BINARY_DIR}/found)
endif()
"""

    def setUp(self):
        if not shutil.which("ninja") or not shutil.which("g++"):
            self.skipTest("neither ninja nor g++")
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.root = pathlib.Path(folder.name)
        self.addCleanup(setattr, build, "ROOT", build.ROOT)
        build.ROOT = self.root
        self.write("CMakeLists.txt", self.PROJECT)
        self.write("weft.cpp", "int main() {}")
        self.write("peer.cpp", "int main() {}")
        self.folder = self.root / "build"
        subprocess.run(["cmake", "-G", "Ninja", "-DCMAKE_CXX_COMPILER=g++", "-B", self.folder],
                       cwd=self.root, check=True, capture_output=True)

    def write(self, name, text):
        (self.root / name).write_text(text)

    def made(self, left_out=()):
        """The build, with what cmake and ninja print kept away."""
        one = build.Build("g++", self.folder)
        real = subprocess.run
        with contextlib.redirect_stdout(io.StringIO()), unittest.mock.patch.object(
                subprocess, "run", lambda *words, **how: real(*words, **{
                    "stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL, **how}
                    if "capture_output" not in how else how)):
            one.make(types.SimpleNamespace(name="c", uses=lambda: ["c"], left_out=left_out))
        return one

    def runs(self, one):
        programs = [{"name": "weft"}, {"name": "peer"}]
        case = types.SimpleNamespace(name="c", folder=self.root, programs=programs)
        return measure.runs_of(case, [one])

    def test_a_peer_that_does_not_compile_fails_each_time_with_its_error(self):
        self.made()
        program = self.folder / "bench/c/peer"
        self.assertTrue(program.exists())
        self.write("peer.cpp", "int main() { return of_another_version; }")
        one = self.made()
        self.assertFalse(program.exists(), "an older one would be measured")
        runs, skipped = self.runs(one)
        self.assertEqual(([run.name for run in runs], skipped), (["weft", "peer"], []))
        with self.assertRaisesRegex(Failure, "peer.* does not compile: .*of_another_version"):
            runs[1].go(quick=False)
        with self.assertRaises(Failure) as failure:
            runs[1].go(quick=False)
        self.assertNotIn(str(self.root), str(failure.exception))
        self.assertIn("of_another", (self.folder / "bench/c/peer.failed").read_text())
        self.write("peer.cpp", "int main() {}")
        self.assertEqual(self.made().failed, {})
        self.assertFalse((self.folder / "bench/c/peer.failed").exists())

    def test_a_program_that_a_brief_run_does_without_is_not_built(self):
        case = Case("ring")
        case.shorten()
        self.assertEqual(case.left_out, ["weft_no_prefetch"])
        self.assertNotIn("weft_no_prefetch", [program["name"] for program in case.programs])
        self.write("weft_two.cpp", "int main() { return wrong; }")
        self.made(left_out=["weft_two"])
        self.assertEqual({path.name for path in (self.folder / "bench/c").iterdir()},
                         {"weft", "peer"})

    def test_a_program_of_weft_that_does_not_compile_ends_the_run(self):
        self.write("weft.cpp", "int main() { return wrong; }")
        with self.assertRaisesRegex(Failure, "weft .* does not compile"):
            self.made()

    def test_what_was_installed_since_the_last_time_is_found(self):
        self.made()
        self.write("installed", "")
        self.made()
        self.assertTrue((self.folder / "found").exists())


class Bar(unittest.TestCase):
    def test_time_left_is_what_the_same_things_took_before(self):
        estimate = Estimate({"a": 10.0})
        now = [0.0]
        brief = Progress("c", ["a"] * 9, estimate, io.StringIO(), lambda: now[0], deadline=42)
        self.assertEqual(brief.left(), 42)  # and not 90
        progress = Progress("c", ["a", "b", "a", "b"], estimate, io.StringIO(), lambda: now[0])
        self.assertEqual(progress.left(), 40)  # b never ran: as long as the others
        progress.begin("a")
        now[0] = 20.0
        progress.end()
        self.assertEqual(progress.left(), 15 * 3)  # a takes 15 on average

    def test_a_terminal_gets_a_bar_that_is_drawn_over(self):
        out = FakeTerminal()
        progress = Progress("c", ["a"] * 4, Estimate({"a": 65.0}), out)
        progress.done = 2
        progress.begin("weft")
        self.assertTrue(out.getvalue().startswith("\r"))
        self.assertIn("[############............] 2/4  2:10 left  weft", out.getvalue())
        self.assertNotIn("\n", out.getvalue())

    def test_a_narrow_terminal_gets_a_bar_that_does_not_wrap_and_still_says_the_time(self):
        out = FakeTerminal()
        progress = Progress("ring_sizes", ["a"] * 45, Estimate({"a": 9}), out, clock=lambda: 0)
        with unittest.mock.patch.dict(os.environ, COLUMNS="40"):
            progress.begin("weft_no_prefetch g++")
        drawn = out.getvalue().rpartition("\033[K")[2]
        self.assertLess(len(drawn), 40)
        self.assertIn("6:45 left", drawn)

    def test_a_pipe_gets_lines(self):
        out = io.StringIO()
        progress = Progress("c", ["a"] * 4, Estimate({"a": 1.0}), out)
        progress.begin("weft")
        progress.after_round(1, 4)
        self.assertEqual(out.getvalue(), "c: round 1 of 4, about 4 s left\n")

    def test_times(self):
        self.assertEqual([as_time(s) for s in (7, 65, 7384, -1)], ["7 s", "1:05", "2:03:04", "0 s"])


    def test_the_whole_is_what_all_rounds_of_all_programs_took_before(self):
        before = {("weft", "g++"): 2.0, ("go", "g++"): 3.0, ("weft", "clang++-19"): 5.0}
        self.assertEqual(seconds_of(before, 9, ["g++", "clang++-19"]), 90)
        self.assertEqual(seconds_of(before, 9, ["g++"]), 45)
        self.assertEqual(seconds_of(before, 9, ["g++"], at_most=30), 30)
        self.assertIsNone(seconds_of({}, 9, ["g++"]))
        self.assertEqual(whole({"a": 60.0, "b": 30.0}), "about 1:30 of measuring")
        self.assertEqual(whole({"a": 60.0, "b": None}),
                         "about 1:00 of measuring, and b, which never ran here")

    def test_a_run_of_all_cases_is_estimated_from_what_is_stored(self):
        for name in known_cases():
            before = results.seconds_before(results.load(RESULTS / f"{name}.json"))
            case = Case(name)
            seconds = seconds_of(before, case.rounds or 9, case.compilers)
            self.assertTrue(seconds is None or 0 < seconds < 3600, name)


class Commits(unittest.TestCase):
    """What a result says of the sources that it was measured with."""

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.root = pathlib.Path(folder.name)
        self.addCleanup(setattr, results, "ROOT", results.ROOT)
        results.ROOT = self.root
        self.git("init", "-q")
        self.change("src/a.cpp", "1")
        self.git("add", ".")
        self.git("commit", "-q", "-m", "one")

    def git(self, *words):
        who = ["-c", "user.name=a", "-c", "user.email=a@b"]
        done = subprocess.run(["git", *who, *words], cwd=self.root, capture_output=True, text=True)
        self.assertEqual(done.returncode, 0, done.stderr)
        return done.stdout.strip()

    def change(self, name, text):
        path = self.root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)

    def test_a_tree_without_changes_is_its_commit(self):
        self.assertEqual(results.commit(), self.git("log", "-1", "--format=%h", "--abbrev=10"))

    def test_changes_in_sources_or_in_how_they_are_built_are_marked(self):
        for name in ("src/a.cpp", "bench/new.cpp", "CMakeLists.txt"):
            self.change(name, "2")
            self.assertRegex(results.commit(), r"^\w{10}\+$", name)
            self.git("stash", "-u", "-q")

    def test_documents_and_results_do_not_count(self):
        for name in ("docs/a.md", "bench/cases/c/README.md", "bench/results/c.json"):
            self.change(name, "2")
        self.assertNotIn("+", results.commit())

    def test_a_commit_that_history_was_rewritten_without_is_noticed(self):
        first = results.commit()
        self.change("src/a.cpp", "2")
        self.git("commit", "-q", "-a", "-m", "two")
        second = results.commit()
        self.assertEqual([results.lost(c) for c in (first, second, f"{second}+", None)],
                         [False] * 4)
        self.git("commit", "-q", "--amend", "-m", "two, again")
        self.assertEqual([results.lost(c) for c in (first, second, "0123456789")],
                         [False, True, True])

    def test_a_tree_that_changes_during_a_run_is_marked_too(self):
        self.assertEqual([results.changed(c) for c in ("abc", "abc+", None)],
                         ["abc+", "abc+", None])

    def test_the_page_says_what_the_mark_means(self):
        self.assertIn("not committed", tables.commit_of({"commit": "abc+"}))
        self.assertEqual(tables.commit_of({"commit": "abc"}), "abc")


class Versions(unittest.TestCase):
    def test_a_program_may_speak_for_several_peers(self):
        run = measure.Run(a_case(), types.SimpleNamespace(compiler="g++"), {"name": "others"}, [],
                          "launch")
        for _ in range(2):  # rounds
            run.rows_of([{"about": "go1.19.8"}, {"about": "rustc 1.63"}])
        self.assertEqual(run.about, "go1.19.8; rustc 1.63")

    def test_the_tables_name_them(self):
        found = {"programs": [{"program": "others", "about": "go1.19.8; rustc 1.63"},
                              {"program": "go", "about": "go1.19.8"}, {"program": "standard"},
                              {"program": "weft_million", "about": "guards"}]}
        self.assertEqual(tables.peers(found), ["go1.19.8", "rustc 1.63"])

    def test_every_program_of_a_peer_says_which_version_it_is(self):
        for path in (ROOT / "bench/cases").glob("*/*"):
            is_peer = path.suffix in (".go", ".rb", ".rs") or path.suffix == ".cpp" and (
                path.stem.startswith(("boost", "tbb", "cppcoro")))
            if is_peer:
                text = path.read_text()
                self.assertRegex(text, r"about|--version|runtime\.Version\(\)", path)


class Cases(unittest.TestCase):
    def test_every_case_can_be_read_and_knows_whose_programs_it_runs(self):
        for name in known_cases():
            with self.subTest(name):
                self.assertTrue(Case(name).uses())
        self.assertEqual(Case("ring_sizes").uses(), ["ring"])
        self.assertEqual(Case("yield").uses(), ["yield"])

    def test_usched_is_started_and_its_answer_completed(self):
        with tempfile.TemporaryDirectory() as folder:
            script = shutil.copy(ROOT / "bench/cases/ring/usched.sh", folder)
            for threads, name, seconds in (("1", "usched_rmain_1", "0.25"),
                                           ("2", "usched_rmain", "0.5")):
                numbers = ["8", "2", "10", "0", threads]
                program = pathlib.Path(folder) / name
                program.write_text(
                    f'#!/bin/sh\ntest "$*" = "{" ".join(numbers)}" && echo {seconds}\n')
                program.chmod(0o755)
                done = subprocess.run([script, *numbers], capture_output=True, text=True)
                self.assertEqual(done.stdout, f"16 160 {seconds}\n")

    def test_a_case_says_how_many_rounds_it_wants(self):
        self.assertEqual(Case("echo").rounds, 11)
        self.assertEqual(Case("http").uses(), ["http"])


class Intervals(unittest.TestCase):
    def test_the_interval_of_a_median_is_two_of_its_values(self):
        self.assertIsNone(interval([1, 2, 3, 4, 5]))
        self.assertEqual(interval([6, 5, 4, 3, 2, 1]), [1, 6])
        self.assertEqual(interval(list(range(1, 12))), [2, 10])
        self.assertEqual(interval([None, *range(1, 12), None]), [2, 10])
        self.assertEqual(interval([7.0] * 9), [7.0, 7.0])

    def test_a_figure_has_it_and_its_line_says_it(self):
        measured = {("g++", row, None): Measured("p", "us", values) for row, values in
                    (("a", [2, 4, 6, 8, 10, 12]), ("b", [1, 2, 3, 4, 5, 6]))}
        value = results.figure_value({"of": "a", "over": "b"}, measured, "g++", None)
        self.assertEqual(value["interval"], [2, 2])
        value = results.figure_value({"of": "a"}, measured, "g++", None)
        self.assertEqual(tables.show_figure(value), "7 (2 to 12); 95 %: 2 to 12")


if __name__ == "__main__":
    unittest.main()
