#!/usr/bin/env python3
"""site.py - docs/ builds as a site without a warning, and shows every page and every plot.

SPDX-License-Identifier: Apache-2.0
"""
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(os.environ.get("SOURCE_DIR", pathlib.Path(__file__).parents[2]))
wrong = []


def words(page):
    """Without its code."""
    return re.sub(r"^```.*?^```", "", page.read_text(), flags=re.MULTILINE | re.DOTALL)


def headings(page):
    """As links name them."""
    for heading in re.findall(r"^#+ (.*)$", words(page), flags=re.MULTILINE):
        text = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", heading).lower()
        yield re.sub(r"[^\w\- ]", "", text).replace(" ", "-")


# Links between documents, on the site or not, lead somewhere.
for page in [ROOT / "README.md", ROOT / "ARCHITECTURE.md", *ROOT.glob("docs/**/*.md"),
             *ROOT.glob("bench/cases/*/README.md")]:
    for link in re.findall(r"\]\(([^)\s]+)\)", words(page)):
        file, _, heading = link.partition("#")
        target = page.parent / file if file else page
        if re.match(r"[a-z]+:", link):
            continue
        if not target.exists():
            wrong.append(f"{page.relative_to(ROOT)}: {file} is not there")
        elif heading and heading not in headings(target):
            wrong.append(f"{page.relative_to(ROOT)}: {link} is no heading")

index = (ROOT / "docs/index.md").read_text()
for page in sorted(ROOT.glob("docs/*.md")):
    if page.name != "index.md" and page.name not in index:
        wrong.append(f"docs/index.md does not name {page.name}")

shown = "".join(page.read_text() for page in ROOT.glob("docs/*.md"))
for plot in sorted(ROOT.glob("docs/plots/*.svg")):
    if f"](plots/{plot.name})" not in shown:
        wrong.append(f"no page of docs/ shows plots/{plot.name}")

navigation = (ROOT / "mkdocs.yml").read_text()
for page in sorted(ROOT.glob("docs/**/*.md")):
    if str(page.relative_to(ROOT / "docs")) not in navigation:
        wrong.append(f"mkdocs.yml does not name {page.relative_to(ROOT)}")

if not wrong and shutil.which("mkdocs"):
    with tempfile.TemporaryDirectory() as folder:
        command = ["mkdocs", "build", "--strict", "--site-dir", folder]
        done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
        if done.returncode != 0:
            wrong.append(done.stderr)
        elif not (pathlib.Path(folder) / "hello/index.html").exists():
            wrong.append("mkdocs made no page for hello.md")
        else:
            page = (pathlib.Path(folder) / "benchmarks/index.html").read_text()
            if '<h2 id="yield">yield</h2>' not in page:
                wrong.append("benchmarks.md: a heading is not the name of its case")
            if "(<code>bench/cases/yield/README.md</code>)" not in page:
                wrong.append("benchmarks.md: a link to a file outside is not its name")

# Whoever reads in order finds the next page at the end of each, and the one before. (The site has
# that at its top.)
pages = re.findall(r"- (.*): (\w+\.md)$", navigation, flags=re.MULTILINE)[1:]
for number, (_, name) in enumerate(pages):
    around = [f"Before: [{title}]({file})." for title, file in pages[max(number - 1, 0):number]]
    around += [f"Next: [{title}]({file})." for title, file in pages[number + 1:number + 2]]
    line = " ".join([*around, "[All pages](index.md)."])
    if (ROOT / "docs" / name).read_text().splitlines()[-2:] != ["", line]:
        wrong.append(f"docs/{name} does not end with: {line}")

print("\n".join(wrong) or "every link leads somewhere")
sys.exit(1 if wrong else 77 if not shutil.which("mkdocs") else 0)
