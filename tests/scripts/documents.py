#!/usr/bin/env python3
"""documents.py - the C++ of documents is that of files that are run; and tools/snippets notices.

SPDX-License-Identifier: Apache-2.0
"""
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import unittest

ROOT = pathlib.Path(os.environ.get("SOURCE_DIR", pathlib.Path(__file__).parents[2]))

SOURCE = """// a.cpp - a program.
int main() {
    // [one]
    int a = 1;
        // [inner]
        ++a;
        // [/inner]
    // [/one]
    return a - 2;
}
"""
CUT = "int a = 1;\n    ++a;"


class Repository(unittest.TestCase):
    def test_every_piece_is_cut_from_a_file_that_is_run(self):
        done = subprocess.run([sys.executable, ROOT / "tools/snippets"], capture_output=True,
                              text=True)
        self.assertEqual(done.returncode, 0, done.stdout)


    def test_hello_shows_the_project_of_the_readme(self):
        shown = [re.search(r"```cmake\n(.*?)```", (ROOT / name).read_text(), re.DOTALL)[1]
                 for name in ("README.md", "docs/hello.md")]
        self.assertEqual(*shown)


class Small(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)
        self.root = pathlib.Path(self.folder.name)
        for name in ("tools", "docs/snippets", "other"):
            (self.root / name).mkdir(parents=True)
        shutil.copy(ROOT / "tools/snippets", self.root / "tools")
        (self.root / "docs/snippets/a.cpp").write_text(SOURCE)
        (self.root / "other/b.cpp").write_text(SOURCE)

    def check(self, readme, *options):
        (self.root / "README.md").write_text(readme)
        done = subprocess.run([sys.executable, self.root / "tools/snippets", *options],
                              capture_output=True, text=True)
        return done.returncode, done.stdout

    def page(self, code, mark="docs/snippets/a.cpp one", inner=True):
        more = "<!-- snippet: docs/snippets/a.cpp inner -->\n```cpp\n++a;\n```\n"
        return f"<!-- snippet: {mark} -->\n```cpp\n{code}\n```\n" + (more if inner else "")

    def test_what_is_the_same_passes(self):
        self.assertEqual(self.check(self.page(CUT)), (0, "2 snippets\n"))

    def test_what_differs_is_found_and_mended(self):
        status, text = self.check(self.page("int a = 2;"))
        self.assertEqual(status, 1)
        self.assertIn("README.md:2: differs from docs/snippets/a.cpp", text)
        self.assertEqual(self.check(self.page("int a = 2;"), "--write")[0], 0)
        self.assertEqual((self.root / "README.md").read_text(), self.page(CUT))

    def test_code_from_nowhere_is_found(self):
        for code in ("```cpp\nint b\n```", "```c++\nint b\n```", "``` C++\nint b\n```",
                     "~~~cpp\nint b\n~~~", "````cpp\nint b\n````",
                     "1. words\n   ```cpp\nint b\n   ```",
                     "```\nint b;\n```", "```text\nauto c = weft::run(f)\n```"):
            status, text = self.check(self.page(CUT) + f"\n{code}\n")
            self.assertEqual(status, 1, code)
            self.assertIn("cut from nowhere", text)

    def test_code_that_is_only_indented_is_found_too(self):
        for code in ("int b = 1;", "auto c = weft::run(f)", "if (b) {"):
            status, text = self.check(self.page(CUT) + f"\nwords\n\n    make\n    {code}\n")
            self.assertEqual(status, 1, code)
            self.assertIn("README.md:14: C++ that is cut from nowhere", text)

    def test_other_languages_are_left_alone(self):
        for other in ("```cmake\nproject(x)\n```", "    make run  # the tour: all of it",
                      "- words\n    that go on;"):
            self.assertEqual(self.check(self.page(CUT) + f"\n{other}\n")[0], 0, other)

    def test_a_file_that_no_test_runs_is_refused(self):
        self.assertIn("not among the files", self.check(self.page(CUT, "other/b.cpp one"))[1])

    def test_a_piece_that_is_not_there_is_found(self):
        self.assertIn("0 times", self.check(self.page(CUT, "docs/snippets/a.cpp two"))[1])

    def test_a_piece_that_nobody_shows_is_found(self):
        self.assertIn("nobody shows the piece 'inner'", self.check(self.page(CUT, inner=False))[1])


if __name__ == "__main__":
    unittest.main()
