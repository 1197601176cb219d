"""Process rows, and queries of the sweeper, in memory; with the interface of `Roster` and `Sweeps` of a database."""

from __future__ import annotations

from collections.abc import Mapping

from convergence.core.model import DISPATCH_WINDOW, UNDER_WAY, Action, Json, NodeStatus, Phase, Status, TraversalStatus
from convergence.core.rows import Node, Resource, Stack
from convergence.db.records import (
    NO_LOAD,
    EndedTraversal,
    HeldRow,
    ReadyNode,
    Service,
    TraversalProgress,
    UnneededNested,
)
from convergence.db.transaction import LAST
from convergence.values import replace
from convergence_simulator.memory.look import Tables
from convergence_simulator.memory.store import MemoryStore


class MemoryRoster:
    """Registers processes and knows which of them are alive."""

    def __init__(self, store: MemoryStore) -> None:
        self._memory = store
        self._services: dict[str, Service] = {}

    def register(
        self, service_id: str, kind: str, host: str, version: str, lease_s: float, load: Mapping[str, Json] = NO_LOAD
    ) -> None:
        """Register a process."""
        now = self._memory.clock()
        self._services[service_id] = Service(service_id, kind, host, version, now, now, lease_s, False, load, 0.0)

    def beat(self, service_id: str, load: Mapping[str, Json] = NO_LOAD) -> bool:
        """Record a heartbeat of a process; return False if the process is not registered."""
        if service_id not in self._services:
            return False
        self._services[service_id] = replace(self._services[service_id], beat_at=self._memory.clock(), load=load)
        return True

    def leave(self, service_id: str) -> None:
        """Remove a process that ends normally."""
        self._services.pop(service_id, None)

    def services(self) -> list[Service]:
        """Return all registered processes."""
        now = self._memory.clock()
        return [replace(service, age_s=now - service.beat_at) for service in self._services.values()]

    def remove_dead(self) -> int:
        """Remove the processes whose lease has expired and that have no claims; return their number."""
        holders = {row.owner for row in self._memory.seen().resource.values()}
        dead = [each.id for each in self.services() if not each.is_up and each.id not in holders]
        for service_id in dead:
            del self._services[service_id]
        return len(dead)

    def held_by(self, service_id: str) -> list[Resource]:
        """Return the resource rows that a worker has claimed."""
        return [row for row in self._memory.seen().resource.values() if row.owner == service_id]

    def alive(self) -> set[str]:
        """Return the ids of the processes whose lease has not expired."""
        return {service.id for service in self.services() if service.is_up}


def _held(row: Resource) -> HeldRow:
    return HeldRow(row.id, row.name, row.stack_id, row.traversal_id, row.owner, row.fence)


def _longest_ready(found: tuple[float, ReadyNode]) -> tuple[float, int]:
    return found[0], found[1].number


def _is_free(tables: Tables, node: Node, now: float) -> bool:
    if node.phase not in (Phase.UPDATE, Phase.CLEANUP):
        return True
    row = tables.resource.get(node.resource_id or '')
    if row is None:
        return True
    if row.waits_at(node.traversal_id):
        return False
    awake = row.wake_at is None or row.wake_at <= now or row.event_count != row.polled_event_count
    return row.owner is None and (awake or row.traversal_id != node.traversal_id)


def _has_begun(tables: Tables, node: Node) -> bool:
    row = tables.resource.get(node.resource_id or '')
    return row is not None and row.status is Status.IN_PROGRESS


def _left(tables: Tables) -> list[Resource]:
    return [
        row
        for row in tables.resource.values()
        if row.status is Status.IN_PROGRESS
        and row.owner is None
        and tables.stack[row.stack_id].status is not Status.IN_PROGRESS
    ]


class MemorySweeps:
    """Finds the rows that the sweeper has to handle."""

    def __init__(self, store: MemoryStore, roster: MemoryRoster) -> None:
        self._memory = store
        self._roster = roster
        self._duties: dict[str, tuple[str, float]] = {}

    def take_duty(self, name: str, holder: str, for_s: float) -> bool:
        """Take or renew a duty; return True if this process has it now."""
        now = self._memory.clock()
        present, until = self._duties.get(name, (holder, 0.0))
        if present != holder and until >= now:
            return False
        self._duties[name] = (holder, now + for_s)
        return True

    def duty_held_s(self, name: str, holder: str) -> float:
        """Return the seconds for which another process still has a duty."""
        present, until = self._duties.get(name, (holder, 0.0))
        return 0.0 if present == holder else until - self._memory.clock()

    def undispatched(
        self, older_than_s: float, limit: int, window: int = DISPATCH_WINDOW, patience_s: float | None = None
    ) -> list[ReadyNode]:
        """Return ready nodes of running traversals whose row is free and not waiting."""
        patience = older_than_s if patience_s is None else patience_s
        tables, now = self._memory.seen(), self._memory.clock()
        found: list[tuple[float, ReadyNode]] = []
        for traversal in tables.traversal.values():
            if traversal.status not in UNDER_WAY:
                continue
            of_traversal: list[tuple[float, ReadyNode]] = []
            for node in tables.nodes_of(traversal.id).values():
                since = tables.notified_at.get((traversal.id, node.number), now)
                if traversal.status is TraversalStatus.CANCELLING and not _has_begun(tables, node):
                    continue
                is_old = since < now - (older_than_s if node.phase in LAST else max(older_than_s, patience))
                if node.status is NodeStatus.READY and is_old and _is_free(tables, node, now):
                    ready = ReadyNode(traversal.stack_id, traversal.id, node.number, node.phase)
                    of_traversal.append((since, ready))
            found += sorted(of_traversal, key=_longest_ready)[:window]
        oldest = [node for _, node in sorted(found, key=_longest_ready)[:limit]]
        for node_found in oldest:
            tables.notified_at[node_found.traversal_id, node_found.number] = now
        return oldest

    def expired_claims(self, limit: int) -> list[HeldRow]:
        """Return rows whose owner's lease has expired."""
        alive = self._roster.alive()
        silent = {service.id: service.age_s - service.lease_s / 2 for service in self._roster.services()}
        held = [row for row in self._memory.seen().resource.values() if row.owner and row.owner not in alive]
        return [replace(_held(row), silent_s=silent.get(row.owner or '', 0.0)) for row in held[:limit]]

    def overdue_actions(self, limit: int, slack_s: float) -> list[HeldRow]:
        """Return claimed rows whose action has exceeded its time by some seconds."""
        latest = self._memory.clock() - slack_s
        return [
            _held(row)
            for row in self._memory.seen().resource.values()
            if row.status is Status.IN_PROGRESS and row.owner and row.deadline is not None and row.deadline < latest
        ][:limit]

    def parked_at_rest(self, limit: int) -> list[HeldRow]:
        """Return free rows with a parked action, in stacks without an operation in progress."""
        return [_held(row) for row in _left(self._memory.seen()) if row.progress is not None][:limit]

    def interrupted(self, limit: int, older_than_s: float = 0.0) -> list[HeldRow]:
        """Return free rows with an interrupted action, in stacks without an operation in progress."""
        tables, latest = self._memory.seen(), self._memory.clock() - older_than_s

        def is_due(row: Resource) -> bool:
            stack = tables.stack[row.stack_id]
            rests_since = stack.created_at if stack.updated_at is None else stack.updated_at
            return row.progress is None or rests_since <= latest

        return [_held(row) for row in _left(tables) if is_due(row)][:limit]

    def unsettled(self, limit: int) -> list[EndedTraversal]:
        """Return failed traversals whose stack is not settled yet, and cancelled ones that can end."""
        return [
            EndedTraversal(stack.id, traversal.id)
            for stack in self._memory.seen().stack.values()
            if (traversal := self._memory.seen().traversal.get(stack.traversal_id or '')) is not None
            and stack.status is Status.IN_PROGRESS
            and (
                traversal.status is TraversalStatus.FAILED
                or (traversal.status is TraversalStatus.CANCELLING and not self._runs(stack.id))
            )
        ][:limit]

    def _runs(self, stack_id: str) -> bool:
        return any(row.status is Status.IN_PROGRESS for row in self._memory.seen().resources_of(stack_id))

    def overdue(self, limit: int) -> list[EndedTraversal]:
        """Return live traversals that are past their deadline."""
        now = self._memory.clock()
        return [
            EndedTraversal(each.stack_id, each.id)
            for each in self._memory.seen().traversal.values()
            if each.status in UNDER_WAY and each.deadline < now
        ][:limit]

    def left_behind(self, limit: int, again_s: float) -> list[EndedTraversal]:
        """Return deleted stacks with rows that name an object or may belong to one."""
        tables, latest = self._memory.seen(), self._memory.clock() - again_s

        def is_due(stack: Stack) -> bool:
            failed_then = stack.status is Status.FAILED and (stack.updated_at or 0.0) < latest
            return stack.deleted_at is not None and (stack.status is Status.COMPLETE or failed_then)

        named = {
            row.stack_id for row in tables.resource.values() if row.physical_id is not None or row.token is not None
        }
        due = [stack for stack in tables.stack.values() if stack.id in named and is_due(stack)]
        return [EndedTraversal(stack.id, stack.traversal_id or '') for stack in due[:limit]]

    def unneeded_nested(self, limit: int) -> list[UnneededNested]:
        """See `convergence.db.repositories.sweeps`."""
        tables = self._memory.tables
        found: list[UnneededNested] = []
        for stack in tables.stack.values():
            traversal = tables.traversal.get(stack.traversal_id or '')
            row = tables.resource.get(stack.parent_resource_id or '')
            runs = traversal is not None and traversal.status in UNDER_WAY and traversal.for_parent
            if traversal is None or stack.parent_resource_id is None or not runs or stack.deleted_at is not None:
                continue
            waits = row is not None and row.status is Status.IN_PROGRESS
            if traversal.action is not Action.DELETE and not waits:
                found.append(UnneededNested(stack.id, traversal.id, stack.parent_resource_id))
        return found[:limit]

    def nested_to_cancel(self, limit: int) -> list[UnneededNested]:
        """See `convergence.db.repositories.reads.nested`."""
        tables = self._memory.tables
        found: list[UnneededNested] = []
        for stack in tables.stack.values():
            traversal = tables.traversal.get(stack.traversal_id or '')
            around = tables.stack.get(stack.parent_id or '')
            its = tables.traversal.get(around.traversal_id or '') if around is not None else None
            runs = traversal is not None and traversal.status is TraversalStatus.RUNNING and traversal.for_parent
            if its is not None and its.status is TraversalStatus.CANCELLING and traversal is not None and runs:
                found.append(UnneededNested(stack.id, traversal.id, stack.parent_resource_id or ''))
        return found[:limit]

    def released_nested(self, limit: int) -> list[UnneededNested]:
        """See `convergence.db.repositories.sweeps`."""
        tables = self._memory.tables
        return [
            UnneededNested(stack.id, stack.traversal_id or '', stack.parent_resource_id)
            for stack in tables.stack.values()
            if stack.parent_resource_id is not None
            and stack.deleted_at is None
            and stack.status is not Status.IN_PROGRESS
            and stack.parent_resource_id not in tables.resource
        ][:limit]

    def purge_nodes(self, limit: int) -> int:
        """Remove the nodes of finished traversals; return their number."""
        tables, removed = self._memory.tables, 0
        for traversal in tables.traversal.values():
            stack = tables.stack[traversal.stack_id]
            ended = traversal.status not in UNDER_WAY
            if ended and (stack.traversal_id != traversal.id or stack.status is not Status.IN_PROGRESS):
                removed += len(tables.node.pop(traversal.id, {}))
        return removed

    def purge_stacks(self, limit: int) -> int:
        """Do nothing: a simulation ends before any stack is old enough."""
        return 0

    def stalled(self, limit: int, after_s: float) -> list[TraversalProgress]:
        """Return current, running traversals that have begun or stopped making no progress.

        Nodes have no times here; an operation makes progress when one of its actions begins or ends.
        """
        tables, now = self._memory.seen(), self._memory.clock()
        found: list[TraversalProgress] = []
        for stack in tables.stack.values():
            traversal = tables.traversal.get(stack.traversal_id or '')
            runs = traversal is not None and traversal.status is TraversalStatus.RUNNING
            if traversal is None or not runs or stack.status is not Status.IN_PROGRESS:
                continue
            rows = [row for row in tables.resource.values() if row.traversal_id == traversal.id]
            began = max((row.began_at or 0.0 for row in rows), default=None)
            ended = max((row.updated_at or 0.0 for row in rows), default=None)
            still = TraversalProgress(
                stack.id, traversal.id, traversal.stalled_at, traversal.started_at, ended, began, now
            )
            if traversal.started_at < now - after_s and still.is_news(after_s):
                found.append(still)
        return found[:limit]
