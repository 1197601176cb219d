"""Draws the dependency graph of a stack, coloured by state, as Graphviz, Mermaid or SVG.

A graph has `nodes` (`name`, `type`, `status`) and `edges` (`from` needs `to`; `is_implied`: a resource type adds
the edge).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from html import escape
from typing import Any

GraphDocument = Mapping[str, Any]

GREEN, RED, BLUE, GREY, ORANGE = '#b7e1b0', '#f2a6a0', '#a8cdf0', '#e0e0e0', '#f4cf94'
WIDTH, HEIGHT, GAP_X, GAP_Y, MARGIN = 190, 46, 30, 60, 20
LONGEST = 26
"""Maximum number of characters of a name in its box."""


def colour(status: str | None) -> str:
    """Return the colour of a state such as ``CREATE_COMPLETE``; grey for nodes that have not started."""
    action, _, outcome = (status or 'INIT').partition('_')
    if outcome == 'FAILED':
        return RED
    if outcome == 'IN_PROGRESS':
        return BLUE
    return {'INIT': GREY, 'DELETE': ORANGE}.get(action, GREEN)


def dot(graph: GraphDocument) -> str:
    """Draw for Graphviz."""
    numbers = _numbers(graph)
    lines = ['digraph stack {', '  rankdir=BT;', '  node [shape=box, style="rounded,filled", fontname="sans-serif"];']
    for node in graph['nodes']:
        label = f'{_quoted(node["name"])}\\n{_quoted(node["type"])}\\n{_quoted(node["status"] or "")}'
        lines.append(f'  n{numbers[node["name"]]} [label="{label}", fillcolor="{colour(node["status"])}"];')
    lines += [
        f'  n{numbers[edge["from"]]} -> n{numbers[edge["to"]]}{" [style=dashed]" if edge.get("is_implied") else ""};'
        for edge in graph['edges']
    ]
    return '\n'.join([*lines, '}', ''])


def mermaid(graph: GraphDocument) -> str:
    """Draw for Mermaid, which many sites render."""
    numbers = _numbers(graph)
    lines = ['flowchart BT']
    for node in graph['nodes']:
        texts = (escape(str(node[key] or ''), quote=True) for key in ('name', 'type', 'status'))
        number = numbers[node['name']]
        lines.append(f'  n{number}["{"<br/>".join(texts)}"]')
        lines.append(f'  style n{number} fill:{colour(node["status"])},color:#000')
    lines += [
        f'  n{numbers[edge["from"]]} {"-.->" if edge.get("is_implied") else "-->"} n{numbers[edge["to"]]}'
        for edge in graph['edges']
    ]
    return '\n'.join([*lines, ''])


def svg(graph: GraphDocument) -> str:
    """Draw an SVG. Dependencies stand above the nodes that need them."""
    layers = _layers(graph)
    columns = max((len(layer) for layer in layers), default=1)
    width = 2 * MARGIN + columns * (WIDTH + GAP_X) - GAP_X
    height = 2 * MARGIN + max(len(layers), 1) * (HEIGHT + GAP_Y) - GAP_Y
    places = {
        name: (
            (width - len(layer) * (WIDTH + GAP_X) + GAP_X) // 2 + column * (WIDTH + GAP_X),
            MARGIN + row * (HEIGHT + GAP_Y),
        )
        for row, layer in enumerate(layers)
        for column, name in enumerate(layer)
    }
    lines = [
        (
            f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" viewBox="0 0 {width} {height}" '
            'font-family="sans-serif" font-size="11">'
        ),
        (
            '<defs><marker id="arrow" markerWidth="8" markerHeight="8" refX="7" refY="4" orient="auto">'
            '<path d="M0,0 L8,4 L0,8 z" fill="#666"/></marker></defs>'
        ),
    ]
    lines += [_line(places[edge['from']], places[edge['to']], edge.get('is_implied', False)) for edge in graph['edges']]
    lines += [_box(node, places[node['name']]) for node in graph['nodes']]
    return '\n'.join([*lines, '</svg>', ''])


FORMATS: Mapping[str, tuple[str, Callable[[GraphDocument], str]]] = {
    'dot': ('text/vnd.graphviz', dot),
    'mermaid': ('text/plain; charset=utf-8', mermaid),
    'svg': ('image/svg+xml', svg),
}
"""Content type and function by the name of the format."""


def _numbers(graph: GraphDocument) -> dict[str, int]:
    return {node['name']: number for number, node in enumerate(graph['nodes'])}


def _quoted(text: str) -> str:
    return text.replace('\\', '\\\\').replace('"', '\\"')


def _layers(graph: GraphDocument) -> list[list[str]]:
    """Return the names in rows, each below its dependencies. A cycle fills one row."""
    needs: dict[str, set[str]] = {node['name']: set() for node in graph['nodes']}
    for edge in graph['edges']:
        needs[edge['from']].add(edge['to'])
    rows: list[list[str]] = []
    placed: set[str] = set()
    while len(placed) < len(needs):
        free = [name for name in needs if name not in placed and needs[name] <= placed]
        row = free or [name for name in needs if name not in placed]
        rows.append(sorted(row))
        placed.update(row)
    return rows


def _line(below: Sequence[int], above: Sequence[int], is_implied: bool) -> str:
    dashed = 'stroke-dasharray="5 4" ' if is_implied else ''
    return (
        f'<line x1="{below[0] + WIDTH // 2}" y1="{below[1]}" x2="{above[0] + WIDTH // 2}" y2="{above[1] + HEIGHT}" '
        f'stroke="#666" {dashed}marker-end="url(#arrow)"/>'
    )


def _box(node: Mapping[str, Any], place: Sequence[int]) -> str:
    x, y = place
    middle = x + WIDTH // 2
    texts = [_short(str(node[key] or '')) for key in ('name', 'type', 'status')]
    spans = ''.join(
        f'<text x="{middle}" y="{y + 14 + 13 * row}" text-anchor="middle">{escape(text)}</text>'
        for row, text in enumerate(texts)
    )
    title = escape(f'{node["name"]}: {node["status"] or "not started"} {node.get("reason") or ""}'.strip())
    return (
        f'<g><title>{title}</title><rect x="{x}" y="{y}" width="{WIDTH}" height="{HEIGHT}" rx="6" '
        f'fill="{colour(node["status"])}" stroke="#444"/>{spans}</g>'
    )


def _short(text: str) -> str:
    return text if len(text) <= LONGEST else f'{text[: LONGEST - 1]}…'
