#!/usr/bin/env python3
"""versioned_symbols.py - every global symbol of the library carries the version of its interface.

Two versions of weft in one process do not meet by name then. In C++ the inline namespace does it
(include/weft/base/version.hpp), and what has C linkage or is written in assembler has to do it by
hand: weft_v0_NAME. What the library instantiates of others is theirs.

SPDX-License-Identifier: Apache-2.0
"""
import os
import pathlib
import re
import shutil
import subprocess
import sys

ROOT = pathlib.Path(os.environ.get("SOURCE_DIR", pathlib.Path(__file__).parents[2]))
LIBRARY = pathlib.Path(os.environ["PROGRAM_DIR"]) / "../../libweft.a"
HEADER = (ROOT / "include/weft/base/version.hpp").read_text()
VERSION = re.search(r"namespace weft::inline (v\d+)", HEADER)[1]
BUILD = re.search(r"(weft_\d+_\d+_built_with_)", HEADER)[1]
# The strong symbols are definitions of ours; the weak ones may be the standard library's.
OURS = re.compile(rf"_Z.*4weft{len(VERSION)}{VERSION}|weft_{VERSION}_|{BUILD}")
UNVERSIONED = re.compile(rf"(?<!\d)4weft(?!{len(VERSION)}{VERSION})|"
                         r"^_Z(?:NK?)?\d+(?!__gnu_cxx)|^(?!_|DW\.ref)")

if os.environ.get("SANITIZE") or os.environ.get("EMULATOR") or not LIBRARY.exists():
    print("needs the static library of an ordinary build")
    sys.exit(77)
if not shutil.which("nm"):
    print("needs nm")
    sys.exit(77)
listing = subprocess.run(["nm", "-g", "--defined-only", LIBRARY], capture_output=True, text=True)
symbols = set(re.findall(r"^[0-9a-f]+ (\w) (\S+)$", listing.stdout, re.MULTILINE))
if len(symbols) < 1000:
    print("nm does not see into a library that is built for link-time optimisation")
    sys.exit(77)
wrong = sorted(name for kind, name in symbols
               if not OURS.match(name) and (kind not in "WVu" or UNVERSIONED.search(name)))
if wrong:
    print(f"without {VERSION} in their names:", *wrong, sep="\n")
    sys.exit(1)
print(f"{len(symbols)} symbols, {sum(1 for _, name in symbols if OURS.match(name))} of them ours")
