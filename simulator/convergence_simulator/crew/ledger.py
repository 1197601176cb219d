"""Rules for many threads that write to one real database, in any order of the server.

No client sees the commits of a server in their order. So the ledger checks rules that hold for the set of all commits,
and rules that hold in every consistent snapshot of the rows.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from convergence.concurrency import Lock
from convergence.core import effects
from convergence.core.claim import StepDecision
from convergence.core.effects import Decision
from convergence.core.model import UNDER_WAY, NodeStatus, Status, TraversalStatus
from convergence.core.rows import Node, Stack, Traversal
from convergence_simulator.cloud.trees import child_of
from convergence_simulator.memory.look import Tables
from convergence_simulator.scenarios.verification import Violation


class CommitLedger:
    """Collects the commits of all threads, and keeps the first violation, which `raise_any` raises.

    :ivar count: number of transactions that have written anything.
    """

    def __init__(self) -> None:
        self.count = 0
        self._lock = Lock()
        self._broken: Violation | None = None
        self._claims: set[tuple[str, int]] = set()
        self._finished: set[tuple[str, int]] = set()
        self._fences: dict[str, int] = {}

    def committed(self, decision: Decision[Any]) -> None:
        """Record the decision of a commit."""
        with self._lock:
            self.count += 1
            verdict = decision.verdict
            if isinstance(verdict, StepDecision) and verdict.claim is not None:
                claim = (verdict.claim.resource.id, verdict.claim.resource.fence)
                self._once(self._claims, claim, 'I1', f'resource {claim[0]} is claimed twice under fence {claim[1]}')
            for effect in decision.effects:
                if isinstance(effect, effects.FinishNode):
                    for number in (effect.number,) if effect.last is None else (effect.number, effect.last):
                        node = (effect.traversal_id, number)
                        self._once(self._finished, node, 'I4', f'node {number} of {node[0]} is finished twice')

    def _once(self, seen: set[tuple[str, int]], key: tuple[str, int], rule: str, text: str) -> None:
        if key in seen:
            self._note(rule, text)
        seen.add(key)

    def note(self, rule: str, text: str) -> None:
        """Record a violation; only the first one counts."""
        with self._lock:
            self._note(rule, text)

    def _note(self, rule: str, text: str) -> None:
        if self._broken is None:
            self._broken = Violation(rule, text)

    def look(self, tables: Tables) -> None:
        """Check one consistent snapshot of all rows."""
        with self._lock:
            for row in tables.resource.values():
                if row.fence < self._fences.get(row.id, 0):
                    self._note('I2', f'the fence of resource {row.id} has gone back to {row.fence}')
                self._fences[row.id] = max(row.fence, self._fences.get(row.id, 0))
            for rule, text in broken_rules(tables):
                self._note(rule, text)

    def rest(self, tables: Tables) -> None:
        """Check a snapshot of a moment in which no thread works and no message is in flight."""
        with self._lock:
            for text in forgotten(tables):
                self._note('wake-up', text)

    def raise_any(self) -> None:
        """Raise the first violation.

        :raises Violation: there is one.
        """
        with self._lock:
            if self._broken is not None:
                raise self._broken


def broken_rules(tables: Tables) -> Iterator[tuple[str, str]]:
    """Yield the violations in a consistent snapshot: rule and text."""
    for traversal in tables.traversal.values():
        stack = tables.stack.get(traversal.stack_id)
        is_current = stack is not None and stack.traversal_id == traversal.id
        if traversal.status in UNDER_WAY and not is_current:
            yield 'I5', f'{traversal.action} {traversal.id} runs, but is not current'
    for stack, traversal, nodes in _current(tables):
        missing = dict.fromkeys(nodes, 0)
        if traversal.in_service_number in nodes and nodes[traversal.in_service_number].status is not NodeStatus.DONE:
            late = [nodes[number] for number in traversal.late_numbers if number in nodes]
            missing.update((node.number, 1) for node in late if node.status is NodeStatus.WAITING)
        for node in nodes.values():
            for number in node.required_by if node.status is not NodeStatus.DONE else ():
                missing[number] = missing.get(number, 0) + 1
        for number, node in nodes.items():
            where = f'node {number} ({node.phase} {node.name or ""}) of {stack.name}'
            if node.waiting != missing[number]:
                yield 'I4', f'{where} waits for {node.waiting} nodes, but {missing[number]} are not done'
            if node.status is not NodeStatus.WAITING and missing[number]:
                yield 'I3', f'{where} is {node.status}, but {missing[number]} nodes before it are not done'
            if node.status is NodeStatus.WAITING and not missing[number]:
                yield 'I4', f'{where} waits, but all nodes before it are done'


def forgotten(tables: Tables) -> Iterator[str]:
    """Yield the work that no process will do, in a snapshot at rest."""
    for stack, traversal, nodes in _current(tables):
        if stack.status is not Status.IN_PROGRESS:
            continue
        busy = {row.id for row in tables.resources_of(stack.id) if row.status is Status.IN_PROGRESS}
        cancelling = traversal.status is TraversalStatus.CANCELLING and bool(busy)
        if traversal.status is not TraversalStatus.RUNNING and not cancelling:
            yield f'{traversal.action} {traversal.id} is {traversal.status}, and no process settles it'
            continue
        ready = [node for node in nodes.values() if node.status is NodeStatus.READY]
        ready = [node for node in ready if node.resource_id in busy] if cancelling else ready
        if not ready and not cancelling:
            yield f'{traversal.action} {traversal.id} is in progress, but none of its nodes is ready'
        for node in ready:
            row = tables.resource.get(node.resource_id or '')
            if (
                row is not None
                and row.handover is not None
                and any(
                    other.owner is not None for other in tables.resources_of(row.stack_id) if other.name == row.name
                )
            ):
                continue  # a worker on another row of the name notifies it when the name is free
            child = child_of(tables, row) if row is not None and row.progress is not None else None
            if child is not None and child.status is Status.IN_PROGRESS:
                continue  # its stack reports to it at rest
            if row is None or (row.owner is None and row.wake_at is None and not row.waits_at(traversal.id)):
                yield f'{node.phase} {node.name or ""} of {stack.name} is ready, and no worker was notified'


def _current(tables: Tables) -> Iterator[tuple[Stack, Traversal, dict[int, Node]]]:
    for stack in tables.stack.values():
        traversal = tables.traversal.get(stack.traversal_id or '')
        if traversal is not None and stack.deleted_at is None:
            yield stack, traversal, tables.node.get(traversal.id, {})
