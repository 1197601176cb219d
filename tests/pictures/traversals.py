"""Traversals as graphs of their nodes, as they are in the store of a simulated run."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from convergence_simulator.runs.batch import execute, load
from convergence_simulator.runs.plan import Mode, RunPlan
from convergence_simulator.world.choices import Choices
from convergence_simulator.world.world import World

from convergence.core.effects import Decision
from convergence.core.model import NodeStatus, Phase
from convergence.core.rows import Node
from tests.pictures.drawing import Drawing

KINDS = {NodeStatus.WAITING: 'still', NodeStatus.READY: 'busy', NodeStatus.DONE: 'good', NodeStatus.FAILED: 'bad'}
WIDTH, HEIGHT, ACROSS, DOWN = 126, 46, 168, 64

Nodes = Mapping[int, Node]


def played(path: Path) -> list[Nodes]:
    """The nodes of the newest traversal after each commit of a scenario that is played in order."""
    seen: list[Nodes] = []

    def committed(world: World, decision: Decision[Any]) -> None:
        traversals = world.store.tables.traversal.values()
        newest = max(traversals, key=lambda each: each.started_at, default=None)
        current = {stack.traversal_id for stack in world.store.tables.stack.values()}
        newest = next((each for each in traversals if each.id in current), newest)
        if newest is not None:
            seen.append(dict(world.store.tables.node[newest.id]))

    verdict, _ = execute(
        load(path), RunPlan(mode=Mode.ORDER), Choices(), prepare=lambda run: run.world.watch.commits.append(committed)
    )
    assert not verdict.error, verdict.error
    return seen


def diamond(seen: Sequence[Nodes]) -> str:
    """The graph of a creation after each node: two paths meet."""
    moments = {len(_done(nodes)): nodes for nodes in reversed(seen)}
    # Which of the two comes first is the run's choice.
    second, third = (min(_done(moments[count]) - _done(moments[count - 1])) for count in (2, 3))
    texts = [
        'planned: one commit stores all of it',
        'A is done: it has counted down B and C, which are ready now',
        f'{second} is done: D still waits for one',
        f'{third} is done: it has counted D down to zero, so it announces D',
    ]
    levels = _levels(seen[0])
    width = 40 + ACROSS * max(levels.values()) + WIDTH
    drawing = Drawing(width, 20 + 172 * len(texts), 'How a diamond converges: sync points count what they wait for')
    for number, text in enumerate(texts):
        top = 18 + 172 * number
        drawing.text(20, top + 12, f'{number + 1}. {text}', 'text title')
        _graph(drawing, moments[number], top + 26, counted=True)
        if number:
            drawing.line(16, top - 8, width - 16, top - 8)
    return drawing.svg()


def replacement(seen: Sequence[Nodes]) -> str:
    """The graph of an update that replaces something: forwards and backwards in one."""
    nodes = next(nodes for nodes in seen if any(node.phase is Phase.CLEANUP for node in nodes.values()))
    width = 40 + ACROSS * max(_levels(nodes).values()) + WIDTH
    drawing = Drawing(width, 182, 'The nodes of an update that replaces A, which B uses')
    _graph(drawing, nodes, 34, counted=False)
    drawing.text(20, 24, 'forwards: as the template wants it', 'faint small')
    drawing.text(20, 168, 'backwards: what was built on the old A is moved before the old A goes', 'faint small')
    return drawing.svg()


def _done(nodes: Nodes) -> set[str]:
    return {node.name for node in nodes.values() if node.status is NodeStatus.DONE and node.name is not None}


def _levels(nodes: Nodes) -> dict[int, int]:
    """Return the number of nodes before each one on the longest path."""
    levels = dict.fromkeys(nodes, 0)
    for _ in nodes:
        for number, node in nodes.items():
            for follower in node.required_by:
                levels[follower] = max(levels[follower], levels[number] + 1)
    return levels


def _directly_after(nodes: Nodes, number: int) -> list[int]:
    """The nodes that come after one and not after another one that does, too: other edges would hide behind these."""
    followers = nodes[number].required_by
    return [each for each in followers if not any(each in _all_after(nodes, other) for other in followers)]


def _all_after(nodes: Nodes, number: int) -> set[int]:
    followers = nodes[number].required_by
    return {*followers}.union(*(_all_after(nodes, follower) for follower in followers))


def _graph(drawing: Drawing, nodes: Nodes, top: float, *, counted: bool) -> None:
    places = _places(nodes, top)
    for number in sorted(nodes):
        for follower in _directly_after(nodes, number):
            (x, y), (other_x, other_y) = places[number], places[follower]
            drawing.curve(x + WIDTH, y + HEIGHT / 2, other_x, other_y + HEIGHT / 2)
    for number, node in sorted(nodes.items()):
        x, y = places[number]
        lines = [f'{node.phase} {node.name}' if node.name else str(node.phase)]
        if counted:
            waits = node.status is NodeStatus.WAITING
            lines.append(f'waits for {node.waiting}' if waits else str(node.status).lower())
        drawing.box(x, y, WIDTH, HEIGHT, lines, KINDS[node.status] if counted else 'plain')


def _places(nodes: Nodes, top: float) -> dict[int, tuple[float, float]]:
    """Columns by level; in a column the nodes of the way forwards are above those of the way back."""
    levels = _levels(nodes)
    backwards = any(node.phase is Phase.CLEANUP for node in nodes.values())
    places: dict[int, tuple[float, float]] = {}
    for level in sorted(set(levels.values())):
        column = sorted(
            (number for number in nodes if levels[number] == level), key=lambda each: nodes[each].name or ''
        )
        for row, number in enumerate(column):
            phase = nodes[number].phase
            place = float(row)
            if backwards:
                place = {Phase.CLEANUP: 1.0, Phase.COMPLETE: 0.5}.get(phase, 0.0)
            elif len(column) == 1:
                place = 0.5
            places[number] = (20 + ACROSS * level, top + DOWN * place)
    return places
