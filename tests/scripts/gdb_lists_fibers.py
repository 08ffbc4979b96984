"""gdb_lists_fibers.py - tools/weft-gdb.py lists fibers and their stacks, live and from a core.

SPDX-License-Identifier: Apache-2.0
"""
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

SOURCE = pathlib.Path(os.environ["SOURCE_DIR"])
PROGRAM = pathlib.Path(os.environ["PROGRAM_DIR"]) / "gdb_fibers"
SCRIPT = SOURCE / "tools" / "weft-gdb.py"


def skip(why):
    print(why)
    sys.exit(77)


def gdb(*arguments):
    command = ["gdb", "-nx", "-batch", "-iex", "set debuginfod enabled off", *arguments]
    done = subprocess.run(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, text=True, errors="replace", timeout=200)
    return done.stdout


def check(output, line_of_go, backtraces):
    """What is wrong with what gdb said; nothing if all is right."""
    wrong = []

    def expect(pattern):
        if not re.search(pattern, output, re.MULTILINE | re.DOTALL):
            wrong.append("not found: " + pattern)

    file = r"[^\n]*gdb_fibers\.cpp:"
    expect(r"^fiber parked, own, at 0x[0-9a-f]+: is parked, started at ")
    expect(r"^fiber shared, swapped, [^\n]*: is parked, started at ")
    expect(r"^fiber alone, thread, [^\n]*: is parked, started at ")
    expect(rf"^fiber sleeper, own, [^\n]*: sleeps, started at {file}{line_of_go['sleeper']}$")
    expect(rf"^fiber joiner, own, [^\n]*: joins a fiber, started at {file}{line_of_go['joiner']}$")
    expect(rf"^fiber looker, own, [^\n]*: running, started at {file}{line_of_go['looker']}$")
    expect(rf"^fiber ready, own, [^\n]*: ready, started at {file}{line_of_go['ready']}$")
    expect(rf"^fiber young, own, [^\n]*: has not started, started at {file}{line_of_go['young']}$")
    expect(r"^10 fibers$")
    for complaint in ("Python Exception", "Traceback", "corrupt stack", "Backtrace stopped"):
        if complaint in output:
            wrong.append("said: " + complaint)
    if not backtraces:
        return wrong
    # Each stack has its fiber's functions, and none of the thread's.
    stacks = dict(re.findall(r"^fiber ([^,]*),[^\n]*\n((?:    [^\n]*\n)*)", output, re.MULTILINE))
    for name, function, times in (("parked", "weft_test_parks", 4),
                                  ("sleeper", "weft_test_sleeps", 1),
                                  ("in generator", "weft_test_parks", 1),
                                  ("portable", "weft_test_parks", 2)):
        stack = stacks.get(name, "")
        if len(re.findall(rf"\b{function} \(", stack)) != times:
            wrong.append(f"{name}: {function} is not {times} times in its backtrace")
        if not re.match(r"    #0 ", stack):
            wrong.append(f"{name}: its backtrace does not begin with #0")
        if "weft_test_look_here" in stack or " main (" in stack:
            wrong.append(f"{name}: its backtrace has frames of the thread")
    return wrong


def main():
    if os.environ.get("EMULATOR") or os.environ.get("SANITIZE"):
        skip("gdb does not look into emulated programs, and not well into sanitized ones")
    if shutil.which("gdb") is None:
        skip("gdb is not installed")
    if "yes" not in gdb("-ex", "python print('yes')"):
        skip("this gdb has no Python")
    lines = (SOURCE / "tests" / "programs" / "gdb_fibers.cpp").read_text().splitlines()
    line_of_go = {match[1]: number for number, line in enumerate(lines, 1)
                  if (match := re.search(r'go\(s, \{\.name = "(\w+)"', line))}

    with tempfile.TemporaryDirectory() as scratch:
        core = pathlib.Path(scratch) / "core"
        live = gdb("-ex", f"source {SCRIPT}", "-ex", "break weft_test_look_here", "-ex", "run",
                   "-ex", "weft fibers", "-ex", "echo ---\\n", "-ex", "weft fibers --backtrace",
                   "-ex", "echo ---\\n", "-ex", "backtrace", "-ex", f"weft core {core}",
                   "-ex", "delete", "-ex", "continue", str(PROGRAM))
        if "ptrace: Operation not permitted" in live:
            skip("gdb may not trace here")
        if not core.exists():
            print(live)
            print("no core file was written")
            return 1
        dead = gdb("-ex", f"source {SCRIPT}", "-ex", "weft fibers --backtrace",
                   str(PROGRAM), str(core))

    wrong = []
    parts = live.split("---\n")
    if len(parts) != 3:
        wrong.append("live: gdb did not come to its end")
    else:
        wrong += ["live: " + text for text in check(parts[0], line_of_go, False)]
        wrong += ["live: " + text for text in check(parts[1], line_of_go, True)]
        if "weft_test_look_here" not in parts[2] or "right\n" not in parts[2]:
            wrong.append("live: the program, or gdb's own backtrace, was disturbed")
    wrong += ["core: " + text for text in check(dead, line_of_go, True)]
    if wrong:
        print(live, dead, *wrong, sep="\n")
        return 1
    print("listed, live and from a core")
    return 0


if __name__ == "__main__":
    sys.exit(main())
