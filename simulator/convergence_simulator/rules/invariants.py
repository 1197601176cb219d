"""Rules that hold after every commit and after every change of an object, one class for each rule.

The rules do not know how the engine decides. They compare the rows before and after with the plan and with the objects
that exist. So they notice when a guard of the engine is missing. A rule costs as much as a commit touches.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import fields
from typing import TYPE_CHECKING

from typing_extensions import override

from convergence.core import effects
from convergence.core.claim import Step, StepDecision
from convergence.core.model import PERFORMED, UNDER_WAY, Action, NodeStatus, Phase, Status, TraversalStatus
from convergence.core.rows import Node
from convergence_simulator.cloud.reality import PhysicalObject
from convergence_simulator.cloud.sorts import WITHOUT_ID
from convergence_simulator.rules.transition import Transition
from convergence_simulator.scenarios.language import PATIENCE_S
from convergence_simulator.world.faults import SWEEP_S

if TYPE_CHECKING:
    from convergence_simulator.world.world import World

FromOutside = effects.CountEvent | effects.TellParent | effects.ClearHook | effects.RevokeAddresses
"""Effects by which third parties write to a row that another owner may hold."""
CANARY = 'canary'
"""A property value that contains this text is a secret."""


class Invariant:
    """A rule. Its methods yield a text for each violation.

    :ivar rule: name of the rule.
    """

    rule = ''

    def __init__(self, world: World) -> None:
        self.world = world

    def committed(self, step: Transition) -> Iterator[str]:
        """Test a commit."""
        return iter(())

    def happened(self, action: Action, thing: PhysicalObject) -> Iterator[str]:
        """Test an object that was created, changed or removed."""
        return iter(())

    def went_back(self) -> None:
        """Forget the facts of lost commits."""


class OneOwner(Invariant):
    """A row has one owner at a time, and each owner has its own fence; lost commits change nothing of this."""

    rule = 'I1'

    def __init__(self, world: World) -> None:
        super().__init__(world)
        self._owners: dict[tuple[str, int], str] = {}
        self._claims: set[tuple[str, int, str]] = set()

    @override
    def went_back(self) -> None:
        """Allow fences that were used before, for another owner only."""
        self._owners.clear()

    @override
    def committed(self, step: Transition) -> Iterator[str]:
        """Require that a row is free between two owners."""
        verdict = step.decision.verdict
        if isinstance(verdict, StepDecision) and verdict.claim is not None:
            row = verdict.claim.resource
            if (claim := (row.id, row.fence, row.owner or '')) in self._claims:
                yield f'{row.owner} claims {row.name} ({row.id}) under fence {row.fence} for the second time'
            self._claims.add(claim)
        for key, change in step.resources.items():
            before, after = change.before, change.after
            if after is None or after.owner is None:
                continue
            if before is not None and before.owner not in (None, after.owner):
                yield f'{after.name} ({key}) goes from {before.owner} to {after.owner} without a release'
            owner = self._owners.setdefault((key, after.fence), after.owner)
            if owner != after.owner:
                yield f'{after.name} ({key}) has two owners under fence {after.fence}: {owner} and {after.owner}'
            if before is not None and before.owner is None and after.fence <= before.fence:
                yield f'{after.name} ({key}) is claimed without a new fence'


class FencedWrites(Invariant):
    """A write with an owner and a fence succeeds only while the row has this owner and fence."""

    rule = 'I2'

    @override
    def committed(self, step: Transition) -> Iterator[str]:
        """Compare the first write of a commit to a row with the row before it."""
        seen: set[str] = set()
        for effect in step.effects:
            if isinstance(effect, (effects.UpdateResource, effects.DeleteResource)):
                key = effect.resource_id
                before = step.resources[key].before
                if key not in seen and (before is None or (before.owner, before.fence) != (effect.owner, effect.fence)):
                    held = f'{before.owner} under {before.fence}' if before else 'no owner, for the row is gone'
                    yield f'{key} is written by {effect.owner} under fence {effect.fence}, but held by {held}'
                seen.add(key)
            elif isinstance(effect, effects.InsertResources):
                seen.update(row.id for row in effect.resources)
            elif isinstance(effect, effects.UpdateResources):
                yield from self._in_passing(step, effect)
            elif isinstance(effect, FromOutside) and len(step.resources) == 1:
                yield from self._from_outside(step, effect)

    @staticmethod
    def _in_passing(step: Transition, effect: effects.UpdateResources) -> Iterator[str]:
        third = {'owner', 'fence', 'action', 'status'} & set(effect.changes)
        if third:
            yield f'{", ".join(sorted(third))} of {effect.resource_ids} are written by a process that owns none'

    @staticmethod
    def _from_outside(step: Transition, effect: FromOutside) -> Iterator[str]:
        """Require that a third party writes only its own columns and none of the owner's."""
        if any(isinstance(each, (effects.UpdateResource, effects.UpdateResources)) for each in step.effects):
            return
        change = step.resources[effect.resource_id]
        if change.before is None or change.after is None:
            return
        own = {'event_count', 'cleared', 'cleared_traversal_id', 'revocation'}
        others = [
            each.name
            for each in fields(change.after)
            if each.name not in own and getattr(change.before, each.name) != getattr(change.after, each.name)
        ]
        if others:
            yield f'{", ".join(others)} of {effect.resource_id} are written by a process that may only notify'


class InOrder(Invariant):
    """A node runs only after all its requirements are done in this traversal. A done node has a finished row."""

    rule = 'I3'

    @override
    def committed(self, step: Transition) -> Iterator[str]:
        """Check nodes that become ready, are claimed or are finished."""
        for (traversal_id, number), change in step.nodes.items():
            node = change.after
            if node is None or node.status is NodeStatus.WAITING:
                continue
            if change.before is None or change.before.status is not node.status:
                yield from self._required(step, traversal_id, number, node)
            if change.before is not None and change.before.status is not node.status is NodeStatus.DONE:
                yield from self._really(step, node)

    def _required(self, step: Transition, traversal_id: str, number: int, node: Node) -> Iterator[str]:
        nodes = step.tables.node.get(traversal_id, {})
        missing = [
            nodes[other].name or other
            for other in self._predecessors(step, traversal_id, node)
            if other in nodes and nodes[other].status is not NodeStatus.DONE
        ]
        if missing:
            yield f'{node.phase} {node.name or number} is {node.status} before {", ".join(map(str, missing))} is done'

    def _predecessors(self, step: Transition, traversal_id: str, node: Node) -> set[int]:
        """Return the planned predecessors, and those that the definition of an update node requires."""
        planned = self.world.checker.planned.get((traversal_id, node.number), frozenset())
        if node.definition is None or not node.definition.requires:
            return set(planned)
        wanted = set(node.definition.requires)
        return {
            *planned,
            *(
                other.number
                for other in step.tables.node[traversal_id].values()
                if other.phase is Phase.UPDATE and other.name in wanted
            ),
        }

    def _really(self, step: Transition, node: Node) -> Iterator[str]:
        row = step.tables.resource.get(node.resource_id or '')
        action = step.tables.traversal[node.traversal_id].action
        if action in PERFORMED:
            if row is not None and (row.owner is not None or row.status is Status.IN_PROGRESS):
                yield f'{action} of {node.name} is done, but its row is {row.action}_{row.status} held by {row.owner}'
            return
        if node.phase is Phase.UPDATE:
            nameless = row is not None and row.physical_id is None and row.type not in WITHOUT_ID
            if row is None or row.owner is not None or row.status is not Status.COMPLETE or nameless:
                state = f'{row.action}_{row.status} held by {row.owner}' if row is not None else 'gone'
                yield f'UPDATE {node.name} is done, but its row is {state}'
            elif row.physical_id in self.world.reality.told_gone - self.world.reality.harmed.keys():
                # Perhaps only an observer, which decides nothing, knows that an outsider has removed the object.
                yield f'UPDATE {node.name} is done, though it is known that {row.physical_id} does not exist any more'
            elif row.handover is not None:
                yield f'UPDATE {node.name} is done, but its row is {row.handover}'
        elif node.phase is Phase.CLEANUP and row is not None:
            chosen = any(
                other.phase is Phase.UPDATE and other.resource_id == row.id
                for other in step.tables.node[node.traversal_id].values()
            )
            if not chosen:
                yield f'CLEANUP {node.name} is done, but {row.id} still exists, though the goal does not contain it'


class CountedOnce(Invariant):
    """A predecessor counts once: a node waits for as many predecessors as are not done."""

    rule = 'I4'

    @override
    def committed(self, step: Transition) -> Iterator[str]:
        """Check nodes whose count has changed, and nodes that are finished twice."""
        for (traversal_id, number), change in step.nodes.items():
            node = change.after
            if node is None or node.status in (NodeStatus.DONE, NodeStatus.FAILED):
                continue
            nodes = step.tables.node[traversal_id]
            planned = self.world.checker.planned.get((traversal_id, number), frozenset())
            missing = sum(nodes[other].status is not NodeStatus.DONE for other in planned)
            if node.waiting != missing:
                yield f'node {number} ({node.phase} {node.name}) waits for {node.waiting}, but {missing} are not done'
        for effect in step.of_kind(effects.FinishNode):
            before = step.nodes[effect.traversal_id, effect.number].before
            if before is not None and before.status is not NodeStatus.READY:
                yield f'node {effect.number} is finished though it was {before.status}'


class OneTraversal(Invariant):
    """A stack has one current traversal. Other traversals change nothing of the stack and store no events of it."""

    rule = 'I5'

    def __init__(self, world: World) -> None:
        super().__init__(world)
        self._claims: dict[tuple[str, int], str] = {}

    @override
    def committed(self, step: Transition) -> Iterator[str]:
        """Check claims, finished nodes, failures, states and events of stacks."""
        yield from self._nodes(step)
        yield from self._failures(step)
        for key, change in step.stacks.items():
            before, after = change.before, change.after
            if before is None or after is None or before.traversal_id != after.traversal_id:
                continue
            if (before.action, before.status) != (after.action, after.status) and before.status is not (
                Status.IN_PROGRESS
            ):
                yield f'stack {key} was {before.action}_{before.status} already and becomes {after.status}'
        for event in step.events:
            traversal = step.current(event.stack_id)
            if event.resource_name is None and (traversal is None or traversal.action is not event.action):
                yield f'the event {event.action}_{event.status} of {event.stack_id} is not of its current operation'

    def _nodes(self, step: Transition) -> Iterator[str]:
        # A cleanup without a row holds no lock that a plan would wait for, and it changes nothing. A cleanup that
        # leaves its row unchanged changes nothing either; if servers lag, its lock delays no plan.
        locks_hold = not self.world.trouble.lags
        touched = {
            effect.traversal_id
            for effect in step.of_kind(effects.FinishNode)
            if step.resources or step.stacks or (locks_hold and self._has_row(step, effect))
        }
        verdict = step.decision.verdict
        if isinstance(verdict, StepDecision) and verdict.claim is not None:
            claim = verdict.claim
            touched.add(claim.node.traversal_id)
            self._claims[claim.resource.id, claim.resource.fence] = claim.node.traversal_id
        for traversal_id in touched:
            traversal = step.tables.traversal[traversal_id]
            if step.tables.stack[traversal.stack_id].traversal_id != traversal_id:
                yield f'a node of traversal {traversal_id} is in progress, but the traversal is not current'

    @staticmethod
    def _has_row(step: Transition, effect: effects.FinishNode) -> bool:
        node = step.nodes[effect.traversal_id, effect.number].after
        return node is not None and node.resource_id in step.tables.resource

    def _failures(self, step: Transition) -> Iterator[str]:
        for key, change in step.traversals.items():
            before, after = change.before, change.after
            if before is None or after is None or before.status is after.status:
                continue
            if before.status not in UNDER_WAY:
                yield f'traversal {key} was {before.status} already and becomes {after.status}'
            if after.status is not TraversalStatus.FAILED or after.failed_phase is None:
                continue
            for effect in step.of_kind(effects.UpdateResource):
                claimed_for = self._claims.get((effect.resource_id, effect.fence), key)
                if effect.owner is not None and claimed_for != key:
                    yield f'traversal {key} fails because of work for {claimed_for}'


class GoesOn(Invariant):
    """A stack in progress has a node that is ready, claimed or waits for a retry, or a failure to settle."""

    rule = 'I10'

    @override
    def committed(self, step: Transition) -> Iterator[str]:
        """Check stacks and traversals whose nodes have changed."""
        for traversal_id in {traversal_id for traversal_id, _ in step.nodes}:
            traversal = step.tables.traversal[traversal_id]
            stack = step.tables.stack[traversal.stack_id]
            if stack.traversal_id != traversal_id or stack.status is not Status.IN_PROGRESS:
                continue
            nodes = step.tables.node.get(traversal_id, {}).values()
            if traversal.status is TraversalStatus.RUNNING and not any(
                node.status is NodeStatus.READY for node in nodes
            ):
                yield f'{stack.name} is {stack.action}_IN_PROGRESS, but no node can run'


class NothingBegins(Invariant):
    """A cancelled traversal finishes its running nodes and starts no others, in nested stacks as well."""

    rule = 'cancelling'

    @override
    def committed(self, step: Transition) -> Iterator[str]:
        """Check claimed rows and finished nodes."""
        verdict = step.decision.verdict
        claim = verdict.claim if isinstance(verdict, StepDecision) else None
        if claim is None or claim.step in (Step.RESUME, Step.CANCEL):
            return
        traversal = step.tables.traversal[claim.traversal.id]
        if traversal.status is TraversalStatus.CANCELLING:
            yield f'{claim.step} of {claim.resource.name} begins, though {traversal.action} is being cancelled'
        # Nested stacks are notified a moment later, at the latest by the second sweep.
        stack = step.tables.stack[claim.stack.id]
        while traversal.for_parent and not self.world.lost and stack.parent_id in step.tables.stack:
            stack = step.tables.stack[stack.parent_id]
            around = step.tables.traversal[stack.traversal_id or '']
            left_s = around.deadline - self.world.kernel.now
            if around.status is TraversalStatus.CANCELLING and left_s < PATIENCE_S - 2 * SWEEP_S:
                yield f'{claim.step} of {claim.resource.name} begins, though {stack.name} is being cancelled'
            traversal = around


class Discreet(Invariant):
    """No event, reason or output of an operation contains a secret."""

    rule = 'I11'

    @override
    def committed(self, step: Transition) -> Iterator[str]:
        """Check each text that a commit stores for users."""
        texts = [event.reason for event in step.events]
        texts += [change.after.status_reason for change in step.stacks.values() if change.after]
        texts += [change.after.status_reason for change in step.resources.values() if change.after]
        texts += [change.after.reason for change in step.traversals.values() if change.after]
        for text in texts:
            if CANARY in text:
                yield f'a secret can be read: {text}'
