"""Boxes, arrows and texts, as SVG that follows the reader's choice of light or dark."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from xml.sax.saxutils import escape

# Each kind of box: fill and border by day, fill and border by night.
KINDS = {
    'plain': ('#f8fafc', '#64748b', '#1e293b', '#94a3b8'),
    'good': ('#dcfce7', '#16a34a', '#14352a', '#4ade80'),
    'busy': ('#dbeafe', '#2563eb', '#172b4d', '#60a5fa'),
    'bad': ('#fee2e2', '#dc2626', '#401a1e', '#f87171'),
    'back': ('#fef3c7', '#d97706', '#3b2a10', '#fbbf24'),
    'still': ('#f1f5f9', '#94a3b8', '#20293a', '#64748b'),
}
TEXT_WIDTH = 6.3
"""Width of a character of 12 pixels, on average."""

_BY_DAY = """\
.panel { fill: #ffffff; stroke: #d0d7de }
.text { fill: #1f2937 } .faint { fill: #57606a }
.line { stroke: #57606a; fill: none } .tip { fill: #57606a }
.halo { stroke: #ffffff }
"""
_BY_NIGHT = """\
.panel { fill: #0d1117; stroke: #30363d }
.text { fill: #e6edf3 } .faint { fill: #9aa4b2 }
.line { stroke: #9aa4b2 } .tip { fill: #9aa4b2 }
.halo { stroke: #0d1117 }
"""


def _style() -> str:
    day = _BY_DAY + ''.join(f'.{name} {{ fill: {c[0]}; stroke: {c[1]} }}\n' for name, c in KINDS.items())
    night = _BY_NIGHT + ''.join(f'.{name} {{ fill: {c[2]}; stroke: {c[3]} }}\n' for name, c in KINDS.items())
    return (
        'text { font: 12px system-ui, "Segoe UI", "DejaVu Sans", sans-serif }\n'
        '.title { font-weight: 600 } .small { font-size: 11px }\n'
        '.halo { stroke-width: 4; paint-order: stroke; stroke-linejoin: round }\n'
        f'{day}@media (prefers-color-scheme: dark) {{\n{night}}}'
    )


@dataclass
class Drawing:
    """A picture while it is being made. Coordinates are pixels from the upper left corner.

    :param title: what the picture shows, for those who cannot see it.
    """

    width: int
    height: int
    title: str
    parts: list[str] = field(default_factory=list)

    def box(self, x: float, y: float, width: float, height: float, lines: Sequence[str], kind: str = 'plain') -> None:
        """A box with centred lines of text; the first one is its title."""
        self.parts.append(
            f'<rect class="{kind}" x="{x:g}" y="{y:g}" width="{width:g}" height="{height:g}" rx="7" stroke-width="1.4"/>'
        )
        top = y + height / 2 - 8 * (len(lines) - 1) + 4
        for number, line in enumerate(lines):
            self.text(x + width / 2, top + 16 * number, line, 'text title' if number == 0 else 'faint small', 'middle')

    def text(self, x: float, y: float, text: str, style: str = 'text', anchor: str = 'start') -> None:
        """A line of text."""
        self.parts.append(f'<text class="{style}" x="{x:g}" y="{y:g}" text-anchor="{anchor}">{escape(text)}</text>')

    def arrow(self, *points: tuple[float, float], dashed: bool = False, both: bool = False, label: str = '') -> None:
        """A line through points, with a tip at its end, and perhaps at its beginning; its label is above the middle."""
        way = 'M' + ' L'.join(f'{x:g},{y:g}' for x, y in points)
        more = ' stroke-dasharray="5 4"' if dashed else ''
        more += ' marker-start="url(#tip)"' if both else ''
        self.parts.append(f'<path class="line" d="{way}" stroke-width="1.4" marker-end="url(#tip)"{more}/>')
        if label:
            (x1, y1), (x2, y2) = points[0], points[-1]
            self.text((x1 + x2) / 2, (y1 + y2) / 2 - 6, label, 'faint small halo', 'middle')

    def curve(self, x1: float, y1: float, x2: float, y2: float) -> None:
        """An arrow that leaves and arrives level."""
        bend = max(20.0, (x2 - x1) / 2)
        self.parts.append(
            f'<path class="line" d="M{x1:g},{y1:g} C{x1 + bend:g},{y1:g} {x2 - bend:g},{y2:g} {x2:g},{y2:g}" '
            'stroke-width="1.4" marker-end="url(#tip)"/>'
        )

    def line(self, x1: float, y1: float, x2: float, y2: float) -> None:
        """A thin line without a tip."""
        self.parts.append(f'<path class="line" d="M{x1:g},{y1:g} L{x2:g},{y2:g}" stroke-width="0.8" opacity="0.6"/>')

    def svg(self) -> str:
        """The picture. It has a ground of its own, so that it can be read on any page."""
        body = '\n'.join(self.parts)
        return (
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {self.width} {self.height}" '
            f'width="{self.width}" height="{self.height}" role="img">\n'
            f'<title>{escape(self.title)}</title>\n<style>\n{_style()}</style>\n'
            '<defs><marker id="tip" viewBox="0 0 8 8" refX="7.5" refY="4" markerWidth="8" markerHeight="8" '
            'orient="auto-start-reverse" markerUnits="userSpaceOnUse"><path class="tip" d="M0,0.8 L8,4 L0,7.2 z"/>'
            '</marker></defs>\n'
            f'<rect class="panel" x="0.5" y="0.5" width="{self.width - 1}" height="{self.height - 1}" rx="9"/>\n'
            f'{body}\n</svg>\n'
        )


def width_of(text: str) -> float:
    """About how wide a line of text is."""
    return len(text) * TEXT_WIDTH
