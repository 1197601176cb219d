"""The rules about what exists: nothing untracked, nothing removed too early, nothing replaced without a cause."""

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
    r'\bunknown\b|\bwhether it (was |has )?made\b|\bmay (still )?exist\b|\bmay have been (made|created)\b'
)
"""What an event says of something that nobody can know."""


class Tracked(Invariant):
    """No physical object without a row or an intent, and no row with two objects.

    What nobody can ask for may get lost sight of, when whoever makes it dies; then an event has to say so.
    """

    rule = 'I6'

    def __init__(self, world: World) -> None:
        super().__init__(world)
        self._left: set[str] = set()
        self._leftovers: set[str] = set()

    @override
    def went_back(self) -> None:
        """That something was to be left is forgotten."""
        self._left.clear()

    @override
    def committed(self, step: Transition) -> Iterator[str]:
        """A row that goes leaves nothing behind; a row that names an object names its own."""
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
                        yield f'the row {key} of {before.name} goes, but {thing.id} still exists'
            if after is not None and after.token is not None and after.physical_id in objects:
                thing = objects[after.physical_id]
                if thing.token != after.token and thing.id not in late and thing.stack_id != NOBODY:
                    yield f'the row {key} of {after.name} names {thing.id}, which was made for another'

    def _may_stay(self, step: Transition, row: Resource, thing: PhysicalObject) -> bool:
        """Whether an object stays when its row goes: on purpose, or because nobody can know of it, and says so."""
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
        """Whether a row that is still there names an object: it was made again under a token of which all was lost."""
        return any(row.physical_id == thing.id for row in step.tables.resources_of(thing.stack_id))

    @staticmethod
    def _is_left(step: Transition, row: Resource) -> bool:
        """Whether somebody has asked to leave what a row was for."""
        traversal = step.tables.traversal.get(step.tables.stack[row.stack_id].traversal_id or '')
        return traversal is not None and row.id in traversal.left_rows

    @staticmethod
    def _is_named(step: Transition, row: Resource, thing: PhysicalObject) -> bool:
        """Whether an event of this commit names an object that is left, so that its user can find it."""
        told = ' '.join(event.reason for event in step.events if event.resource_name == row.name)
        return thing.id in told or thing.token in told

    @staticmethod
    def _was_told(step: Transition, row: Resource) -> bool:
        """Whether an event says that something may exist of which nobody knows."""
        return any(
            event.resource_name == row.name and event.stack_id == row.stack_id and UNKNOWN.search(event.reason)
            for event in step.tables.event
        )

    @override
    def happened(self, action: Action, thing: PhysicalObject) -> Iterator[str]:
        """An object is made for a row that says so, and only one; what belongs to others is left alone."""
        if thing.token in self._left and action is Action.DELETE is not self.world.reality.late.get(thing.id):
            yield f'{thing.id} is removed, but somebody has asked to leave it'
        if thing.id in self.world.reality.late:
            return  # What is made late is found out about later.
        if thing.stack_id == NOBODY:
            yield f'{action} of {thing.id}, which belongs to others'
        if action is not Action.CREATE:
            return
        if self.world.reality.made[thing.token] > 1 and not self._is_made_again(thing):
            yield f'{thing.id} is the second object made for one row'
        rows = self.world.store.tables.resource.values()
        if not any(row.token == thing.token for row in rows):
            yield f'{thing.id} is made, but no row knows of it'

    def _is_made_again(self, thing: PhysicalObject) -> bool:
        """Whether an object takes the place of one that is gone, of whose removal the rows know nothing (any more).

        Nor does the row of a leftover, of which somebody has told who had lost the row that it was made for: that may
        have been removed meanwhile, and its object with it. Whoever removes a leftover of a type of which only another
        creation tells makes it once more, to learn its id.
        """
        reality = self.world.reality
        if any(each.token == thing.token for each in reality.objects.values() if each.id != thing.id):
            return False
        removed = any(each.thing.token == thing.token for each in reality.harmed.values())
        return bool(self.world.losses) or removed or (thing.kind in ENFORCED and self._is_of_leftover(thing))

    def _is_of_leftover(self, thing: PhysicalObject) -> bool:
        """Whether an object is made for a row that is being removed, and is there only because somebody told late."""
        rows = (row for row in self.world.store.tables.resource.values() if row.token == thing.token)
        return all(row.action is Action.DELETE and row.id in self._leftovers for row in rows)


class AfterReplacement(Invariant):
    """What is in service is never removed, and an old object goes only after its replacement is in service."""

    rule = 'I7'

    def __init__(self, world: World) -> None:
        super().__init__(world)
        self._never_up: set[str] = set()

    @override
    def committed(self, step: Transition) -> Iterator[str]:
        """Claims for a deletion."""
        self._learn(step)
        row = deleting(step)
        if row is None or row.id in self._never_up:
            return  # a leftover of something that is lost was never in service
        for node in step.tables.node.get(step.decision.verdict.claim.node.traversal_id, {}).values():
            if node.phase is not Phase.UPDATE or node.name != row.name:
                continue
            if node.resource_id == row.id:
                yield f'{row.name} ({row.id}) is the one that is wanted, and is to be removed'
            elif node.status is not NodeStatus.DONE and not self._makes_room(step, row, node):
                yield f'{row.name} ({row.id}) is to be removed before {node.resource_id}, which replaces it, is up'

    def _learn(self, step: Transition) -> None:
        """Rows that are added for what was made by somebody who had lost his own, and those of them that come up."""
        if not step.of_kind(effects.InsertTraversal) and not step.of_kind(effects.PointNode):
            self._never_up.update(row.id for each in step.of_kind(effects.InsertResources) for row in each.resources)
        for key, change in step.nodes.items() if self._never_up else ():
            node = change.after
            if node is not None and node.phase is Phase.UPDATE and node.status is NodeStatus.DONE and key:
                self._never_up.discard(node.resource_id or '')

    @staticmethod
    def _makes_room(step: Transition, row: Resource, node: Node) -> bool:
        """Whether what is wanted cannot be made while an object of the same name is there, or goes on being removed."""
        if node.definition is None or node.definition.type != row.type:
            return False
        before = step.resources[row.id].before if row.id in step.resources else None
        goes_on = before is not None and before.action is Action.DELETE
        return row.type == Exclusive.type_name or (row.type in ADDRESSED and goes_on)

    @override
    def happened(self, action: Action, thing: PhysicalObject) -> Iterator[str]:
        """An object goes only while somebody holds its row to delete it."""
        if action is not Action.DELETE or thing.id in self.world.reality.late:
            return
        rows = [row for row in self.world.store.tables.resource.values() if is_of(row, thing)]
        holders = [row for row in rows if (row.action is Action.DELETE or row.is_cleared) and row.owner is not None]
        if not holders:
            yield f'{thing.id} is removed, but nobody holds its row to delete it'
        for row in holders:
            policy = row.definition.deletion_policy if row.definition is not None else None
            if policy is DeletionPolicy.RETAIN:
                yield f'{thing.id} is removed, but was to be retained'
            kept = (row.id, thing.id) in self.world.reality.kept
            if policy is DeletionPolicy.SNAPSHOT and thing.kind == Keeper.type_name and not kept:
                yield f'{thing.id} is removed before what it was has been kept'


class DependentsFirst(Invariant):
    """What was built on something is cleaned up before it."""

    rule = 'I8'

    @override
    def committed(self, step: Transition) -> Iterator[str]:
        """Claims for a deletion."""
        row = deleting(step)
        if row is None:
            return
        for other in step.tables.resource.values():
            if (row.id, other.id) in self.world.reality.too_late:
                continue  # Nobody knew of it when this deletion could begin.
            if row.type == Exclusive.type_name and self._is_in_use(step, other):
                continue  # its type has said that it may be gone for a while
            if row.id in other.requires and other.id != row.id and other.stack_id == row.stack_id:
                yield f'{row.name} ({row.id}) is to be removed, but {other.name} ({other.id}) is built on it'

    @staticmethod
    def _is_in_use(step: Transition, row: Resource) -> bool:
        stack = step.tables.stack[row.stack_id]
        nodes = step.tables.nodes_of(stack.traversal_id or '').values()
        return any(node.phase is Phase.UPDATE and node.resource_id == row.id for node in nodes)

    @override
    def happened(self, action: Action, thing: PhysicalObject) -> Iterator[str]:
        """An object that another one refers to is there, and awake while that one is, whatever the rows say."""
        if action in (Action.SUSPEND, Action.RESUME):
            yield from self._rests(action, thing)
        if action is not Action.DELETE:
            return
        if self.world.losses:
            return  # what refers to it may be known to nobody any more
        for other in self.world.reality.objects.values():
            # What was left behind belongs to nobody: its user has said so, perhaps in the middle of a deletion.
            refers = other.stack_id == thing.stack_id != NOBODY and thing.id in other.properties.values()
            if thing.kind == Exclusive.type_name:
                continue  # its type has said that it may be gone for a while
            if refers and other.id not in self.world.reality.late and other.id not in self.world.reality.untold:
                yield f'{thing.id} is removed, but {other.id} refers to it'

    def _rests(self, action: Action, thing: PhysicalObject) -> Iterator[str]:
        stack = self.world.store.tables.stack.get(thing.stack_id)
        if stack is None or stack.action is not action:
            return  # an update that finds something asleep wakes it up as soon as it gets there
        for other in self.world.reality.objects.values():
            unseen = other.id in self.world.reality.late or other.id in self.world.reality.untold
            if other.stack_id != thing.stack_id or unseen or self._is_left_over(stack, other):
                continue
            if action is Action.SUSPEND and thing.id in other.properties.values() and not other.asleep:
                yield f'{thing.id} is suspended, but {other.id}, which refers to it, is not'
            if action is Action.RESUME and other.id in thing.properties.values() and other.asleep:
                yield f'{thing.id} is resumed, but {other.id}, to which it refers, is not'

    def _is_left_over(self, stack: Stack, thing: PhysicalObject) -> bool:
        """Whether an object waits for its removal only: the operation in progress is about another one of its name."""
        tables = self.world.store.tables
        nodes = tables.nodes_of(stack.traversal_id or '').values()
        chosen = {node.name: tables.resource.get(node.resource_id or '') for node in nodes if node.name is not None}
        row = next((row for row in tables.resource.values() if is_of(row, thing)), None)
        instead = chosen.get(row.name) if row is not None else None
        return row is not None and row is not instead and (instead is None or instead.action is not Action.INIT)


class WithCause(Invariant):
    """Nothing is replaced without a cause, and a row that is still of use is used."""

    rule = 'I9'

    @override
    def committed(self, step: Transition) -> Iterator[str]:
        """Replacements, and the rows chosen by a plan."""
        for effect in step.of_kind(effects.InsertTraversal):
            for node in effect.nodes:
                if node.phase is Phase.UPDATE:
                    yield from self._chosen(step, effect.traversal.template_id, node)
        points = step.of_kind(effects.PointNode)
        if points:
            yield from self._replaced(step, points[0])

    @override
    def happened(self, action: Action, thing: PhysicalObject) -> Iterator[str]:
        """Whoever changes an object says what it was before: what it is, or what its row says was last applied.

        Of what was applied, its service shows what it is now, unless it is not there any more.
        """
        if action is not Action.UPDATE or thing.before is None or thing.id in self.world.reality.late:
            return
        if thing.id in self.world.reality.ever_harmed:
            return  # it may have been anything in between
        for row in self.world.store.tables.resource.values():
            applied = dict(row.properties)
            seen = {name: thing.was.get(name, value) for name, value in applied.items()}
            if is_of(row, thing) and row.owner is not None and thing.before not in (applied, seen):
                yield f'{thing.id} is changed as if it had been {thing.before}, but it was made from {row.properties}'

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
            yield f'the plan chose {row.id} for {node.name}, though {fitting[0]} is just what is wanted'
        elif rows and row.action is Action.INIT and step.resources.get(row.id) is not None:
            yield f'the plan made a new row for {node.name}, though there is {rows[0].id}'

    def _to_be_found(self, row: Resource) -> list[PhysicalObject]:
        """The object of a row that does not know it, where whoever asks for it is told."""
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
            return  # the type has refused the update, and asked for this
        inputs = {nodes[number].name or '': output for number in node.requires if (output := nodes[number].output)}
        wanted = template.resolve(definition.properties, inputs)
        assert isinstance(wanted, dict)
        if not any('!' in name and old.properties.get(name) != wanted.get(name) for name in {*old.properties, *wanted}):
            yield f'{old.name} ({old.id}) is replaced without a cause'


def left_by(world: World, row: Resource) -> list[PhysicalObject]:
    """The objects of a row that is gone; not those that never were its own."""
    if row.definition is not None and row.definition.external_id is not None:
        return []
    things = world.reality.objects.values()
    return [thing for thing in things if thing.stack_id == row.stack_id and is_of(row, thing)]


def deleting(step: Transition) -> Resource | None:
    """The row that was claimed for a deletion, if that is what was committed."""
    verdict = step.decision.verdict
    if not isinstance(verdict, StepDecision) or verdict.claim is None or verdict.claim.action is not Action.DELETE:
        return None
    return verdict.claim.resource if verdict.step in (Step.DELETE, Step.RESUME) else None
