#!/usr/bin/env python3
"""cancel_table.py - every wait of sync that can be cancelled has a row in cancel_table_test.cpp.

SPDX-License-Identifier: Apache-2.0
"""
import os
import pathlib
import re
import sys

ROOT = pathlib.Path(os.environ.get("SOURCE_DIR", pathlib.Path(__file__).parents[2]))
rows = re.findall(r'^\s*\{"(\w+\.hpp)"', (ROOT / "src/scope/cancel_table_test.cpp").read_text(),
                  re.MULTILINE)
missing = []
for header in sorted((ROOT / "include/weft/sync").glob("*.hpp")):
    text = re.sub(r"\s*\n\s*///", "", header.read_text())
    lines = len(re.findall(r"/// .*Suspends:.*Cancel: (?:throws|reported)", text))
    if rows.count(header.name) < lines:
        missing.append(f"{header.name}: {lines} waits, {rows.count(header.name)} rows")
print("\n".join(missing) or f"{len(rows)} rows")
sys.exit(1 if missing else 0)
