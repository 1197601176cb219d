"""Plots as SVG: lines over a logarithmic axis, without any tool."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from html import escape

WIDTH, HEIGHT = 720, 360
LEFT, RIGHT, TOP, BOTTOM = 70, 190, 40, 45
COLOURS = ('#2563a8', '#c2410c', '#15803d', '#7e22ce', '#a16207', '#0e7490', '#be123c', '#4d4d4d', '#65a30d', '#1e3a8a')
STEPS = 4
"""Lines across, above the axis."""


@dataclass(frozen=True, slots=True)
class Line:
    """One line of a plot.

    :param points: what is on the axis, above 0, and what was measured there.
    """

    name: str
    points: Sequence[tuple[float, float]]


def chart(title: str, below: str, lines: Sequence[Line]) -> str:
    """Draw lines; the axis is logarithmic, heights begin at 0.

    :param below: what is on the axis.
    """
    places = sorted({place for line in lines for place, _ in line.points})
    low, high = math.log10(places[0]), math.log10(places[-1])
    most = _round_up(max(value for line in lines for _, value in line.points))

    def x(place: float) -> float:
        return LEFT + (WIDTH - LEFT - RIGHT) * ((math.log10(place) - low) / ((high - low) or 1.0))

    def y(value: float) -> float:
        return HEIGHT - BOTTOM - (HEIGHT - TOP - BOTTOM) * value / most

    drawn = [
        (
            f'<svg xmlns="http://www.w3.org/2000/svg" width="{WIDTH}" height="{HEIGHT}" '
            f'viewBox="0 0 {WIDTH} {HEIGHT}" font-family="sans-serif" font-size="11">'
        ),
        '<rect width="100%" height="100%" fill="white"/>',
        f'<text x="{LEFT}" y="20" font-size="13">{escape(title)}</text>',
    ]
    for step in range(STEPS + 1):
        value = most * step / STEPS
        drawn.append(
            f'<line x1="{LEFT}" x2="{WIDTH - RIGHT}" y1="{y(value):.1f}" y2="{y(value):.1f}" stroke="#dddddd"/>'
            f'<text x="{LEFT - 6}" y="{y(value) + 4:.1f}" text-anchor="end">{value:,g}</text>'
        )
    drawn += [
        f'<text x="{x(place):.1f}" y="{HEIGHT - BOTTOM + 16}" text-anchor="middle">{place:,g}</text>'
        for place in places
    ]
    drawn.append(
        f'<text x="{(LEFT + WIDTH - RIGHT) / 2:.0f}" y="{HEIGHT - 8}" text-anchor="middle">{escape(below)}</text>'
    )
    for number, line in enumerate(lines):
        colour = COLOURS[number % len(COLOURS)]
        points = ' '.join(f'{x(place):.1f},{y(value):.1f}' for place, value in sorted(line.points))
        drawn.append(f'<polyline points="{points}" fill="none" stroke="{colour}" stroke-width="2"/>')
        drawn += [
            f'<circle cx="{x(place):.1f}" cy="{y(value):.1f}" r="3" fill="{colour}"/>' for place, value in line.points
        ]
        drawn.append(
            f'<text x="{WIDTH - RIGHT + 12}" y="{TOP + 16 * number + 8}" fill="{colour}">{escape(line.name)}</text>'
        )
    return '\n'.join([*drawn, '</svg>', ''])


def _round_up(value: float) -> float:
    """The next number of one digit."""
    power = 10.0 ** math.floor(math.log10(value)) if value > 0 else 1.0
    return math.ceil(value / power) * power
