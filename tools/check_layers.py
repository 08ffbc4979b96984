#!/usr/bin/env python3
"""check_layers.py - holds every #include, and CMakeLists.txt, to layers.txt.

Run it from anywhere, with no arguments. It prints file:line of each include that layers.txt does
not allow, and ends with status 1 if there is one. Tests and benchmarks beside the sources are held
to the same rules; what they include from tests/support is free.

SPDX-License-Identifier: Apache-2.0
"""
import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
PUBLIC = ROOT / "include" / "weft"
SOURCES = ROOT / "src"
INCLUDE = re.compile(r'\s*#\s*include\s*(?:<(weft/[^>]+)>|"([^"]+)")')
PART_LINE = re.compile(r"^weft_part\((\w+)(?:\s+DEPENDS\s+([\w\s]+))?\)", re.MULTILINE)


def read_layers(problems):
    """layers.txt as {part: the parts it may include}; a part may name only earlier ones."""
    layers = {}
    for number, line in enumerate((ROOT / "layers.txt").read_text().splitlines(), 1):
        rule = line.split("#")[0].strip()
        if not rule:
            continue
        part, _, allowed = rule.partition(":")
        layers[part] = set(allowed.split())
        for name in sorted(layers[part] - layers.keys()):
            problems.append(f"layers.txt:{number}: {part} names {name}, which does not stand above")
    return layers


def part_of(path):
    """The part that a file belongs to: None outside of parts, "" for weft/weft.hpp."""
    for top in (PUBLIC, SOURCES):
        if path.is_relative_to(top):
            inside = path.relative_to(top).parts
            return inside[0] if len(inside) > 1 else ""
    return None


def resolve(file, angled, quoted):
    """The path that an include means; the first that exists in the order the compiler looks."""
    if angled:
        return ROOT / "include" / angled
    for folder in (file.parent, SOURCES, ROOT / "include"):
        if (folder / quoted).exists():
            return (folder / quoted).resolve()
    return ROOT / "tests" / "support" / quoted


def check_file(file, layers, problems):
    part = part_of(file)
    for number, line in enumerate(file.read_text().splitlines(), 1):
        match = INCLUDE.match(line)
        if not match:
            continue
        included = part_of(resolve(file, *match.groups()))
        where = f"{file.relative_to(ROOT)}:{number}"
        if included == "":
            problems.append(f"{where}: {part} includes a header above all parts")
        elif included is not None and included != part and included not in layers[part]:
            problems.append(f"{where}: {part} may not include {included}")


def check_cmake(layers, problems):
    text = (ROOT / "CMakeLists.txt").read_text()
    declared = {part: set(names.split()) for part, names in PART_LINE.findall(text)}
    for part in sorted(declared.keys() | layers.keys()):
        if declared.get(part) != layers.get(part):
            problems.append(f"CMakeLists.txt: weft_part({part}) and layers.txt differ")


def main():
    if {"-h", "--help"} & set(sys.argv):
        print(__doc__.split("SPDX")[0].strip())
        return 0
    problems = []
    layers = read_layers(problems)
    check_cmake(layers, problems)
    for top in (PUBLIC, SOURCES):
        for file in sorted(top.rglob("*")):
            if file.suffix not in (".hpp", ".cpp", ".S"):
                continue
            part = part_of(file)
            if part and part not in layers:
                problems.append(f"{file.relative_to(ROOT)}: {part} is not in layers.txt")
            elif part:
                check_file(file, layers, problems)
    print("\n".join(problems) if problems else f"layers: {len(layers)} parts, no violation")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
