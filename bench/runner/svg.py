"""svg.py - just enough of SVG to draw axes, lines, bars and words.

SPDX-License-Identifier: Apache-2.0
"""
import math
from xml.sax.saxutils import escape

INK = "#1f2933"
FAINT = "#d5dbe1"


class Picture:
    """Collects elements; text() gives the whole file."""

    def __init__(self, width, height, title):
        self.width = width
        self.height = height
        self.parts = [
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" '
            f'width="{width}" height="{height}" font-family="sans-serif" font-size="12" '
            f'role="img">',
            f"<title>{escape(title)}</title>",
            f'<rect width="{width}" height="{height}" fill="white"/>',
        ]

    def line(self, x1, y1, x2, y2, colour=FAINT, width=1.0):
        self.parts.append(f'<line x1="{x1:.1f}" y1="{y1:.1f}" x2="{x2:.1f}" y2="{y2:.1f}" '
                          f'stroke="{colour}" stroke-width="{width}"/>')

    def path(self, points, colour, dash=None):
        if len(points) < 2:
            return
        steps = " ".join(f"{x:.1f},{y:.1f}" for x, y in points)
        dashed = f' stroke-dasharray="{dash}"' if dash else ""
        self.parts.append(f'<polyline points="{steps}" fill="none" stroke="{colour}" '
                          f'stroke-width="1.8"{dashed}/>')

    def dot(self, x, y, colour, radius=3.0):
        self.parts.append(f'<circle cx="{x:.1f}" cy="{y:.1f}" r="{radius}" fill="{colour}"/>')

    def cross(self, x, y, colour):
        for slope in (-1, 1):
            self.line(x - 4, y - 4 * slope, x + 4, y + 4 * slope, colour, 1.6)

    def rectangle(self, x, y, width, height, colour):
        self.parts.append(f'<rect x="{x:.1f}" y="{y:.1f}" width="{max(width, 0.5):.1f}" '
                          f'height="{height:.1f}" fill="{colour}"/>')

    def words(self, x, y, text, anchor="start", size=12, colour=INK, bold=False, turned=False):
        weight = ' font-weight="bold"' if bold else ""
        turn = f' transform="rotate(-90 {x:.1f} {y:.1f})"' if turned else ""
        self.parts.append(f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}" '
                          f'font-size="{size}" fill="{colour}"{weight}{turn}>{escape(text)}</text>')

    def text(self):
        return "\n".join([*self.parts, "</svg>"]) + "\n"


FEW_DECADES = 4  # so many have steps of 1, 2, 5 on their axis


class LogScale:
    """Values to places, by their logarithms; both ends are 1, 2 or 5 times a power of ten unless
    told otherwise."""

    def __init__(self, low, high, at_low, at_high, whole=True):
        self.low = math.log10(low)
        self.high = math.log10(high)
        if whole:
            steps = self.steps(math.floor(self.low), math.ceil(self.high) + 1)
            self.low = max(s for s in steps if s <= self.low + 1e-9)
            self.high = min(s for s in steps if s >= self.high - 1e-9 and s > self.low)
        elif self.high == self.low:
            self.low, self.high = self.low - 0.5, self.high + 0.5
        self.at_low = at_low
        self.at_high = at_high

    def __call__(self, value):
        share = (math.log10(value) - self.low) / (self.high - self.low)
        return self.at_low + share * (self.at_high - self.at_low)

    @staticmethod
    def steps(first, last):
        """The logarithms of 1, 2 and 5 times ten to the first to ten to the last."""
        return [e + math.log10(m) for e in range(first, last + 1) for m in (1, 2, 5)]

    def ticks(self):
        """The values to be named: whole decades, or with few of them 1, 2, 5."""
        few = self.high - self.low <= FEW_DECADES
        inside = [s for s in self.steps(math.floor(self.low), math.ceil(self.high))
                  if self.low - 1e-9 <= s <= self.high + 1e-9]
        return [10.0 ** s for s in inside if few or abs(s - round(s)) < 1e-9]


class Scale:
    """Values to places, in proportion; from zero."""

    def __init__(self, high, at_low, at_high):
        self.high = high or 1.0
        self.at_low = at_low
        self.at_high = at_high

    def __call__(self, value):
        return self.at_low + value / self.high * (self.at_high - self.at_low)


def width_of(text, size=12):
    """About so many pixels; nobody knows the font."""
    return 0.58 * size * len(text)


def short(value):
    """1k, 20M, 0.5: for the ends of axes."""
    for size, letter in ((1e9, "G"), (1e6, "M"), (1e3, "k")):
        if abs(value) >= size:
            return f"{value / size:g}{letter}"
    return f"{value:g}"
