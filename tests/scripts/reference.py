#!/usr/bin/env python3
"""reference.py - no public name is without a comment; and tools/check_reference would notice.

SPDX-License-Identifier: Apache-2.0
"""
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import unittest

ROOT = pathlib.Path(os.environ.get("SOURCE_DIR", pathlib.Path(__file__).parents[2]))
if shutil.which("doxygen") is None:
    sys.exit(77)

HEADER = """// thing.hpp - a thing to be counted.
//
// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace weft::inline v0 {

namespace detail {
struct hidden { int a; };
}

class thing {
public:
    thing() = default;
    /// One more.
    void add();
    void add(int count);
    int known = 0;  // how many
    MEMBER
private:
    int secret_ = 0;
};

FREE

}  // namespace weft::inline v0
"""


class Repository(unittest.TestCase):
    def test_no_public_name_is_without_a_comment(self):
        done = subprocess.run([ROOT / "tools/check_reference"], capture_output=True, text=True)
        self.assertEqual(done.returncode, 0, done.stdout)


class Small(unittest.TestCase):
    def check(self, MEMBER="", FREE=""):
        with tempfile.TemporaryDirectory() as folder:
            root = pathlib.Path(folder)
            (root / "tools").mkdir()
            (root / "include/weft/part").mkdir(parents=True)
            for name in ("tools/check_reference", "tools/reference_filter.py", "Doxyfile"):
                shutil.copy(ROOT / name, root / name)
            header = HEADER.replace("MEMBER", MEMBER).replace("FREE", FREE)
            (root / "include/weft/part/thing.hpp").write_text(header)
            done = subprocess.run([root / "tools/check_reference"], capture_output=True, text=True)
            return done.returncode, done.stdout

    def all_are_named(self, place, before, *declarations):
        first = HEADER[:HEADER.index(place)].count("\n") + 1
        text = "\n".join(it.replace("lost", f"lost{i}") for i, it in enumerate(declarations))
        status, said = self.check(**{place: text})
        self.assertEqual(status, 1)
        for i, declaration in enumerate(declarations):
            self.assertIn(f"thing.hpp:{first + i}: {before}lost{i} has no comment", said,
                          declaration)

    def test_overloads_the_class_of_the_file_and_remarks_count_as_documented(self):
        status, text = self.check()
        self.assertEqual(status, 0, text)

    def test_a_member_without_a_comment_is_named_with_its_line(self):
        self.all_are_named("MEMBER", "weft::thing::", "void lost();", "int lost = 0;",
                           "using lost = int;", "auto lost() -> int;", "enum class lost { a };",
                           "struct lost {};", "union lost { int a; };",
                           "template <class T> using lost = T;", "friend void lost(thing& of);")

    def test_a_name_outside_of_a_class_needs_one_too(self):
        self.all_are_named("FREE", "weft::", "void lost();", "using lost = int;",
                           "inline constexpr int lost = 1;", "class lost {};",
                           "enum class lost { a };", "template <class T> concept lost = true;")
        status, text = self.check(FREE="#define WEFT_LOST 1")
        self.assertIn("WEFT_LOST has no comment", text)

    def test_a_value_of_an_enumeration_needs_one_of_its_own(self):
        status, text = self.check("/// Told.\n    enum class told {\n        a,  // one\n"
                                  "        lost,\n    };")
        self.assertEqual(status, 1)
        self.assertIn("weft::thing::told::lost has no comment", text)
        self.assertNotIn("told::a ", text)

    def test_a_warning_of_doxygen_is_a_failure(self):
        status, text = self.check("/// As @ref nobody_has_this says.\n    void told();")
        self.assertEqual(status, 1)
        self.assertIn("warning: unable to resolve reference to 'nobody_has_this'", text)

    def test_names_of_the_standard_library_are_no_exemption(self):
        status, text = self.check("bool try_lock();")
        self.assertEqual(status, 1)
        self.assertIn("weft::thing::try_lock has no comment", text)


if __name__ == "__main__":
    unittest.main()
