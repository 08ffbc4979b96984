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

}  // namespace weft::inline v0
"""


class Repository(unittest.TestCase):
    def test_no_public_name_is_without_a_comment(self):
        done = subprocess.run([ROOT / "tools/check_reference"], capture_output=True, text=True)
        self.assertEqual(done.returncode, 0, done.stdout)


class Small(unittest.TestCase):
    def check(self, member):
        with tempfile.TemporaryDirectory() as folder:
            root = pathlib.Path(folder)
            (root / "tools").mkdir()
            (root / "include/weft/part").mkdir(parents=True)
            for name in ("tools/check_reference", "tools/reference_filter.py", "Doxyfile"):
                shutil.copy(ROOT / name, root / name)
            header = HEADER.replace("MEMBER", member)
            (root / "include/weft/part/thing.hpp").write_text(header)
            done = subprocess.run([root / "tools/check_reference"], capture_output=True, text=True)
            return done.returncode, done.stdout

    def test_overloads_the_class_of_the_file_and_remarks_count_as_documented(self):
        status, text = self.check("")
        self.assertEqual(status, 0, text)

    def test_a_member_without_a_comment_is_named_with_its_line(self):
        for member in ("void lost();", "int lost = 0;", "enum class lost { a };"):
            status, text = self.check(member)
            self.assertEqual(status, 1, member)
            self.assertIn("weft/part/thing.hpp:19: weft::thing::lost has no comment", text)

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
