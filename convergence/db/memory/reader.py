"""Answers on the rows in memory what `convergence.db.queries.stacks.StackReader` answers on a database."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Any, TypeVar

from typing_extensions import override

from convergence.core.model import Action, NodeStatus, Phase, Status
from convergence.core.rows import Event, Node, ReceivedSignal, Resource, Stack, Template, Traversal
from convergence.db.memory.store import MemoryStore
from convergence.db.queries.inspection import EventPage, FrontierCounts, FrontierNode, State
from convergence.db.queries.roster import Roster, Service
from convergence.db.queries.stacks import StackFilter, StackReader

Row = TypeVar('Row')

_STACK_KEYS = {
    'stack_name': 'name',
    'stack_status': 'status',
    'creation_time': 'created_at',
    'updated_time': 'updated_at',
}
_EVENT_KEYS = {
    'resource_name': 'resource_name',
    'logical_resource_id': 'resource_name',
    'resource_type': 'resource_type',
    'resource_action': 'action',
    'resource_status': 'status',
}


class MemoryInspector(StackReader):
    """Answers questions about parts of a stack.

    :param roster: which processes there are; None: nobody knows where an owner runs, and whether it does.
    """

    def __init__(self, store: MemoryStore, roster: Roster | None = None) -> None:
        self._memory = store
        self._roster = roster

    @override
    def resources_named(self, stack_id: str, names: Sequence[str]) -> list[Resource]:
        """All rows of some resources of a stack: also replaced ones, and those that are being removed."""
        return [row for row in self._memory.seen().resources_of(stack_id) if row.name in names]

    @override
    def signals(self, resource_ids: Sequence[str]) -> list[tuple[str, ReceivedSignal]]:
        """The signals that some rows have received, oldest first, each with the name of the resource."""
        tables = self._memory.seen()
        return [
            (tables.resource[each.resource_id].name, each)
            for each in tables.signal
            if each.resource_id in resource_ids and each.resource_id in tables.resource
        ]

    @override
    def count_signals(self, resource_id: str) -> int:
        """How many signals a row has received."""
        return sum(each.resource_id == resource_id for each in self._memory.seen().signal)

    @override
    def resource(self, resource_id: str) -> Resource | None:
        """One row, by its id."""
        return self._memory.seen().resource.get(resource_id)

    @override
    def unfinished(self, stack_id: str, limit: int) -> list[Resource]:
        """Rows of a stack that failed, or were never begun, by name."""
        rows = self._memory.seen().resources_of(stack_id)
        left = [row for row in rows if row.status is Status.FAILED or row.action is Action.INIT]
        return sorted(left, key=lambda row: row.name)[:limit]

    @override
    def event(self, stack_id: str, event_id: str) -> Event | None:
        """One event of a stack."""
        return next((event for event in self.events(stack_id) if event.id == event_id), None)

    @override
    def event_page(self, page: EventPage) -> list[Event]:
        """A page of the events of a stack, oldest first unless it says otherwise."""
        keys = [_EVENT_KEYS[name] for name in page.sort_keys if name in _EVENT_KEYS]
        every = self.events(page.stack_id)
        every.sort(key=lambda each: tuple(_ordered(getattr(each, key)) for key in keys))
        if page.descending:
            every.reverse()
        if page.marker is not None:
            ids = [event.id for event in every]
            every = every[ids.index(page.marker) + 1 :] if page.marker in ids else []
        found = [
            event
            for event in every
            if all(getattr(event, name) in values for name, values in page.filters.items())
            and (page.states is None or _in_states((event.action, event.status), page.states))
        ]
        return found[: page.limit] if page.limit is not None else found

    @override
    def frontier(self, traversal_id: str, limit: int) -> list[FrontierNode]:
        """At most `limit` ready nodes of a traversal: those held by a worker first, then the longest ready."""
        known = {each.id: each for each in self._roster.services()} if self._roster is not None else {}
        ready = [(node, self._memory.seen().resource.get(node.resource_id or '')) for node in self._ready(traversal_id)]
        notified_at = self._memory.seen().notified_at

        def place(each: tuple[Node, Resource | None]) -> tuple[bool, float, int]:
            node, row = each
            return (row is None or row.owner is None, notified_at.get((traversal_id, node.number), 0.0), node.number)

        return [self._frontier_node(node, row, known) for node, row in sorted(ready, key=place)[:limit]]

    @override
    def frontier_counts(self, traversal_id: str) -> FrontierCounts:
        """Who attends to the ready nodes of a traversal."""
        rows = [self._memory.seen().resource.get(node.resource_id or '') for node in self._ready(traversal_id)]
        claimed = sum(row is not None and row.owner is not None for row in rows)
        waiting = sum(row is not None and (_is_parked(row) or bool(row.waits_at(traversal_id))) for row in rows)
        return FrontierCounts(claimed, waiting)

    @override
    def now(self) -> float:
        """The database's clock, in seconds since the epoch."""
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
    """Answers questions about stacks too."""

    @override
    def stack(self, stack_id: str) -> Stack | None:
        """A stack by its id, deleted or not."""
        self._memory.pause('read')
        return self._memory.seen().stack.get(stack_id)

    @override
    def stack_named(self, project_id: str, name: str) -> Stack | None:
        """A living stack by its name."""
        self._memory.pause('read')
        for stack in self._memory.seen().stack.values():
            if stack.deleted_at is None and (stack.project_id, stack.name) == (project_id, name):
                return stack
        return None

    @override
    def stack_requested(self, project_id: str, request_key: str) -> Stack | None:
        """The stack that was made for a request."""
        self._memory.pause('read')
        for stack in self._memory.seen().stack.values():
            if (stack.project_id, stack.request_key) == (project_id, request_key):
                return stack
        return None

    @override
    def stacks(self, query: StackFilter) -> list[Stack]:
        """The stacks that a query asks for, newest first unless it says otherwise."""
        keys = [_STACK_KEYS[key] for key in query.sort_keys] or ['created_at']
        found = [
            each
            for each in self._memory.seen().stack.values()
            if _matches(each, query) or (each.id == query.marker and each.project_id == query.project_id)
        ]
        found.sort(key=lambda each: (*(_ordered(getattr(each, key)) for key in keys), each.id))
        if query.descending:
            found.reverse()
        if query.marker is not None:
            ids = [stack.id for stack in found]
            found = found[ids.index(query.marker) + 1 :] if query.marker in ids else []
        return found[: query.limit] if query.limit is not None else found

    @override
    def count_stacks(self, query: StackFilter) -> int:
        """How many stacks a query asks for, whatever its page."""
        return sum(_matches(each, query) for each in self._memory.seen().stack.values())

    @override
    def template(self, template_id: str) -> Template | None:
        """A template."""
        self._memory.pause('read')
        return self._memory.seen().template.get(template_id)

    @override
    def resources(self, stack_id: str) -> list[Resource]:
        """All rows of a stack."""
        rows = self._memory.seen().resources_of(stack_id)
        return sorted(rows, key=lambda row: (row.name, row.created_at, row.id))

    @override
    def events(self, stack_id: str) -> list[Event]:
        """What happened to a stack and its resources, oldest first."""
        return [event for event in self._memory.seen().event if event.stack_id == stack_id]

    @override
    def traversal(self, traversal_id: str) -> Traversal | None:
        """One operation."""
        self._memory.pause('read')
        return self._memory.seen().traversal.get(traversal_id)

    @override
    def traversals(self, stack_id: str, *, newest: int | None = None) -> list[Traversal]:
        """The operations on a stack, oldest first."""
        found = [each for each in self._memory.seen().traversal.values() if each.stack_id == stack_id]
        return sorted(found, key=lambda each: (each.started_at, each.id))[-newest if newest else None :]

    @override
    def node_counts(self, traversal_id: str) -> dict[str, int]:
        """How many nodes of a traversal are in each status."""
        return dict(Counter(str(node.status) for node in self._memory.seen().nodes_of(traversal_id).values()))

    @override
    def nodes(self, traversal_id: str, *, limit: int | None = None) -> list[Node]:
        """The nodes of a traversal, in order."""
        return [node for _, node in sorted(self._memory.seen().nodes_of(traversal_id).items())][:limit]

    @override
    def chosen(self, traversal_id: str) -> dict[str, str]:
        """The row that is in service, or will be, for each name that a traversal visits."""
        nodes = self._memory.seen().nodes_of(traversal_id).values()
        return {node.name or '': node.resource_id or '' for node in nodes if node.phase is Phase.UPDATE}


def _is_parked(row: Resource) -> bool:
    return row.owner is None and (row.progress is not None or row.retry is not None)


def _ordered(value: Any) -> tuple[bool, Any]:
    """A value that can be missing, so that it can be compared; what is missing comes first."""
    return (value is not None, value if value is not None else 0)


def _in_states(state: tuple[Action, Status], wanted: Iterable[State]) -> bool:
    return any(
        any(each) and all(part is None or part == own for part, own in zip(each, state, strict=True)) for each in wanted
    )


def _matches(stack: Stack, query: StackFilter) -> bool:
    if stack.project_id != query.project_id or (stack.deleted_at is not None and not query.show_deleted):
        return False
    for name, wanted in query.filters.items():
        values = list(wanted) if isinstance(wanted, (list, tuple, set)) else [wanted]
        if name == 'state':
            if not _in_states((stack.action, stack.status), values):
                return False
        elif getattr(stack, name) not in values:
            return False
    return True
