"""Draws a graph of resources as text."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from typing import Any

from convergence.cli.output import printable

NOT_STARTED = 'not started'


def graph_lines(drawn: Mapping[str, Any]) -> list[str]:
    """Return the graph as lines. Each resource stands below the first resource that needs it.

    :param drawn: `nodes` with `name`, `type`, `status` (null: not started; empty: not shown) and `changed_outside`;
        `edges` with `from`, `to` (`from` needs `to`) and `is_implied` (a resource type adds the edge).
    """
    needs: dict[str, list[str]] = {}
    needed = set()
    implied = {(edge['from'], edge['to']) for edge in drawn['edges'] if edge.get('is_implied')}
    for edge in drawn['edges']:
        needs.setdefault(edge['from'], []).append(edge['to'])
        needed.add(edge['to'])
    nodes = {node['name']: node for node in drawn['nodes']}
    seen: set[str] = set()
    lines: list[str] = []

    def walk(name: str, lead: str, guide: str, note: str = '') -> None:
        node = nodes[name]
        state = NOT_STARTED if node['status'] is None else node['status']
        again = '  (see above)' if name in seen and needs.get(name) else ''
        line = f'{lead}{guide}{printable(name)}  {printable(node["type"])}  {state}'
        outside = '  (changed outside)' if node.get('changed_outside') else ''
        lines.append(line.rstrip() + outside + note + again)
        if name in seen:
            return
        seen.add(name)
        below = [each for each in needs.get(name, ()) if each in nodes]
        deeper = lead + {'': '', '├─ ': '│  ', '└─ ': '   '}[guide]
        for number, each in enumerate(below, 1):
            note = '  (implied)' if (name, each) in implied else ''
            walk(each, deeper, '└─ ' if number == len(below) else '├─ ', note)

    sys.setrecursionlimit(max(sys.getrecursionlimit(), 4 * len(nodes) + 1000))
    for name in nodes:
        if name not in needed:
            walk(name, '', '')
    return lines
