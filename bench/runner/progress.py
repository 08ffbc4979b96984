"""progress.py - how far a run has come, and how long it will still take.

On a terminal it is a bar that is drawn over and over; in a pipe or a file a line now and then.

SPDX-License-Identifier: Apache-2.0
"""
import shutil
import sys
import time

WIDTH = 24


def as_time(seconds):
    """7 s, 1:05, 2:03:04."""
    seconds = max(0, round(seconds))
    if seconds < 60:
        return f"{seconds} s"
    minutes, seconds = divmod(seconds, 60)
    if minutes < 60:
        return f"{minutes}:{seconds:02}"
    return f"{minutes // 60}:{minutes % 60:02}:{seconds:02}"


class Estimate:
    """How long things take: as long as they took before; what never ran, as long as the others."""

    def __init__(self, before=None):
        self.taken = {key: [seconds] for key, seconds in (before or {}).items()}

    def add(self, key, seconds):
        self.taken.setdefault(key, []).append(seconds)

    def of(self, key):
        if key in self.taken:
            last = self.taken[key][-5:]
            return sum(last) / len(last)
        known = [self.of(other) for other in self.taken]
        return sum(known) / len(known) if known else 5.0


def seconds_of(before, rounds, compilers, at_most=None):
    """How long the rounds of a case will take, by what its programs took before; None if they never
    ran."""
    known = [seconds for (_, compiler), seconds in before.items() if compiler in compilers]
    if not known:
        return at_most
    seconds = rounds * sum(known)
    return seconds if at_most is None else min(seconds, at_most)


def whole(cases):
    """How long {case: seconds or None} will take, in words."""
    known = [seconds for seconds in cases.values() if seconds is not None]
    unknown = [name for name, seconds in cases.items() if seconds is None]
    text = f"about {as_time(sum(known))} of measuring" if known else ""
    if unknown:
        text += (", and " if text else "") + f"{', '.join(unknown)}, which never ran here"
    return text


class Progress:
    """Shows what runs now, of all that is to run."""

    def __init__(self, title, steps, estimate, out=None, clock=time.monotonic, deadline=None):
        self.title = title
        self.steps = list(steps)  # a key for each thing that will be done, in their order
        self.done = 0
        self.estimate = estimate
        self.out = out or sys.stderr
        self.clock = clock
        self.deadline = deadline  # by the clock: what has not begun by then is left out
        self.bar = self.out.isatty()
        self.said = None
        self.started = None

    def left(self):
        """Seconds, of what is not done."""
        left = sum(self.estimate.of(key) for key in self.steps[self.done:])
        return left if self.deadline is None else min(left, self.deadline - self.clock())

    def begin(self, what):
        self.started = self.clock()
        if self.bar:
            self.draw(what)

    def end(self):
        self.estimate.add(self.steps[self.done], self.clock() - self.started)
        self.done += 1

    def draw(self, what):
        columns = shutil.get_terminal_size().columns
        width = max(4, min(WIDTH, columns - 50))  # so that the time has room on a narrow one
        full = width * self.done // max(1, len(self.steps))
        text = (f"{self.title} [{'#' * full}{'.' * (width - full)}] {self.done}/{len(self.steps)}"
                f"  {as_time(self.left())} left  {what}")
        self.out.write(f"\r\033[K{text[:min(columns - 1, 118)]}")  # what wraps stays
        self.out.flush()

    def line(self, text):
        """A line that stays, whatever is drawn."""
        if self.bar:
            self.out.write("\r\033[K")
        self.out.write(text + "\n")
        self.out.flush()

    def after_round(self, number, rounds):
        if not self.bar:
            left = f", about {as_time(self.left())} left" if self.done < len(self.steps) else ""
            self.line(f"{self.title}: round {number} of {rounds}{left}")

    def finish(self):
        if self.bar:
            self.out.write("\r\033[K")
            self.out.flush()
