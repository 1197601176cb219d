"""Rules about changes of objects by outsiders: who may repair them, when, and how often."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from itertools import takewhile
from typing import TYPE_CHECKING

from typing_extensions import override

from convergence.core import effects
from convergence.core.model import Action, DriftPolicy, Status
from convergence.core.rows import Resource, Stack, Traversal
from convergence_simulator.cloud.reality import PhysicalObject, is_of
from convergence_simulator.memory.look import Tables
from convergence_simulator.rules.invariants import Invariant
from convergence_simulator.rules.transition import Transition
from convergence_simulator.scenarios.templates import GetAtt, GetRes, Template
from convergence_simulator.world.meddling import GIVEN_UP, NOT_UP, REPAIR_ATTEMPTS, policy_of

if TYPE_CHECKING:
    from convergence_simulator.world.world import World


class OfRepairs(Invariant):
    """A rule that knows the traversals that engines have begun as repairs."""

    def begun(self, step: Transition) -> Traversal | None:
        """Return the repair that begins with a commit: an update without a user's request. None if no repair begins."""
        for effect in step.of_kind(effects.InsertTraversal):
            if effect.traversal.id in self.world.checker.repairs:
                return effect.traversal
        return None

    def under_way(self, thing: PhysicalObject) -> Stack | None:
        """Return the root stack of an object if a repair of this stack is in progress; None otherwise."""
        stack = self.world.store.tables.stack.get(thing.stack_id)
        is_repair = stack is not None and stack.traversal_id in self.world.checker.repairs
        return stack if is_repair and thing.id not in self.world.reality.late else None


class OnlyWhatIsToBe(OfRepairs):
    """With ``report`` or ``ignore``, engines change objects only on a user's request."""

    rule = 'D2'

    @override
    def committed(self, step: Transition) -> Iterator[str]:
        """Require that the stack of a repair has a changed object with the policy ``repair``.

        If servers lag or commits were lost, a past change is enough.
        """
        traversal = self.begun(step)
        if traversal is None or self._again(step, traversal):
            return
        tables = step.tables
        reality = self.world.reality
        may_be_over = self.world.trouble.lags or self.world.losses or reality.late
        keys = reality.ever_harmed if may_be_over else reality.harmed.keys()
        harmed = [row for row in tables.resource.values() if row.physical_id in keys]
        mine = [row for row in harmed if tables.stack[row.stack_id].tree_id == traversal.stack_id]
        if not any(policy_of(self.world, row) is DriftPolicy.REPAIR for row in mine):
            yield f'{traversal.stack_id} is repaired, though no changed object has the policy repair'

    @staticmethod
    def _again(step: Transition, traversal: Traversal) -> bool:
        """Return True if the repair continues a failed one: the changed object may have no row any more."""
        before = step.stacks[traversal.stack_id].before
        return before is not None and before.status is Status.FAILED

    @override
    def happened(self, action: Action, thing: PhysicalObject) -> Iterator[str]:
        """Require that a repair touches only objects with the policy ``repair`` and objects that depend on them."""
        stack = self.under_way(thing)
        if stack is None:
            return
        goal = self.world.checker.templates[stack.template_id]
        rows = self.world.store.tables.resources_of(stack.id)
        repaired = {row.name for row in rows if policy_of(self.world, row) is DriftPolicy.REPAIR}
        nested = {name for name, wanted in goal.resources.items() if wanted.nested is not None}
        if thing.name in goal.resources and not _made_of(goal, thing.name) & (repaired | nested):
            yield f'{action} of {thing.id} by a repair, though neither it nor one it depends on has the policy repair'


class OnStacksAtRest(OfRepairs):
    """No repair begins on a stack that is suspended, busy or failed, except after a failed repair."""

    rule = 'D3'

    @override
    def committed(self, step: Transition) -> Iterator[str]:
        """Check the state of the stack before the commit."""
        traversal = self.begun(step)
        if traversal is None:
            return
        stack = step.stacks[traversal.stack_id].before
        fails = stack is not None and stack.status is Status.FAILED and stack.traversal_id in self.world.checker.repairs
        rests = stack is not None and (fails or stack.status is Status.COMPLETE)
        if stack is None or stack.deleted_at is not None or not rests:
            yield f'{traversal.stack_id} is repaired, though it was {stack and f"{stack.action}_{stack.status}"}'
        elif stack.action in NOT_UP:
            yield f'{traversal.stack_id} is repaired, though it was {stack.action}_{stack.status}'
        elif traversal.template_id != stack.template_id:
            yield f'a repair gives {stack.id} the goal {traversal.template_id}, but its user set {stack.template_id}'


class NeverTwice(OfRepairs):
    """A repair never creates a second object while the first one works: it updates the first one."""

    rule = 'D4'

    @override
    def happened(self, action: Action, thing: PhysicalObject) -> Iterator[str]:
        """Check the objects that a repair creates."""
        stack = self.under_way(thing)
        if stack is None or action is not Action.CREATE:
            return
        reality = self.world.reality
        if any(name == thing.name for name in reality.behaviours) or self.world.losses:
            return  # a replacement is allowed after a failed or refused update
        for other in reality.objects.values():
            alike = (other.stack_id, other.name, other.kind) == (thing.stack_id, thing.name, thing.kind)
            if other is thing or not alike or other.ill or other.id in reality.late:
                continue
            row = self._row_of(other)
            if row is not None and row.replaced_by is not None and row.action is not Action.DELETE:
                yield f'{thing.id} is created, though {other.id} exists and works'

    def _row_of(self, thing: PhysicalObject) -> Resource | None:
        return next((row for row in self.world.store.tables.resource.values() if is_of(row, thing)), None)


class NoEndlessFight(OfRepairs):
    """An object that keeps changing is repaired a few times and then given up; an event reports that."""

    rule = 'D5'

    def __init__(self, world: World) -> None:
        super().__init__(world)
        self._repairs: dict[tuple[str, str], set[str]] = {}
        self._told: Counter[tuple[str, str]] = Counter()
        self._last = ''

    @override
    def committed(self, step: Transition) -> Iterator[str]:
        """Restart the count at a user's operation. Until then, an object is reported as given up only once."""
        if step.tables.event and step.tables.event[-1].id != self._last:
            yield from self._told_twice(step.tables)
        for effect in step.of_kind(effects.InsertTraversal):
            key = effect.traversal.stack_id
            if effect.traversal.id not in self.world.checker.repairs:
                self._repairs = {each: begun for each, begun in self._repairs.items() if each[0] != key}
                self._told = Counter({each: count for each, count in self._told.items() if each[0] != key})

    def _told_twice(self, tables: Tables) -> Iterator[str]:
        """Check the events since the last commit. Events of given-up objects are stored by no decision."""
        news = list(takewhile(lambda event: event.id != self._last, reversed(tables.event)))
        self._last = tables.event[-1].id
        for event in reversed(news):
            if event.resource_name is not None and event.reason.startswith(GIVEN_UP):
                told = (event.stack_id, event.resource_name)
                self._told[told] += 1
                if self._told[told] > 1 + self._unsaid:
                    yield f'{event.resource_name} is reported as given up for the {self._told[told]}th time'

    @override
    def went_back(self) -> None:
        """Forget the latest events: they may be lost."""
        events = self.world.store.tables.event
        self._last = events[-1].id if events else ''

    @override
    def happened(self, action: Action, thing: PhysicalObject) -> Iterator[str]:
        """Count the repairs that touch an object that keeps changing."""
        stack = self.under_way(thing)
        if stack is None or thing.name not in {name for name, _ in self.world.reality.harmed_again}:
            return
        if action not in (Action.CREATE, Action.UPDATE) or thing.name not in self._causes(stack):
            return  # objects that depend on another one are visited with it
        begun = self._repairs.setdefault((stack.id, thing.name), set())
        begun.add(stack.traversal_id or '')
        if len(begun) > REPAIR_ATTEMPTS + self._unsaid:
            yield f'{thing.name} is repaired for the {len(begun)}th time in a row'

    def _causes(self, stack: Stack) -> list[str]:
        """Return the changes that caused the repair of the stack, according to the engine."""
        return re.split(r'[ ,]+', self.world.store.tables.traversal[stack.traversal_id or ''].cause)

    @property
    def _unsaid(self) -> int:
        """Number of times that an engine may have begun or given up a repair without recording it.

        The engine died, or had no database.
        """
        trouble = self.world.trouble
        return self.world.crashes + trouble.failures + trouble.outages + self.world.losses


def _made_of(goal: Template, name: str) -> set[str]:
    """Return a resource and all resources on which it depends, directly or not."""
    found: set[str] = set()
    waiting = [name]
    while waiting:
        each = waiting.pop()
        if each in found or each not in goal.resources:
            continue
        found.add(each)
        wanted = goal.resources[each]
        values = wanted.properties.values()
        waiting += [*wanted.depends_on, *(value.target_name for value in values if isinstance(value, (GetRes, GetAtt)))]
    return found


DRIFT_RULES = (OnlyWhatIsToBe, OnStacksAtRest, NeverTwice, NoEndlessFight)
"""Rules D2 to D5. D1 (every repair is done) is checked when everything is at rest."""
