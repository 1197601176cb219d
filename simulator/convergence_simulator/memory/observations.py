"""Observations in memory, with the interface of `convergence.db.repositories.observations` and `WatchedObjects`."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

from convergence.core.model import UNDER_WAY, Action, DriftPolicy, Status, TraversalStatus
from convergence.core.observation import (
    SETTLED,
    DriftPolicies,
    DriftSummary,
    KnownObject,
    Leased,
    Observation,
    ObservationSource,
    ObservationUpdate,
    ObservedState,
    Past,
    is_observable,
    succession,
)
from convergence.core.rows import Event, Resource
from convergence.db.records import Drifted, UnscheduledStack, WatchTarget
from convergence.values import replace
from convergence_simulator.memory.look import Tables
from convergence_simulator.memory.queries import MemoryRoster
from convergence_simulator.memory.store import MemoryStore

FRESH: dict[str, Any] = {'repairs': 0, 'repair_at': None, 'given_up': False}
_NEVER_UP = (Action.INIT, Action.DELETE, Action.SUSPEND)


class MemoryObservations:
    """Schedules the objects to observe, leases them, and stores the results.

    Observations are not spread over time: the simulation decides when they happen. Each query and each write is a step
    before which other fibers may run. A write always changes the committed rows; other rows that it reads may be older
    if the server lags.
    """

    def __init__(self, store: MemoryStore, roster: MemoryRoster) -> None:
        self._memory = store
        self._roster = roster

    @property
    def _rows(self) -> dict[str, Observation]:
        return self._memory.tables.observation

    def _step(self) -> Tables:
        """Let other fibers run, then return the rows that this server shows.

        Without observed objects there is no pause.
        """
        if self._rows:
            self._memory.pause('read')
        return self._memory.seen()

    @contextmanager
    def _writing(self) -> Iterator[Tables]:
        """Give the rows as `_step` does, and record the state after the write."""
        yield self._step()
        self._memory.keep()

    def unscheduled(self, limit: int) -> list[UnscheduledStack]:
        """Return stacks at rest whose objects are not scheduled yet; an empty list while no observer runs."""
        if not any(each.kind == 'observer' and each.is_up for each in self._roster.services()):
            return []
        tables = self._step()
        found: list[UnscheduledStack] = []
        for stack in tables.stack.values():
            traversal = tables.traversal.get(stack.traversal_id or '')
            at_rest = stack.status is not Status.IN_PROGRESS and stack.deleted_at is None
            if at_rest and traversal is not None and traversal.status not in UNDER_WAY:
                found += (
                    [UnscheduledStack(stack.id, traversal.id)]
                    if traversal.id not in tables.observations_scheduled
                    else []
                )
        return found[:limit]

    def schedule(
        self, stack: UnscheduledStack, intervals: Mapping[str, float], policies: DriftPolicies, limit: int
    ) -> int:
        """Schedule the observable objects of a stack and drop all others of it; return the number of new ones."""
        with self._writing() as tables:
            return self._enrol(tables, stack, intervals, policies, limit)

    def _enrol(
        self,
        tables: Tables,
        stack: UnscheduledStack,
        intervals: Mapping[str, float],
        policies: DriftPolicies,
        limit: int,
    ) -> int:
        now, committed = self._memory.clock(), self._memory.tables
        mine = committed.stack.get(stack.stack_id)
        top = committed.stack.get(mine.tree_id) if mine is not None else None
        if top is None or top.drift_policy is not policies.of_stack:
            return 0
        if top.id == stack.stack_id and top.id in committed.untold:
            self._tell_policy(top.id)
        present = [
            row
            for row in tables.resources_of(stack.stack_id)
            if row.type in intervals
            and row.action not in (Action.INIT, Action.DELETE)
            and row.physical_id is not None
            and row.replaced_by is None
        ]
        wanted = {row.id: row for row in present if policies.of(row.name, row.type) is not DriftPolicy.IGNORE}
        there = {key: each for key, each in self._rows.items() if each.stack_id == stack.stack_id}
        known = [each.past for each in there.values()]
        is_complete = mine is not None and mine.status is Status.COMPLETE
        follows = succession(known, wanted, {row.name for row in present}, is_complete=is_complete)
        missing = [row for row in wanted.values() if row.id not in there]
        for key in wanted.keys() & there.keys():
            if there[key].requested_at is not None:
                self._rows[key] = there[key] = replace(there[key], due_at=now)
        for key, row in wanted.items():
            policy = policies.of(row.name, row.type)
            if key in there and there[key].policy is not policy:
                self._rows[key] = replace(there[key], policy=policy, **FRESH)
        for row in missing[:limit]:
            past = follows.before.get(row.name, Past(row.id, row.name))
            self._rows[row.id] = _unseen(row, now, policies.of(row.name, row.type), past)
        if _is_over(tables, stack) and len(missing) <= limit:
            for key in follows.over & tables.observation.keys():
                del self._rows[key]
            self._memory.tables.observations_scheduled.add(stack.traversal_id)
        return len(missing[:limit])

    def _tell_policy(self, root_id: str) -> None:
        """Schedule the objects of all nested stacks again, with the new policy of their root stack."""
        tables = self._memory.tables
        for stack in tables.stack.values():
            if stack.tree_id == root_id:
                tables.observations_scheduled.discard(stack.traversal_id or '')
                last = tables.traversal.get(stack.traversal_id or '')
                if last is not None and last.repair_attempt > 1:
                    tables.traversal[last.id] = replace(last, repair_attempt=1)
                for key, known in self._rows.items():
                    if known.stack_id == stack.id:
                        self._rows[key] = replace(known, **FRESH)
        tables.untold.discard(root_id)

    def to_repair(self, limit: int) -> list[Drifted]:
        """Return objects whose repair is due, in stacks whose tree has no operation in progress."""
        tables, now = self._step(), self._memory.clock()
        found: list[Drifted] = []
        for known in _known(tables, list(tables.stack), drifted=True):
            seen, row = known.observation, known.row
            stack = tables.stack[row.stack_id]
            root = tables.stack.get(stack.tree_id)
            may = seen.policy is DriftPolicy.REPAIR and not seen.given_up and (seen.repair_at or 0.0) <= now
            rests = root is not None and root.status is Status.COMPLETE and root.action not in _NEVER_UP
            if (
                may
                and root is not None
                and rests
                and stack.status is Status.COMPLETE
                and {stack.traversal_id, root.traversal_id} <= tables.observations_scheduled
                and row.status is Status.COMPLETE
                and row.owner is None
            ):
                found.append(Drifted(stack.tree_id, known))
        return sorted(found, key=_longest_due)[:limit]

    def failed_repairs(self, pauses: Sequence[float], limit: int) -> list[str]:
        """Return stacks whose last operation was a failed repair and whose pause is over, longest ago first."""
        tables, now = self._memory.seen(), self._memory.clock()
        due: list[tuple[float, str]] = []
        for stack in tables.stack.values():
            last = tables.traversal.get(stack.traversal_id or '')
            if last is None or stack.status is not Status.FAILED or stack.deleted_at is not None:
                continue
            may_be = last.status is TraversalStatus.FAILED and 0 < last.repair_attempt <= len(pauses)
            if may_be and last.finished_at is not None and last.finished_at <= now - pauses[last.repair_attempt - 1]:
                due.append((last.finished_at, stack.id))
        if due:
            self._memory.pause('read')
        return [stack_id for _, stack_id in sorted(due)[:limit]]

    def repair_begun(self, begun: Sequence[tuple[Resource, float]]) -> None:
        """Record that a repair of some objects began. If it is over, count it for the rows that replaced them."""
        with self._writing():
            pauses = {row.id: pause_s for row, pause_s in begun if row.id in self._rows}
            counted = {(row.stack_id, row.name) for row, _ in begun if row.id in pauses}
            gone = {(row.stack_id, row.name): pause_s for row, pause_s in begun}
            for each in self._rows.values():
                name = (each.stack_id, each.name)
                if name in gone and name not in counted:
                    pauses[each.resource_id] = gone[name]
            for key, pause_s in pauses.items():
                known, later = self._rows[key], self._memory.clock() + pause_s
                self._rows[key] = replace(known, repairs=known.repairs + 1, repair_at=later)

    def repair_put_off(self, resource_ids: Sequence[str], for_s: float) -> None:
        """Record that no repair of some objects could begin. They are due again in `for_s` seconds, after others."""
        with self._writing():
            for key in resource_ids:
                known, at = self._rows.get(key), self._memory.clock() + for_s
                if known is not None and (known.repair_at or 0.0) < at:
                    self._rows[key] = replace(known, repair_at=at)

    def give_up(self, told: Mapping[str, Event]) -> None:
        """Record that objects are given up, and store one event for each, even if several engines do so."""
        with self._writing():
            for key, event in sorted(told.items()):
                if key in self._rows and not self._rows[key].given_up:
                    self._rows[key] = replace(self._rows[key], given_up=True)
                    events = self._memory.tables.event
                    events.append(replace(event, at=self._memory.clock(), sequence=len(events) + 1))

    def forget_repairs(self, resource_ids: Sequence[str]) -> None:
        """Forget earlier repairs of some objects; given-up objects are repaired again."""
        with self._writing():
            for key in resource_ids:
                if key in self._rows:
                    self._rows[key] = replace(self._rows[key], **FRESH)

    def due_in_s(self) -> float | None:
        """Return the seconds until the next observation is due; None if no object is observed."""
        due_at = min((each.due_at for each in self._rows.values()), default=None)
        return None if due_at is None else due_at - self._memory.clock()

    def lease(self, holder: str, limit: int, for_s: float) -> list[Leased]:
        """Lease the objects that are due to one caller for `for_s` seconds; afterwards they are due again."""
        with self._writing() as tables:
            return self._lease(tables, holder, limit, for_s)

    def _lease(self, tables: Tables, holder: str, limit: int, for_s: float) -> list[Leased]:
        now = self._memory.clock()
        # A server that lags leases only observations whose rows it shows already.
        shown = [each for key, each in self._rows.items() if key in tables.observation]
        due = sorted((each for each in shown if each.due_at <= now), key=lambda each: each.due_at)[:limit]
        leased: list[Leased] = []
        for each in due:
            row, stack = tables.resource.get(each.resource_id), tables.stack.get(each.stack_id)
            if stack is None or stack.deleted_at is not None:
                del self._rows[each.resource_id]
                continue
            can_be_compared = row is not None and is_observable(stack, row)
            held = replace(each, holder=holder if can_be_compared else None, leased_at=now, due_at=now + for_s)
            self._rows[each.resource_id] = held
            if row is not None and can_be_compared:
                leased.append(Leased(held, row, stack))
        return leased

    def write(self, holder: str, looks: Sequence[ObservationUpdate]) -> int:
        """Store the results of leased observations; return the number of results that were accepted."""
        if not looks:
            return 0
        with self._writing() as tables:
            return sum(self._write(tables, holder, look) for look in looks)

    def _write(self, tables: Tables, holder: str, look: ObservationUpdate) -> bool:
        known, row, now = self._rows.get(look.resource_id), tables.resource.get(look.resource_id), self._memory.clock()
        if known is None or row is None or known.holder != holder or row.fence != look.fence:
            return False
        observed_at = known.leased_at or 0.0
        is_wanted = known.requested_at is not None and known.requested_at >= observed_at
        if look.same and known.found is ObservedState.HEALTHY and known.same_results >= SETTLED - 1:
            known = replace(known, repairs=0, given_up=False)
        known = replace(
            known,
            observed_at=observed_at,
            source=look.source,
            same_results=known.same_results + 1 if look.same else 1,
            due_at=now if is_wanted else now + look.pause_s,
            requested_at=known.requested_at if is_wanted else None,
            requested_by=known.requested_by if is_wanted else None,
            holder=None,
        )
        if not look.same:
            result = look.result
            told = (result.names, dict(result.live), result.reason)
            known = replace(known, since=observed_at, fence=look.fence, found=result.found)
            known = replace(known, names=told[0], live=told[1], reason=told[2])
        if look.news is not None:
            known, events = replace(known, told=look.drift), self._memory.tables.event
            events.append(replace(look.news, sequence=len(events) + 1))
        self._rows[look.resource_id] = known
        return True

    def put_off(self, holder: str, resource_ids: Sequence[str], for_s: float) -> None:
        """Record that leased objects were not observed; they are due again in `for_s` seconds."""
        if not resource_ids:
            return
        with self._writing():
            for key in resource_ids:
                known = self._rows.get(key)
                if known is not None and known.holder == holder:
                    self._rows[key] = replace(known, due_at=self._memory.clock() + for_s, holder=None)

    def request(self, stack_ids: Sequence[str], source: ObservationSource, rows: Sequence[str] | None = None) -> float:
        """Make objects due at once; return the time."""
        with self._writing():
            now = self._memory.clock()
            for key, known in self._rows.items():
                if known.stack_id in stack_ids and (rows is None or key in rows):
                    is_held = known.holder is not None and known.due_at > now
                    due_at = known.due_at if is_held else now
                    self._rows[key] = replace(known, requested_at=now, requested_by=source, due_at=due_at)
            return now

    def of_row(self, row: Resource) -> Observation | None:
        """Return the observation of the object of a row; None if it is not observed."""
        known = self._memory.seen().observation.get(row.id)
        return known.as_of(row.fence) if known is not None else None

    def summary(self, stack_id: str) -> DriftSummary:
        """Return the numbers of observed objects and of drifted objects of a stack."""
        return DriftSummary.of(each.observation for each in self.known([stack_id]))

    def known(self, stack_ids: Sequence[str], *, drifted: bool = False, limit: int | None = None) -> list[KnownObject]:
        """Return the observations of the objects of some stacks, by name, including objects not observed yet."""
        return _known(self._memory.seen(), stack_ids, drifted=drifted)[:limit]

    def waiting(self, stack_ids: Sequence[str]) -> int:
        """Return the number of objects of some stacks that wait for a requested observation and can be compared now."""
        stacks = self._memory.seen().stack
        wanted = [each for each in self.known(stack_ids) if each.observation.requested_at is not None]
        return sum(is_observable(stacks[each.row.stack_id], each.row) for each in wanted)


def _unseen(row: Resource, now: float, policy: DriftPolicy, past: Past) -> Observation:
    """Return the record of an object before its first observation."""
    return Observation(
        row.id,
        row.stack_id,
        row.name,
        row.fence,
        ObservedState.UNKNOWN,
        (),
        {},
        '',
        since=now,
        same_results=0,
        observed_at=None,
        source=ObservationSource.POLL,
        due_at=now,
        policy=policy,
        repairs=past.repairs,
        repair_at=past.repair_at,
        given_up=past.given_up,
        told=past.told,
    )


def _is_over(tables: Tables, unscheduled: UnscheduledStack) -> bool:
    """Return True if an operation is over and is the last one of its stack."""
    stack, operation = tables.stack.get(unscheduled.stack_id), tables.traversal.get(unscheduled.traversal_id)
    if stack is None or operation is None or stack.traversal_id != operation.id:
        return False
    return stack.status is not Status.IN_PROGRESS and operation.status not in UNDER_WAY


def _longest_due(drifted: Drifted) -> tuple[float, str, str]:
    seen = drifted.known.observation
    return (seen.since if seen.repair_at is None else seen.repair_at, drifted.root_id, drifted.known.row.name)


def _known(tables: Tables, stack_ids: Sequence[str], *, drifted: bool = False) -> list[KnownObject]:
    rows = tables.resource
    every = [
        KnownObject(each.as_of(rows[each.resource_id].fence), rows[each.resource_id])
        for each in tables.observation.values()
        if each.stack_id in stack_ids and each.resource_id in rows
    ]
    found = [each for each in every if not drifted or each.observation.found.is_drift]
    return sorted(found, key=lambda each: (each.row.name, each.row.id))


class MemoryWatched:
    """Returns the objects to watch, and the rows that a notification is about."""

    def __init__(self, store: MemoryStore, observations: MemoryObservations) -> None:
        self._memory = store
        self._observations = observations

    def objects(self, types: Sequence[str]) -> Mapping[str, Sequence[str]]:
        """Return the physical ids of observed objects of these types, by type."""
        found: dict[str, list[str]] = {}
        for known in self._observations.known(list(self._memory.seen().stack)):
            if known.row.type in types and known.row.physical_id is not None:
                found.setdefault(known.row.type, []).append(known.row.physical_id)
        return found

    def targets_of(self, type_: str, physical_ids: Sequence[str]) -> list[WatchTarget]:
        """Return the rows of a type that have one of these objects."""
        return [
            WatchTarget(row.id, row.stack_id, row.status is Status.IN_PROGRESS)
            for row in self._memory.seen().resource.values()
            if row.type == type_ and row.physical_id in physical_ids
        ]
