"""What is known of the objects of resources, in memory: as `convergence.db.queries.observations.Observations`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from convergence.core.model import UNDER_WAY, Action, Status
from convergence.core.observation import (
    DriftSummary,
    KnownObject,
    Leased,
    LookOutcome,
    LookSource,
    Observation,
    ObservedState,
    is_observable,
)
from convergence.core.rows import Resource
from convergence.db.memory.queries import MemoryRoster
from convergence.db.memory.store import MemoryStore
from convergence.db.queries.observations import Unenrolled

_NEVER_UP = (Action.INIT, Action.DELETE, Action.SUSPEND)


class MemoryObservations:
    """Enrols the objects that are to be looked at, hands them out, and keeps what was seen.

    Nothing here is spread over time: a simulation tells when somebody looks.
    """

    def __init__(self, store: MemoryStore, roster: MemoryRoster) -> None:
        self._memory = store
        self._roster = roster
        self._rows: dict[str, Observation] = {}
        self._enrolled: set[str] = set()

    def unenrolled(self, limit: int) -> list[Unenrolled]:
        """Stacks at rest that are to be enrolled; none while no observer runs."""
        if not any(each.kind == 'observer' and each.is_up for each in self._roster.services()):
            return []
        tables = self._memory.seen()
        found: list[Unenrolled] = []
        for stack in tables.stack.values():
            traversal = tables.traversal.get(stack.traversal_id or '')
            at_rest = stack.status is not Status.IN_PROGRESS and stack.deleted_at is None
            if at_rest and traversal is not None and traversal.status not in UNDER_WAY:
                found += [Unenrolled(stack.id, traversal.id)] if traversal.id not in self._enrolled else []
        return found[:limit]

    def enrol(self, stack: Unenrolled, intervals: Mapping[str, float], limit: int) -> int:
        """Have the objects of a stack observed that are not yet, and those no more of which no row is left."""
        tables, now = self._memory.seen(), self._memory.clock()
        for key in [each.resource_id for each in self._rows.values() if each.stack_id == stack.stack_id]:
            if key not in tables.resource:
                del self._rows[key]
        new = [
            row
            for row in tables.resources_of(stack.stack_id)
            if row.type in intervals
            and row.action not in _NEVER_UP
            and row.physical_id is not None
            and row.replaced_by is None
            and row.id not in self._rows
        ][:limit]
        for row in new:
            self._rows[row.id] = Observation(
                row.id,
                stack.stack_id,
                row.fence,
                ObservedState.UNKNOWN,
                (),
                {},
                '',
                now,
                0,
                None,
                LookSource.POLL,
                due_at=now,
            )
        if len(new) < limit:
            self._enrolled.add(stack.traversal_id)
        return len(new)

    def lease(self, holder: str, limit: int, for_s: float) -> list[Leased]:
        """What is to be looked at now, each handed to one caller for `for_s` seconds; afterwards it is due again."""
        tables, now = self._memory.seen(), self._memory.clock()
        due = sorted((each for each in self._rows.values() if each.due_at <= now), key=lambda each: each.due_at)[:limit]
        leased: list[Leased] = []
        for each in due:
            row, stack = tables.resource.get(each.resource_id), tables.stack.get(each.stack_id)
            if row is None or stack is None:
                del self._rows[each.resource_id]
                continue
            held = replace(each, holder=holder, leased_at=now, due_at=now + for_s)
            self._rows[each.resource_id] = held
            if is_observable(stack, row):
                leased.append(Leased(held, row, stack))
        return leased

    def write(self, holder: str, looks: Sequence[LookOutcome]) -> int:
        """Keep what was seen under a lease; how much of it was taken."""
        tables, now, taken = self._memory.seen(), self._memory.clock(), 0
        for look in looks:
            known, row = self._rows.get(look.resource_id), tables.resource.get(look.resource_id)
            if known is None or row is None or known.holder != holder or row.fence != look.fence:
                continue
            taken += 1
            looked_at = known.leased_at or 0.0
            is_wanted = known.wanted_at is not None and known.wanted_at >= looked_at
            known = replace(
                known,
                looked_at=looked_at,
                source=look.source,
                alike=known.alike + 1 if look.same else 1,
                due_at=now if is_wanted else now + look.pause_s,
                wanted_at=known.wanted_at if is_wanted else None,
                wanted_by=known.wanted_by if is_wanted else None,
                holder=None,
            )
            if not look.same:
                sight = look.sight
                told = (sight.names, dict(sight.live), sight.reason)
                known = replace(known, since=looked_at, fence=look.fence, found=sight.found)
                known = replace(known, names=told[0], live=told[1], reason=told[2])
            self._rows[look.resource_id] = known
        return taken

    def put_off(self, holder: str, resource_ids: Sequence[str], for_s: float) -> None:
        """Nobody has looked at what was leased; it is due again in `for_s` seconds."""
        for key in resource_ids:
            known = self._rows.get(key)
            if known is not None and known.holder == holder:
                self._rows[key] = replace(known, due_at=self._memory.clock() + for_s, holder=None)

    def ask(self, stack_ids: Sequence[str], source: LookSource, resource_ids: Sequence[str] | None = None) -> float:
        """Have objects looked at as soon as possible; the time."""
        now = self._memory.clock()
        for key, known in self._rows.items():
            if known.stack_id in stack_ids and (resource_ids is None or key in resource_ids):
                is_held = known.holder is not None and known.due_at > now
                due_at = known.due_at if is_held else now
                self._rows[key] = replace(known, wanted_at=now, wanted_by=source, due_at=due_at)
        return now

    def of_row(self, row: Resource) -> Observation | None:
        """What is known of the object of one row as that is now; None: it is not observed."""
        known = self._rows.get(row.id)
        return known.as_of(row.fence) if known is not None else None

    def summary(self, stack_id: str) -> DriftSummary:
        """How many objects of a stack are observed, and how many are known to be otherwise than they were made."""
        return DriftSummary.of(each.observation for each in self.known([stack_id]))

    def known(self, stack_ids: Sequence[str], *, drifted: bool = False, limit: int | None = None) -> list[KnownObject]:
        """What is known of the objects of some stacks, as they are now, by name; also that nobody has seen one yet."""
        rows = self._memory.seen().resource
        every = [
            KnownObject(each.as_of(rows[each.resource_id].fence), rows[each.resource_id])
            for each in self._rows.values()
            if each.stack_id in stack_ids and each.resource_id in rows
        ]
        found = [each for each in every if not drifted or each.observation.found.is_drift]
        return sorted(found, key=lambda each: (each.row.name, each.row.id))[:limit]

    def waiting(self, stack_ids: Sequence[str]) -> int:
        """How many objects of some stacks somebody waits to be looked at that can be compared now."""
        stacks = self._memory.seen().stack
        wanted = [each for each in self.known(stack_ids) if each.observation.wanted_at is not None]
        return sum(is_observable(stacks[each.row.stack_id], each.row) for each in wanted)
