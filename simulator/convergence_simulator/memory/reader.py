"""Queries about rows in memory, with the interface of `convergence.db.repositories.reads.stacks.StackReader`."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import TypeVar

from convergence.core.model import Json, NodeStatus, Status
from convergence.core.rows import Event, Node, ReceivedSignal, Resource, Stack, Template, Traversal
from convergence.db.records import FrontierNode, NestingRow, Service
from convergence_simulator.memory.queries import MemoryRoster
from convergence_simulator.memory.store import MemoryStore

RowT = TypeVar('RowT')


class MemoryInspector:
    """Queries about parts of a stack.

    :param roster: the registered processes; None: the host and the state of owners are unknown.
    """

    def __init__(self, store: MemoryStore, roster: MemoryRoster | None = None) -> None:
        self._memory = store
        self._roster = roster

    def resources_named(self, stack_id: str, names: Sequence[str]) -> list[Resource]:
        """Return all rows of some resources of a stack, including replaced rows and rows being removed."""
        return [row for row in self._memory.seen().resources_of(stack_id) if row.name in names]

    def signals(self, resource_ids: Sequence[str]) -> list[tuple[str, ReceivedSignal]]:
        """Return the signals that some rows have received, oldest first, each with the name of the resource."""
        tables = self._memory.seen()
        return [
            (tables.resource[each.resource_id].name, each)
            for each in tables.signal
            if each.resource_id in resource_ids and each.resource_id in tables.resource
        ]

    def has_signal(self, resource_id: str, signal_id: str) -> bool:
        """Return True if a row has received a signal."""
        return any((each.resource_id, each.id) == (resource_id, signal_id) for each in self._memory.seen().signal)

    def count_signals(self, resource_id: str) -> int:
        """Return the number of signals that a row has received."""
        return sum(each.resource_id == resource_id for each in self._memory.seen().signal)

    def resource(self, resource_id: str) -> Resource | None:
        """Return a row by its id."""
        return self._memory.seen().resource.get(resource_id)

    def frontier(self, traversal_id: str, limit: int) -> list[FrontierNode]:
        """Return at most `limit` ready nodes of a traversal: claimed ones first, then the longest ready."""
        known = {each.id: each for each in self._roster.services()} if self._roster is not None else {}
        ready = [(node, self._memory.seen().resource.get(node.resource_id or '')) for node in self._ready(traversal_id)]
        notified_at = self._memory.seen().notified_at

        def place(each: tuple[Node, Resource | None]) -> tuple[bool, float, int]:
            node, row = each
            return (row is None or row.owner is None, notified_at.get((traversal_id, node.number), 0.0), node.number)

        return [self._frontier_node(node, row, known) for node, row in sorted(ready, key=place)[:limit]]

    def now(self) -> float:
        """Return the time of the database, in seconds since the epoch."""
        return self._memory.clock()

    def _ready(self, traversal_id: str) -> list[Node]:
        return [node for node in self._memory.seen().nodes_of(traversal_id).values() if node.status is NodeStatus.READY]

    def _frontier_node(self, node: Node, row: Resource | None, known: dict[str, Service]) -> FrontierNode:
        now = self._memory.clock()
        notified_at = self._memory.seen().notified_at.get((node.traversal_id, node.number))
        age_s = None if notified_at is None else now - notified_at
        if row is None:
            return FrontierNode(
                node.number,
                node.phase,
                node.name,
                node.resource_id,
                None,
                None,
                None,
                None,
                None,
                None,
                False,
                False,
                None,
                age_s,
            )
        owner = known.get(row.owner or '')
        began = row.began_at if row.status is Status.IN_PROGRESS else None
        return FrontierNode(
            node.number,
            node.phase,
            node.name,
            row.id,
            row.type,
            row.action,
            row.status,
            row.status_reason,
            row.owner,
            owner.host if owner is not None else None,
            owner is not None and owner.is_up,
            _is_parked(row),
            None if row.wake_at is None else row.wake_at - now,
            age_s,
            None if began is None else now - began,
            None if row.deadline is None else row.deadline - now,
            row.crash_count,
            row.retry,
            row.waits_at(node.traversal_id),
            row.token if row.is_lost else None,
            row.search_until if row.is_lost and (row.search_until or 0.0) > now else None,
        )


class MemoryReader(MemoryInspector):
    """Queries about stacks."""

    def stack(self, stack_id: str) -> Stack | None:
        """Return a stack by its id, deleted or not."""
        self._memory.pause('read')
        return self._memory.seen().stack.get(stack_id)

    def stack_named(self, project_id: str, name: str) -> Stack | None:
        """Return a stack that is not deleted, by its name."""
        self._memory.pause('read')
        for stack in self._memory.seen().stack.values():
            if stack.deleted_at is None and (stack.project_id, stack.name) == (project_id, name):
                return stack
        return None

    def stack_requested(self, project_id: str, request_key: str) -> Stack | None:
        """Return the stack that was created for a request."""
        self._memory.pause('read')
        for stack in self._memory.seen().stack.values():
            if (stack.project_id, stack.request_key) == (project_id, request_key):
                return stack
        return None

    def template(self, template_id: str) -> Template | None:
        """Return a template."""
        self._memory.pause('read')
        return self._memory.seen().template.get(template_id)

    def summary(self, template_id: str) -> Mapping[str, Json] | None:
        """Return the summary of a template, which lists of stacks show."""
        found = self.template(template_id)
        return found.summary if found is not None else None

    def nesting(self, resource_ids: Sequence[str]) -> list[NestingRow]:
        """Return rows that were claimed, each with its stack and its nested stack."""
        self._memory.pause('read')
        seen = self._memory.seen()
        found = []
        for row in filter(None, map(seen.resource.get, resource_ids)):
            stack, traversal = seen.stack.get(row.stack_id), seen.traversal.get(row.traversal_id or '')
            if stack is not None and traversal is not None:
                has_snapshots = any(each.stack_id == row.token for each in seen.snapshot.values())
                found.append(NestingRow(row, stack, traversal, seen.stack.get(row.token or ''), has_snapshots))
        return found

    def resources(self, stack_id: str) -> list[Resource]:
        """Return all rows of a stack."""
        rows = self._memory.seen().resources_of(stack_id)
        return sorted(rows, key=lambda row: (row.name, row.created_at, row.id))

    def events(self, stack_id: str) -> list[Event]:
        """Return the events of a stack and its resources, oldest first."""
        return [event for event in self._memory.seen().event if event.stack_id == stack_id]

    def busy(self, stack_id: str, limit: int) -> list[Resource]:
        """Return rows of a stack with an action in progress, by name."""
        return [row for row in self.resources(stack_id) if row.status is Status.IN_PROGRESS][:limit]

    def nested_at_work(self, stack_id: str) -> list[Stack]:
        """Return the nested stacks on the next level that have an operation in progress."""
        return [
            stack
            for stack in self._memory.seen().stack.values()
            if stack.parent_id == stack_id and stack.deleted_at is None and stack.status is Status.IN_PROGRESS
        ]

    def traversal(self, traversal_id: str) -> Traversal | None:
        """Return a traversal."""
        self._memory.pause('read')
        return self._memory.seen().traversal.get(traversal_id)

    def traversals(self, stack_id: str, *, newest: int | None = None) -> list[Traversal]:
        """Return the traversals of a stack, oldest first."""
        found = [each for each in self._memory.seen().traversal.values() if each.stack_id == stack_id]
        return sorted(found, key=lambda each: (each.started_at, each.id))[-newest if newest else None :]

    def node_counts(self, traversal_id: str) -> dict[str, int]:
        """Return the numbers of nodes of a traversal by status."""
        return dict(Counter(str(node.status) for node in self._memory.seen().nodes_of(traversal_id).values()))

    def nodes(self, traversal_id: str, *, limit: int | None = None) -> list[Node]:
        """Return the nodes of a traversal, in order."""
        return [node for _, node in sorted(self._memory.seen().nodes_of(traversal_id).items())][:limit]


def _is_parked(row: Resource) -> bool:
    return row.owner is None and (row.progress is not None or row.retry is not None)
