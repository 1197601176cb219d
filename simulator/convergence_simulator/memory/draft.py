"""The writes of one transaction in memory, kept separately until all are committed at once."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypedDict, TypeVar, overload

from convergence.core.changes import NodeChange, ResourceChange, StackChange
from convergence.core.model import NodeStatus
from convergence.core.rows import Event, Node, ReceivedSignal, Resource, Stack
from convergence.db.transaction import Ready
from convergence.errors import Conflict
from convergence.values import copied
from convergence_simulator.memory.look import Tables

RowT = TypeVar('RowT')

GONE: Any = object()
"""Written in place of a row to remove."""


class Draft:
    """The writes of one transaction.

    :param tables: the rows that this transaction reads.
    :param committed: the committed rows.
    :ivar written_nodes: nodes that this transaction has written, by traversal and number.
    """

    def __init__(self, tables: Tables, committed: Tables, now: float) -> None:
        self.tables = tables
        self.committed = committed
        self.now = now
        self.ready: Ready = []
        self._rows: dict[tuple[str, Any], Any] = {}
        self.written_nodes: dict[tuple[str, int], Node] = {}
        self._cast: set[tuple[str, int]] = set()
        self.events: list[Event] = []
        self.signals: list[ReceivedSignal] = []
        self.forgotten: set[str] = set()
        self.given_policy: list[Stack] = []

    def get(self, table: str, key: Any) -> Any:
        """Return a row as this transaction sees it; None if it does not exist."""
        row = self._rows.get((table, key))
        if row is None:
            row = getattr(self.tables, table).get(key)
        return None if row is GONE else row

    def put(self, table: str, key: Any, row: Any) -> None:
        """Write a row, or `GONE` to remove it."""
        self._rows[table, key] = row

    def stacks(self) -> list[Stack]:
        """Return all committed stacks with their state after this transaction.

        This includes stacks that this transaction does not see because its server lags.
        """
        written = {key: row for (table, key), row in self._rows.items() if table == 'stack'}
        return [*{**self.committed.stack, **written}.values()]

    def node(self, traversal_id: str, number: int) -> Node | None:
        """Return a node as this transaction sees it; None if it does not exist."""
        return self.written_nodes.get((traversal_id, number)) or self.tables.node.get(traversal_id, {}).get(number)

    def nodes(self, traversal_id: str) -> list[Node]:
        """Return all nodes of a traversal as this transaction sees them, by number."""
        written = (number for of, number in self.written_nodes if of == traversal_id)
        numbers = {*self.tables.node.get(traversal_id, {}), *written}
        return [node for number in sorted(numbers) if (node := self.node(traversal_id, number)) is not None]

    def put_node(self, node: Node) -> None:
        """Write a node; record the time at which it becomes ready."""
        before = self.node(node.traversal_id, node.number)
        if node.status is NodeStatus.READY and (before is None or before.status is not NodeStatus.READY):
            self._cast.add((node.traversal_id, node.number))
        self.written_nodes[node.traversal_id, node.number] = node

    def tell(self, traversal_id: str, number: int) -> None:
        """Record that workers are notified of a ready node now."""
        self._cast.add((traversal_id, number))

    def hide(self, traversal_id: str, number: int) -> None:
        """Record that workers are not notified of a ready node yet."""
        self._cast.discard((traversal_id, number))

    def require_unwritten(self) -> None:
        """Require that no other transaction has written these rows since this transaction read them.

        :raises Conflict: another one has.
        """
        for table, key in self._rows:
            if getattr(self.tables, table).get(key) is not getattr(self.committed, table).get(key):
                raise Conflict(f'{table} {key} was written on another server')
        for traversal_id, number in self.written_nodes:
            seen, found = (tables.node.get(traversal_id, {}).get(number) for tables in (self.tables, self.committed))
            if seen is not found:
                raise Conflict(f'node {number} of {traversal_id} was written on another server')

    def become_true(self) -> None:
        """Make all writes visible."""
        committed = self.committed
        for (table, key), row in self._rows.items():
            rows = getattr(committed, table)
            if row is GONE:
                rows.pop(key, None)
            else:
                rows[key] = row
        for (traversal_id, number), node in self.written_nodes.items():
            committed.node.setdefault(traversal_id, {})[number] = node
        for key in self._cast:
            committed.notified_at[key] = self.now
        for event in self.events:
            committed.event.append(changed(event, {'sequence': len(committed.event) + 1}))
        for stack in self.given_policy:
            committed.untold.add(stack.id)
            committed.observations_scheduled.discard(stack.traversal_id or '')
        if self.forgotten:
            committed.signal[:] = [each for each in committed.signal if each.resource_id not in self.forgotten]
        for signal in self.signals:
            place = max((each.sequence or 0 for each in committed.signal), default=0) + 1
            committed.signal.append(changed(signal, {'sequence': place}))


class _Numbered(TypedDict):
    """Rows that get their number when they are stored."""

    sequence: int


@overload
def changed(row: Stack, changes: StackChange) -> Stack: ...
@overload
def changed(row: Resource, changes: ResourceChange) -> Resource: ...
@overload
def changed(row: Node, changes: NodeChange) -> Node: ...
@overload
def changed(row: Event, changes: _Numbered) -> Event: ...
@overload
def changed(row: ReceivedSignal, changes: _Numbered) -> ReceivedSignal: ...
def changed(row: RowT, changes: Mapping[str, object]) -> RowT:
    """Return a copy of a row with some columns changed.

    :raises AttributeError: a column does not exist.
    """
    return copied(row, changes)
