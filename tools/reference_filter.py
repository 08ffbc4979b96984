#!/usr/bin/env python3
"""reference_filter.py - what Doxygen reads in place of a header (Doxyfile): the same, in its words.

The comment that a header opens with becomes that of the file, and of the class that the file is
named after, if that has none; a remark behind a member (after "//") becomes that of the member.
`inline v0` is left out: users do not write it. So are specialisations of the standard library's
templates and classes that are friends, of which Doxygen understands neither.

SPDX-License-Identifier: Apache-2.0
"""
import pathlib
import re
import sys

OPENING = re.compile(r"^((?://[^\n]*\n)+)")
REMARK = re.compile(r"^(\s*[^/\s][^/]*[;,{(}])\s+// (?!clang-format)(.*)$")
OF_STD = re.compile(r"^(?:///[^\n]*\n)*template <[^\n]*>\nstruct std::.*?};$",
                    re.MULTILINE | re.DOTALL)
FRIEND = re.compile(r"^ +friend (?:class |struct )?[\w:<>]+;$", re.MULTILINE)
LAST_ENUMERATOR = re.compile(r"^(\s+\w+(?: = \w+)?)\s+// (.*)$")


def opening(text):
    """As many lines as before, so that Doxygen names the right ones: the licence makes room."""
    lines = [line[3:] if line.startswith("// ") else "" for line in text.splitlines()]
    lines = [line.replace("*/", "* /") for line in lines if "SPDX-License" not in line]
    while lines and not lines[-1]:
        lines.pop()
    count = len(text.splitlines())
    return "\n".join(["/** @file", *lines, "*/", *[""] * (count - len(lines) - 2)]) + "\n"


def remark(line):
    return LAST_ENUMERATOR.sub(r"\1  ///< \2", REMARK.sub(r"\1  ///< \2", line))


def with_class(lines, name, what):
    """Puts what the file is above the class of that name."""
    for number, line in enumerate(lines):
        if not re.match(rf"(class|struct) (\[\[\w+\]\] )?{name}\b[^;]*$", line):
            continue
        above = number
        while above > 0 and re.match(r"template|    requires", lines[above - 1]):
            above -= 1
        if not lines[above - 1].startswith("///"):
            lines[above] = f"/** {what} */ {lines[above]}"
        break
    return lines


def filtered(text, name):
    head = OPENING.match(text)
    start = opening(head[1]) if head else ""
    rest = text[head.end():] if head else text
    rest = re.sub(r"\bnamespace weft::inline v0\b", "namespace weft", rest)
    for unknown in (OF_STD, FRIEND):
        rest = unknown.sub(lambda found: "\n" * found[0].count("\n"), rest)
    lines = [remark(line) for line in rest.split("\n")]
    if head:
        paragraph = " ".join(line[3:] for line in head[1].split("\n//\n")[0].splitlines())
        what = paragraph.partition(" - ")[2]
        lines = with_class(lines, name, what[:1].upper() + what[1:])
    return start + "\n".join(lines)


if __name__ == "__main__":
    if len(sys.argv) != 2 or sys.argv[1] in ("-h", "--help"):
        print(__doc__.split("SPDX")[0].strip())
    else:
        with open(sys.argv[1], encoding="utf-8") as file:
            sys.stdout.write(filtered(file.read(), pathlib.Path(sys.argv[1]).stem))
