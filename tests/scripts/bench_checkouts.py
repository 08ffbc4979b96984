#!/usr/bin/env python3
"""bench_checkouts.py - usched and cppcoro in the case ring, from checkouts that a user names.

There are none here. Stand-ins have the files, the calls and the output of the real ones, in each of
the forms that these have had: bench/checkouts.cmake must build them, the programs must run, and
what cannot be built must be left out with a word.

SPDX-License-Identifier: Apache-2.0
"""
import json
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import unittest

ROOT = pathlib.Path(os.environ.get("SOURCE_DIR", pathlib.Path(__file__).parents[2]))
CXX = os.environ.get("CXX", "g++")
if not shutil.which("gcc") or not shutil.which("ninja"):
    sys.exit(77)

PROJECT = f"""
cmake_minimum_required(VERSION 3.25)
project(ring LANGUAGES CXX)
include({ROOT}/bench/checkouts.cmake)
message(NOTICE "checkouts: ${{checkouts}}.")
"""
USCHED = {
    "usched.c": "int usched_run(void) { return 0; }\n",
    "rr.c": """int usched_run(void);
int rr_start(void) { return usched_run(); }
#ifdef SINGLE_THREAD
int locks = 0;
#else
int locks = 1;
#endif
""",
    "rmain.c": """#include <stdio.h>
#include <stdlib.h>
int rr_start(void);
extern int locks;
int main(int argc, char **argv) {
    uint64_t begun = 250000;  /* of no header */
    if (argc != 6 || locks != (atoi(argv[5]) > 1) || rr_start() != 0) return 1;
    if (atoi(argv[2]) > 1000) { fprintf(stderr, "\\ncalloc: no memory\\n"); return 3; }
    printf(SAYS, FIRST begun / 1000000.);
    return 0;
}
""",
}
EVENT = """#pragma once
#include <NAME>
namespace cppcoro {
class single_consumer_async_auto_reset_event {
public:
    single_consumer_async_auto_reset_event(bool set = false) noexcept : set_(set) {}
    void set() noexcept {
        if (auto one = waiting_) {
            waiting_ = nullptr;
            one.resume();
        } else {
            set_ = true;
        }
    }
    auto operator co_await() const noexcept {
        struct awaiter {
            const single_consumer_async_auto_reset_event& event;
            bool await_ready() const noexcept { return false; }
            bool await_suspend(SPACE::coroutine_handle<> one) noexcept {
                if (event.set_) {
                    event.set_ = false;
                    return false;
                }
                event.waiting_ = one;
                return true;
            }
            void await_resume() noexcept {}
        };
        return awaiter{*this};
    }
private:
    mutable bool set_;
    mutable SPACE::coroutine_handle<> waiting_ = nullptr;
};
}
"""


class Checkouts(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.root = pathlib.Path(folder.name)
        self.build = self.root / "build"
        self.peer = self.root / "peer"
        self.write({"CMakeLists.txt": PROJECT})

    def write(self, files, folder="."):
        for name, text in files.items():
            path = self.root / folder / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)

    def configured(self, setting):
        done = subprocess.run(
            ["cmake", "-S", self.root, "-B", self.build, "-G", "Ninja", "--log-level=NOTICE",
             f"-DCMAKE_CXX_COMPILER={CXX}", f"-D{setting}={self.peer}"],
            capture_output=True, text=True)
        self.assertEqual(done.returncode, 0, done.stderr)
        return done.stderr

    def usched(self, says, first):
        rmain = USCHED["rmain.c"].replace("SAYS", says).replace("FIRST", first)
        self.write(USCHED | {"rmain.c": rmain}, "peer")
        self.assertIn("checkouts: checkouts.", self.configured("USCHED_DIR"))
        shutil.copy(ROOT / "bench/cases/ring/usched.sh", self.build / "bench/ring/usched")

    def ring(self, *numbers):
        command = [self.build / "bench/ring/usched", *map(str, numbers)]
        return subprocess.run(command, capture_output=True, text=True)

    def test_usched_that_says_the_seconds_alone_is_built_and_played(self):
        self.usched('"%f\\n"', "")
        self.assertEqual(self.ring(8, 2, 100, 0, 1).stdout.split(), ["16", "1600", "0.250000"])

    def test_usched_that_says_the_ring_and_the_seconds_is_played_as_well(self):
        self.usched('"%6s %6s %6s %f\\n"', "argv[1], argv[2], argv[3],")
        self.assertEqual(self.ring(2, 5, 10, 0, 1).stdout.split(), ["10", "100", "0.250000"])

    def test_usched_takes_no_locks_on_one_thread_and_its_locks_on_two(self):
        self.usched('"%f\\n"', "")
        for threads in (1, 2):
            self.assertEqual(self.ring(2, 4, 5, 0, threads).stdout.split(), ["8", "40", "0.250000"])

    def test_usched_that_fails_at_a_size_is_a_gap_with_its_error(self):
        self.usched('"%f\\n"', "")
        program = self.build / "bench/ring/checkouts"
        subprocess.run([CXX, "-std=c++23", "-I", ROOT / "bench", "-o", program,
                        ROOT / "bench/cases/ring/checkouts.cpp"], check=True)
        done = subprocess.run([program], capture_output=True, text=True)
        self.assertEqual(done.returncode, 0, done.stderr)
        about, *said = [json.loads(line) for line in done.stdout.splitlines()]
        self.assertRegex(about["about"], "^usched")
        rows = {(row["row"][:5], row["at"]): row for row in said}
        self.assertEqual(len(rows), 6)
        for size in (("N = 8", "16"), ("N = 8", "800"), ("N = 2", "4"), ("N = 2", "200")):
            self.assertGreater(rows[size]["value"], 0)
        for size in (("N = 8", "80,000"), ("N = 2", "20,000")):
            self.assertIsNone(rows[size]["value"])
            self.assertEqual(rows[size]["note"], "calloc: no memory")

    def test_what_is_no_usched_is_left_out_with_a_word(self):
        said = self.configured("USCHED_DIR")  # there is no such folder
        self.assertIn("ring/checkouts is left out", said)
        self.assertIn("checkouts: .", said)
        self.write({"usched.c": "no C\n"}, "peer")
        self.assertIn("ring/checkouts is left out", self.configured("USCHED_DIR"))

    def cppcoro(self, header, space):
        event = EVENT.replace("NAME", header).replace("SPACE", space)
        name = "include/cppcoro/single_consumer_async_auto_reset_event.hpp"
        self.write({name: event}, "peer")
        self.assertIn("checkouts: cppcoro.", self.configured("CPPCORO_DIR"))
        done = subprocess.run([self.build / "bench/cppcoro_tried", "--quick"],
                              capture_output=True, text=True)
        self.assertEqual(done.returncode, 0, done.stderr)
        about, *rows = [json.loads(line) for line in done.stdout.splitlines()]
        self.assertRegex(about["about"], "^cppcoro")
        self.assertEqual(len(rows), 6)  # three sizes of each length
        for row in rows:
            self.assertGreater(row["value"], 0)

    def test_cppcoro_of_its_author_is_built_and_played(self):
        self.cppcoro("experimental/coroutine", "std::experimental")

    def test_cppcoro_for_the_standard_s_coroutines_is_built_and_played(self):
        self.cppcoro("coroutine", "std")

    def test_what_is_no_cppcoro_is_left_out_with_a_word(self):
        said = self.configured("CPPCORO_DIR")
        self.assertIn("ring/cppcoro is left out", said)
        self.assertIn("checkouts: .", said)


if __name__ == "__main__":
    unittest.main()
