"""What is known of the objects of resources, in memory: as `convergence.db.queries.observations.Observations`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from convergence.core.model import UNDER_WAY, Action, DriftPolicy, Status
from convergence.core.observation import (
    SETTLED,
    DriftPolicies,
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
from convergence.db.queries.observations import Drifted, Unenrolled

FRESH: dict[str, Any] = {'repairs': 0, 'repair_at': None, 'given_up': False}
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

    def enrol(self, stack: Unenrolled, intervals: Mapping[str, float], policies: DriftPolicies, limit: int) -> int:
        """Have the objects of a stack observed that are to be and are not yet, and no others; how many are new."""
        tables, now = self._memory.seen(), self._memory.clock()
        wanted = {
            row.id: row
            for row in tables.resources_of(stack.stack_id)
            if row.type in intervals
            and row.action not in (Action.INIT, Action.DELETE)
            and row.physical_id is not None
            and row.replaced_by is None
            and policies.of(row.name, row.type) is not DriftPolicy.IGNORE
        }
        mine = {key: each for key, each in self._rows.items() if each.stack_id == stack.stack_id}
        for key in mine.keys() - wanted.keys():
            del self._rows[key]
        missing = [row for row in wanted.values() if row.id not in mine]
        for key, row in wanted.items():
            policy = policies.of(row.name, row.type)
            if key in mine and mine[key].policy is not policy:
                self._rows[key] = replace(mine[key], policy=policy, **FRESH)
        for row in missing[:limit]:
            before = mine.get(row.replaces or '')
            seen = Observation(
                row.id, stack.stack_id, row.fence, ObservedState.UNKNOWN, (), {}, '', now, 0, None, LookSource.POLL, now
            )
            past = {name: getattr(before, name) for name in FRESH} if before is not None else FRESH
            self._rows[row.id] = replace(seen, policy=policies.of(row.name, row.type), **past)
        if len(missing) <= limit:
            self._enrolled.add(stack.traversal_id)
        return len(missing[:limit])

    def enrol_again(self, root_id: str) -> None:
        """The policies of a stack, and of those nested in it, are others: what was given up is tried again."""
        for stack in self._memory.seen().stack.values():
            if stack.tree_id == root_id:
                self._enrolled.discard(stack.traversal_id or '')
                for key, known in self._rows.items():
                    if known.stack_id == stack.id:
                        self._rows[key] = replace(known, **FRESH)

    def to_repair(self, limit: int) -> list[Drifted]:
        """Objects that are to be put right and may be now, of stacks in whose tree nothing is in progress."""
        tables, now = self._memory.seen(), self._memory.clock()
        found: list[Drifted] = []
        for known in self.known(list(tables.stack), drifted=True):
            seen, row = known.observation, known.row
            stack = tables.stack[row.stack_id]
            root = tables.stack.get(stack.tree_id)
            may = seen.policy is DriftPolicy.REPAIR and not seen.given_up and (seen.repair_at or 0.0) <= now
            rests = root is not None and root.status is Status.COMPLETE and root.action not in _NEVER_UP
            if (
                may
                and rests
                and stack.status is Status.COMPLETE
                and row.status is Status.COMPLETE
                and row.owner is None
            ):
                found.append(Drifted(stack.tree_id, known))
        return sorted(found, key=lambda each: (each.root_id, each.known.row.name))[:limit]

    def repair_begun(self, pauses: Mapping[str, float]) -> None:
        """A repair of some objects was begun."""
        for key, pause_s in pauses.items():
            known = self._rows.get(key)
            if known is not None:
                later = self._memory.clock() + pause_s
                self._rows[key] = replace(known, repairs=known.repairs + 1, repair_at=later)

    def give_up(self, resource_ids: Sequence[str]) -> None:
        """No repair of some objects is begun any more."""
        for key in resource_ids:
            if key in self._rows:
                self._rows[key] = replace(self._rows[key], given_up=True)

    def lease(self, holder: str, limit: int, for_s: float) -> list[Leased]:
        """What is to be looked at now, each handed to one caller for `for_s` seconds; afterwards it is due again."""
        tables, now = self._memory.seen(), self._memory.clock()
        due = sorted((each for each in self._rows.values() if each.due_at <= now), key=lambda each: each.due_at)[:limit]
        leased: list[Leased] = []
        for each in due:
            row, stack = tables.resource.get(each.resource_id), tables.stack.get(each.stack_id)
            if stack is None or stack.deleted_at is not None:
                del self._rows[each.resource_id]
                continue
            if row is None:
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
            if look.same and known.found is ObservedState.HEALTHY and known.alike >= SETTLED - 1:
                known = replace(known, repairs=0, given_up=False)
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
