"""Rules about objects: none untracked, none removed too early, none replaced without a cause."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import TYPE_CHECKING

from typing_extensions import override

from convergence import template
from convergence.core import effects
from convergence.core.claim import Step, StepDecision
from convergence.core.model import Action, DeletionPolicy, NodeStatus, Phase, Status
from convergence.core.orphans import LATE
from convergence.core.rows import Node, Resource, Stack
from convergence_simulator.cloud.reality import NOBODY, PhysicalObject, Question, is_of, may_find
from convergence_simulator.cloud.sorts import ADDRESSED, ENFORCED, NEVER_FOUND, Exclusive, Keeper
from convergence_simulator.rules.invariants import Invariant
from convergence_simulator.rules.transition import Transition

if TYPE_CHECKING:
    from convergence_simulator.world.world import World

UNKNOWN = re.compile(
    r'\bunknown\b|\bif it (was |has )?made\b|\bmay (still )?exist\b|\bmay have (made|left) an object\b'
)
"""Events that say that the existence of an object is unknown."""


class Tracked(Invariant):
    """No physical object without a row or an intent, and no row with two objects.

    An object that no call can find may become untracked if its creator dies; then an event has to report it.
    """

    rule = 'I6'

    def __init__(self, world: World) -> None:
        super().__init__(world)
        self._left: set[str] = set()
        self._leftovers: set[str] = set()

    @override
    def went_back(self) -> None:
        """Forget the objects that users requested to keep."""
        self._left.clear()

    @override
    def committed(self, step: Transition) -> Iterator[str]:
        """Require that a removed row leaves no object, and that a row names its own object only."""
        objects, late = self.world.reality.objects, self.world.reality.late
        for key, change in step.resources.items():
            before, after = change.before, change.after
            if before is None and after is not None and after.status_reason == LATE:
                self._leftovers.add(key)
            if after is None and before is not None:
                if before.token is not None and self._is_left(step, before):
                    self._left.add(before.token)
                for thing in left_by(self.world, before):
                    if not self._is_of_another(step, thing) and not self._may_stay(step, before, thing):
                        yield f'the row {key} of {before.name} is removed, but {thing.id} still exists'
            if after is not None and after.token is not None and after.physical_id in objects:
                thing = objects[after.physical_id]
                if thing.token != after.token and thing.id not in late and thing.stack_id != NOBODY:
                    yield f'the row {key} of {after.name} names {thing.id}, which was made for another'

    def _may_stay(self, step: Transition, row: Resource, thing: PhysicalObject) -> bool:
        """Return True if an object may stay without a row.

        The user requested it, or no call can find the object and an event reports that.
        """
        reality = self.world.reality
        stack = step.tables.stack[row.stack_id]
        traversal = step.tables.traversal.get(stack.traversal_id or '')
        left = self._is_left(step, row) and self._is_named(step, row, thing)
        retained = row.definition is not None and row.definition.deletion_policy is DeletionPolicy.RETAIN
        if retained or left or (traversal is not None and traversal.retains):
            thing.stack_id = NOBODY
            return True
        if thing.kind in NEVER_FOUND and row.physical_id is None and self._was_told(step, row):
            reality.untold.add(thing.id)
            return True
        return thing.id in reality.late

    @staticmethod
    def _is_of_another(step: Transition, thing: PhysicalObject) -> bool:
        """Return True if another row has the object: it was created again with a token after its row was lost."""
        return any(row.physical_id == thing.id for row in step.tables.resources_of(thing.stack_id))

    @staticmethod
    def _is_left(step: Transition, row: Resource) -> bool:
        """Return True if a user requested to keep the object of a row."""
        traversal = step.tables.traversal.get(step.tables.stack[row.stack_id].traversal_id or '')
        return traversal is not None and row.id in traversal.left_rows

    @staticmethod
    def _is_named(step: Transition, row: Resource, thing: PhysicalObject) -> bool:
        """Return True if an event of this commit names a kept object, so that its user can find it."""
        told = ' '.join(event.reason for event in step.events if event.resource_name == row.name)
        return thing.id in told or thing.token in told

    @staticmethod
    def _was_told(step: Transition, row: Resource) -> bool:
        """Return True if an event reports that an untracked object may exist."""
        return any(
            event.resource_name == row.name and event.stack_id == row.stack_id and UNKNOWN.search(event.reason)
            for event in step.tables.event
        )

    @override
    def happened(self, action: Action, thing: PhysicalObject) -> Iterator[str]:
        """Require one row for each new object, one object for each row, and no change of objects of others."""
        if thing.token in self._left and action is Action.DELETE is not self.world.reality.late.get(thing.id):
            yield f'{thing.id} is removed, but a user requested to keep it'
        if thing.id in self.world.reality.late:
            return  # Objects that are created late are found later.
        if thing.stack_id == NOBODY:
            yield f'{action} of {thing.id}, which belongs to others'
        if action is not Action.CREATE:
            return
        if self.world.reality.made[thing.token] > 1 and not self._is_made_again(thing):
            yield f'{thing.id} is the second object made for one row'
        rows = self.world.store.tables.resource.values()
        if not any(row.token == thing.token for row in rows):
            yield f'{thing.id} is created, but no row has its token'

    def _is_made_again(self, thing: PhysicalObject) -> bool:
        """Return True if an object replaces a removed one whose removal the rows do not record (any more).

        This includes leftovers. A leftover is reported by a process that has lost the row; the row and its object may
        have been removed meanwhile. For a type whose objects only a second creation finds, the deletion of a leftover
        creates the object again to get its id.
        """
        reality = self.world.reality
        if any(each.token == thing.token for each in reality.objects.values() if each.id != thing.id):
            return False
        removed = any(each.thing.token == thing.token for each in reality.harmed.values())
        return bool(self.world.losses) or removed or (thing.kind in ENFORCED and self._is_of_leftover(thing))

    def _is_of_leftover(self, thing: PhysicalObject) -> bool:
        """Return True if an object is created for the deletion of a leftover that was reported late."""
        rows = (row for row in self.world.store.tables.resource.values() if row.token == thing.token)
        return all(row.action is Action.DELETE and row.id in self._leftovers for row in rows)


class AfterReplacement(Invariant):
    """The current object is never removed; an old one is removed only after its replacement is complete."""

    rule = 'I7'

    def __init__(self, world: World) -> None:
        super().__init__(world)
        self._never_up: set[str] = set()

    @override
    def committed(self, step: Transition) -> Iterator[str]:
        """Check claims for a deletion."""
        self._learn(step)
        row = deleting(step)
        if row is None or row.id in self._never_up:
            return  # a leftover of a lost commit was never in service
        for node in step.tables.node.get(step.decision.verdict.claim.node.traversal_id, {}).values():
            if node.phase is not Phase.UPDATE or node.name != row.name:
                continue
            if node.resource_id == row.id:
                yield f'{row.name} ({row.id}) is the current row of the goal, and is being removed'
            elif node.status is not NodeStatus.DONE and not self._makes_room(step, row, node):
                yield f'{row.name} ({row.id}) is being removed before its replacement {node.resource_id} is complete'

    def _learn(self, step: Transition) -> None:
        """Record rows added for objects of a process that lost its row, and such rows that become complete."""
        if not step.of_kind(effects.InsertTraversal) and not step.of_kind(effects.PointNode):
            self._never_up.update(row.id for each in step.of_kind(effects.InsertResources) for row in each.resources)
        for key, change in step.nodes.items() if self._never_up else ():
            node = change.after
            if node is not None and node.phase is Phase.UPDATE and node.status is NodeStatus.DONE and key:
                self._never_up.discard(node.resource_id or '')

    @staticmethod
    def _makes_room(step: Transition, row: Resource, node: Node) -> bool:
        """Return True if the new object cannot be created while an object of the same name exists."""
        if node.definition is None or node.definition.type != row.type:
            return False
        before = step.resources[row.id].before if row.id in step.resources else None
        goes_on = before is not None and before.action is Action.DELETE
        return row.type == Exclusive.type_name or (row.type in ADDRESSED and goes_on)

    @override
    def happened(self, action: Action, thing: PhysicalObject) -> Iterator[str]:
        """Require that an object is removed only while a worker holds its row to delete it."""
        if action is not Action.DELETE or thing.id in self.world.reality.late:
            return
        rows = [row for row in self.world.store.tables.resource.values() if is_of(row, thing)]
        holders = [row for row in rows if (row.action is Action.DELETE or row.is_cleared) and row.owner is not None]
        if not holders:
            yield f'{thing.id} is removed, but no worker holds its row to delete it'
        for row in holders:
            policy = row.definition.deletion_policy if row.definition is not None else None
            if policy is DeletionPolicy.RETAIN:
                yield f'{thing.id} is removed, but its deletion policy is Retain'
            kept = (row.id, thing.id) in self.world.reality.kept
            if policy is DeletionPolicy.SNAPSHOT and thing.kind == Keeper.type_name and not kept:
                yield f'{thing.id} is removed before its snapshot is stored'


class DependentsFirst(Invariant):
    """An object is cleaned up after the objects that depend on it."""

    rule = 'I8'

    @override
    def committed(self, step: Transition) -> Iterator[str]:
        """Check claims for a deletion."""
        row = deleting(step)
        if row is None:
            return
        for other in step.tables.resource.values():
            if (row.id, other.id) in self.world.reality.too_late:
                continue  # The row was not known yet when this deletion could begin.
            if row.type == Exclusive.type_name and self._is_in_use(step, other):
                continue  # its type has declared that the object may be missing for a while
            if row.id in other.requires and other.id != row.id and other.stack_id == row.stack_id:
                yield f'{row.name} ({row.id}) is being removed, but {other.name} ({other.id}) depends on it'

    @staticmethod
    def _is_in_use(step: Transition, row: Resource) -> bool:
        stack = step.tables.stack[row.stack_id]
        nodes = step.tables.nodes_of(stack.traversal_id or '').values()
        return any(node.phase is Phase.UPDATE and node.resource_id == row.id for node in nodes)

    @override
    def happened(self, action: Action, thing: PhysicalObject) -> Iterator[str]:
        """Require that an object to which another one refers exists, and is active while the other one is."""
        if action in (Action.SUSPEND, Action.RESUME):
            yield from self._rests(action, thing)
        if action is not Action.DELETE:
            return
        if self.world.losses:
            return  # the object that refers to it may be untracked
        for other in self.world.reality.objects.values():
            # A kept object belongs to no stack: its user requested that, perhaps in the middle of a deletion.
            refers = other.stack_id == thing.stack_id != NOBODY and thing.id in other.properties.values()
            if thing.kind == Exclusive.type_name:
                continue  # its type has declared that the object may be missing for a while
            if refers and other.id not in self.world.reality.late and other.id not in self.world.reality.untold:
                yield f'{thing.id} is removed, but {other.id} refers to it'

    def _rests(self, action: Action, thing: PhysicalObject) -> Iterator[str]:
        stack = self.world.store.tables.stack.get(thing.stack_id)
        if stack is None or stack.action is not action:
            return  # an update resumes a suspended object as soon as it reaches it
        for other in self.world.reality.objects.values():
            unseen = other.id in self.world.reality.late or other.id in self.world.reality.untold
            if other.stack_id != thing.stack_id or unseen or self._is_left_over(stack, other):
                continue
            if action is Action.SUSPEND and thing.id in other.properties.values() and not other.asleep:
                yield f'{thing.id} is suspended, but {other.id}, which refers to it, is not'
            if action is Action.RESUME and other.id in thing.properties.values() and other.asleep:
                yield f'{thing.id} is resumed, but {other.id}, to which it refers, is not'

    def _is_left_over(self, stack: Stack, thing: PhysicalObject) -> bool:
        """Return True if an object waits for its removal, and the operation uses another one of its name."""
        tables = self.world.store.tables
        nodes = tables.nodes_of(stack.traversal_id or '').values()
        chosen = {node.name: tables.resource.get(node.resource_id or '') for node in nodes if node.name is not None}
        row = next((row for row in tables.resource.values() if is_of(row, thing)), None)
        instead = chosen.get(row.name) if row is not None else None
        return row is not None and row is not instead and (instead is None or instead.action is not Action.INIT)


class WithCause(Invariant):
    """No object is replaced without a cause, and a usable row is used."""

    rule = 'I9'

    @override
    def committed(self, step: Transition) -> Iterator[str]:
        """Check replacements and the rows that a plan chose."""
        for effect in step.of_kind(effects.InsertTraversal):
            for node in effect.nodes:
                if node.phase is Phase.UPDATE:
                    yield from self._chosen(step, effect.traversal.template_id, node)
        points = step.of_kind(effects.PointNode)
        if points:
            yield from self._replaced(step, points[0])

    @override
    def happened(self, action: Action, thing: PhysicalObject) -> Iterator[str]:
        """Require that a change starts from the real or the last applied properties of the object.

        The service shows the applied properties, unless the object is gone.
        """
        if action is not Action.UPDATE or thing.before is None or thing.id in self.world.reality.late:
            return
        if thing.id in self.world.reality.ever_harmed:
            return  # its state in between is unknown
        for row in self.world.store.tables.resource.values():
            applied = dict(row.properties)
            seen = {name: thing.was.get(name, value) for name, value in applied.items()}
            if is_of(row, thing) and row.owner is not None and thing.before not in (applied, seen):
                yield f'{thing.id} is changed from {thing.before}, but its row says {row.properties}'

    @staticmethod
    def _chosen(step: Transition, template_id: str | None, node: Node) -> Iterator[str]:
        row = step.tables.resource.get(node.resource_id or '')
        if row is None:
            yield f'the plan chose {node.resource_id} for {node.name}, which does not exist'
            return
        if row.action is Action.DELETE:
            yield f'the plan chose {row.id} for {node.name}, which is being removed'
        rows = [
            other
            for other in step.tables.resources_of(row.stack_id)
            if other.name == node.name and other.action is not Action.DELETE and other.id != row.id
        ]
        goal = step.tables.template.get(template_id or '')

        def fits(each: Resource) -> bool:
            return (
                goal is not None
                and goal.is_of(each)
                and each.status is Status.COMPLETE
                and each.action is not Action.INIT
            )

        fitting = [other.id for other in rows if fits(other)]
        if fitting and not fits(row):
            yield f'the plan chose {row.id} for {node.name}, though {fitting[0]} matches the goal'
        elif rows and row.action is Action.INIT and step.resources.get(row.id) is not None:
            yield f'the plan made a new row for {node.name}, though {rows[0].id} exists'

    def _to_be_found(self, row: Resource) -> list[PhysicalObject]:
        """Return the object of a row without physical id, if a search finds the object."""
        reality = self.world.reality
        if row.physical_id is not None or row.output is not None or row.token is None:
            return []
        if (row.name, Question.FIND) in reality.answers:
            return []
        things = [thing for thing in reality.objects.values() if may_find(row, thing)]
        unknown = NEVER_FOUND | ENFORCED
        return [each for each in things if each.kind not in unknown and each.id not in reality.late]

    def _replaced(self, step: Transition, effect: effects.PointNode) -> Iterator[str]:
        nodes = step.tables.node[effect.traversal_id]
        node, new = nodes[effect.number], step.tables.resource[effect.resource_id]
        old = step.resources[new.replaces or ''].before
        definition = node.definition
        if old is None or definition is None:
            yield f'{new.id} replaces {new.replaces}, which does not exist'
            return
        if old.action is Action.DELETE or old.type != definition.type:
            return
        is_there = [thing.id for thing in self._to_be_found(old)]
        if old.status is Status.FAILED and not is_there:
            return
        if old.action is Action.UPDATE and old.digest is None:
            return  # the type has refused the update and requested a replacement
        inputs = {nodes[number].name or '': output for number in node.requires if (output := nodes[number].output)}
        wanted = template.resolve(definition.properties, inputs)
        assert isinstance(wanted, dict)
        if not any('!' in name and old.properties.get(name) != wanted.get(name) for name in {*old.properties, *wanted}):
            yield f'{old.name} ({old.id}) is replaced without a cause'


def left_by(world: World, row: Resource) -> list[PhysicalObject]:
    """Return the objects of a removed row, except those that never belonged to it."""
    if row.definition is not None and row.definition.external_id is not None:
        return []
    things = world.reality.objects.values()
    return [thing for thing in things if thing.stack_id == row.stack_id and is_of(row, thing)]


def deleting(step: Transition) -> Resource | None:
    """Return the row that was claimed for a deletion by this commit; None if there is none."""
    verdict = step.decision.verdict
    if not isinstance(verdict, StepDecision) or verdict.claim is None or verdict.claim.action is not Action.DELETE:
        return None
    return verdict.claim.resource if verdict.step in (Step.DELETE, Step.RESUME) else None
