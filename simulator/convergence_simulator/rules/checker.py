"""Tests the rules at every event of a run, and keeps the first violation."""

from __future__ import annotations

import weakref
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

from convergence.core import effects
from convergence.core.claim import StepDecision
from convergence.core.effects import Decision
from convergence.core.model import PERFORMED, UNDER_WAY, Action, NodeStatus, Phase, Status, TraversalStatus
from convergence.core.rows import Node, Resource, Stack, Traversal
from convergence_simulator.cloud.reality import NOBODY, PhysicalObject, is_of
from convergence_simulator.cloud.trees import child_of
from convergence_simulator.rules.drift import DRIFT_RULES
from convergence_simulator.rules.groups import InGroups
from convergence_simulator.rules.invariants import (
    CountedOnce,
    Discreet,
    FencedWrites,
    GoesOn,
    InOrder,
    Invariant,
    NothingBegins,
    OneOwner,
    OneTraversal,
)
from convergence_simulator.rules.objects import AfterReplacement, DependentsFirst, Tracked, WithCause
from convergence_simulator.rules.transition import Memory, NodeKey, Transition
from convergence_simulator.rules.trees import InTrees, OneTenant
from convergence_simulator.scenarios.templates import Template
from convergence_simulator.scenarios.verification import Violation, verify_part
from convergence_simulator.world.kernel import Fiber, SimulatedProcess
from convergence_simulator.world.passing import SWEEP

if TYPE_CHECKING:
    from convergence_simulator.world.world import World


INVARIANTS = (
    OneOwner,
    FencedWrites,
    InOrder,
    CountedOnce,
    OneTraversal,
    Tracked,
    AfterReplacement,
    DependentsFirst,
    WithCause,
    GoesOn,
    NothingBegins,
    Discreet,
    OneTenant,
    InTrees,
    InGroups,
    *DRIFT_RULES,
)
"""Rules I1 to I14, and D2 to D5."""


class InvariantChecker:
    """Applies the rules, and records facts that only the observer of a whole run knows.

    :ivar broken: the first violation; kept until the turn ends, because code of the engine must not see the exception.
    :ivar planned: for each node, the numbers of the nodes before it in the plan.
    :ivar templates: the template of each template row.
    :ivar given: for each stack, the last traversal that gave it a goal, as planned.
    :ivar known_to: for each object, the processes that created it or acted on it.
    :ivar changed: for each stack, the traversal in `given`, or a later repair of its objects.
    :ivar repairs: ids of the traversals that engines began without a user's request, to repair drift.
    :ivar good: for each stack, the newest template whose traversal completed, as observed here and not read from the
        engine; `good_before`: the one before it.
    """

    def __init__(self, world: World) -> None:
        self.world = world
        self.broken: Violation | None = None
        self.planned: dict[NodeKey, frozenset[int]] = {}
        self.templates: dict[str | None, Template] = {None: Template()}
        self.good: dict[str, str | None] = {}
        self.good_before: dict[str, str | None] = {}
        self.given: dict[str, Traversal] = {}
        self.known_to: dict[str, set[SimulatedProcess]] = {}
        self.changed: dict[str, Traversal] = {}
        self.repairs: set[str] = set()
        self._memory = Memory()
        self._claims: weakref.WeakKeyDictionary[Fiber, Resource] = weakref.WeakKeyDictionary()
        self._invariants = tuple(kind(world) for kind in INVARIANTS)
        self._on_commit = [each for each in self._invariants if type(each).committed is not Invariant.committed]
        self._on_change = [each for each in self._invariants if type(each).happened is not Invariant.happened]

    def committed(self, world: World, decision: Decision[Any]) -> None:
        """Test a commit."""
        step = self._memory.take(world.store.tables, decision)
        self._learn(step)
        verdict, fiber = decision.verdict, world.kernel.current
        if isinstance(verdict, StepDecision) and verdict.claim is not None and fiber is not None:
            self._claims[fiber] = verdict.claim.resource
        for invariant in self._on_commit:
            for text in invariant.committed(step):
                self.note(invariant.rule, text)

    def happened(self, action: Action, thing: PhysicalObject) -> None:
        """Test a change of an object."""
        fiber = self.world.kernel.current
        if fiber is not None:
            self.known_to.setdefault(thing.id, set()).add(fiber.process)
        if self._is_late():
            self.world.reality.late[thing.id] = action
            if self.world.losses and thing.stack_id not in self.world.store.tables.stack:
                thing.stack_id = NOBODY  # the creation of its stack is lost; a log line of level ERROR names the object
            if not self.world.trouble.excuses and not _is_left(self.world, self._claims.get(fiber) if fiber else None):
                self.note('I1', f'{action} of {thing.id} is in progress, but the row was taken away from a live worker')
        elif action is Action.UPDATE:
            self.world.reality.late.pop(thing.id, None)
        for invariant in self._on_change:
            for text in invariant.happened(action, thing):
                self.note(invariant.rule, text)

    def _is_late(self) -> bool:
        """Return True if the running process has lost the row for which it acts."""
        fiber = self.world.kernel.current
        if fiber is None or fiber not in self._claims:
            return False
        held = self._claims[fiber]
        row = self.world.store.tables.resource.get(held.id)
        return row is None or row.owner is None or (row.owner, row.fence) != (held.owner, held.fence)

    def went_back(self) -> None:
        """Forget the facts of lost commits: from now on the rows are the truth."""
        tables = self.world.store.tables
        self._memory = Memory.of(tables)
        for nodes in tables.node.values():
            self._plan(nodes.values())
        for traversal in tables.traversal.values():
            for number in _late(traversal, tables.node.get(traversal.id, {})):
                self.planned[traversal.id, number] |= {traversal.in_service_number}
        self.good = {stack.id: stack.last_good_template_id for stack in tables.stack.values()}
        goals = [each for each in tables.traversal.values() if each.action not in PERFORMED]
        self.given = {each.stack_id: each for each in sorted(goals, key=lambda each: (each.started_at, each.id))}
        self.changed = dict(self.given)
        for invariant in self._invariants:
            invariant.went_back()

    def note(self, rule: str, text: str) -> None:
        """Record a violation; only the first one counts."""
        if self.broken is None:
            self.broken = Violation(rule, text)

    def raise_any(self) -> None:
        """Raise the first violation.

        :raises Violation: there is one.
        """
        if self.broken is not None:
            raise self.broken

    # --- facts about the run ----------------------------------------------------------------------------------

    def _learn(self, step: Transition) -> None:
        adopts = bool(step.of_kind(effects.InsertStack))
        for row in step.templates:
            document = row.content['template']
            environment = row.content['environment']
            assert isinstance(document, dict)
            assert isinstance(environment, dict)
            self.templates[row.id] = Template.from_document(document, environment)
        for effect in step.effects:
            if isinstance(effect, effects.InsertTraversal):
                self._plan(effect.nodes)
                self._check_target(effect.traversal)
                if effect.traversal.action not in PERFORMED:
                    _learn_goal(self, effect.traversal)
            elif isinstance(effect, effects.AppendCleanup):
                self._append(step, effect)
            elif isinstance(effect, effects.FinishNode):
                self._in_service(step, effect)
            elif isinstance(effect, effects.UpdateResource) and effect.changes.get('physical_id'):
                _take_over(self.world, step, effect.resource_id)
            elif isinstance(effect, effects.InsertResources) and not adopts:
                # Rows of objects that were reported late; the objects may exist or not.
                made = [each.physical_id for each in effect.resources if each.physical_id is not None]
                self.world.reality.late.update(dict.fromkeys(made, Action.CREATE))
                for each in effect.resources if self.world.losses else ():
                    _take_up_again(self.world, each)

    def _append(self, step: Transition, effect: effects.AppendCleanup) -> None:
        key, traversal_id = effect.node.resource_id or '', effect.node.traversal_id
        row = step.tables.resource[key]
        for node in step.tables.node[traversal_id].values():
            if node.phase is not Phase.CLEANUP or node.resource_id not in row.requires:
                continue
            if node.status is NodeStatus.WAITING:
                follower = (traversal_id, node.number)
                self.planned[follower] = self.planned[follower] | {effect.node.number}
            else:
                self.world.reality.too_late.add((node.resource_id, key))
        in_service = step.tables.traversal[traversal_id].in_service_number
        held_up = {effect.before}
        if effect.holds_up is not None and step.tables.node[traversal_id][in_service].status is NodeStatus.WAITING:
            held_up.add(effect.holds_up)
        for number in held_up:
            self.planned[traversal_id, number] = self.planned[traversal_id, number] | {effect.node.number}
        waits = effect.node.status is NodeStatus.WAITING
        self.planned[traversal_id, effect.node.number] = frozenset({in_service}) if waits else frozenset()

    def _plan(self, nodes: Iterable[Node]) -> None:
        before: dict[NodeKey, set[int]] = {}
        for node in nodes:
            before.setdefault((node.traversal_id, node.number), set())
            for number in node.required_by:
                before.setdefault((node.traversal_id, number), set()).add(node.number)
        self.planned.update((key, frozenset(numbers)) for key, numbers in before.items())

    def _check_target(self, traversal: Traversal) -> None:
        good = self.good.get(traversal.stack_id)
        given = self.given.get(traversal.stack_id)
        # A rollback from a completed goal returns to the completed goal before it.
        is_up = given is not None and given.template_id == good
        earlier = self.good_before.get(traversal.stack_id) if is_up else good
        if traversal.action is Action.ROLLBACK and traversal.template_id not in (good, earlier):
            self.note(
                'rollback',
                f'the rollback goes to template {traversal.template_id}, but the last completed goal was {good}',
            )

    def _in_service(self, step: Transition, effect: effects.FinishNode) -> None:
        node = step.tables.node[effect.traversal_id][effect.number]
        traversal = step.tables.traversal[effect.traversal_id]
        if node.phase is not Phase.IN_SERVICE or traversal.template_id is None or traversal.action in PERFORMED:
            return
        before = self.good.get(traversal.stack_id)
        if before != traversal.template_id:
            self.good_before[traversal.stack_id] = before
        self.good[traversal.stack_id] = traversal.template_id
        reality = self.world.reality
        if reality.vanished or reality.late or reality.ever_harmed:
            return
        problem = verify_part(reality, self.templates[traversal.template_id], traversal.stack_id)
        if problem is not None:
            self.note('in service', f'{traversal.action} {traversal.id}: {problem}')

    # --- moments of rest --------------------------------------------------------------------------------------

    def at_rest(self) -> None:
        """Test that a process will do all remaining work. Called when nothing can happen until time passes.

        Not tested after a loss or a crash, or when a worker had no free thread: then the sweeper does the work.
        """
        world = self.world
        blocked = [fiber for fiber in world.kernel.fibers if fiber.blocked]
        if blocked and not any(fiber.process.frozen_until > world.kernel.now for fiber in world.kernel.fibers):
            names = ', '.join(f'{fiber.process.name} {fiber.name}' for fiber in blocked)
            self.note('deadlock', f'{names} wait for locks that no process will release')
        if world.lost:
            return
        self._all_are_told()
        timers = {(message.traversal_id, message.number) for _, message in world.timers}
        timers.update(*(groups.checks() for groups in world.groups.values()))
        for stack in world.store.tables.stack.values():
            traversal = world.store.tables.traversal.get(stack.traversal_id or '')
            if stack.status is not Status.IN_PROGRESS or traversal is None:
                continue
            cancelling = traversal.status is TraversalStatus.CANCELLING and _has_busy_rows(world, stack)
            if traversal.status is not TraversalStatus.RUNNING and not cancelling:
                self.note(
                    'wake-up', f'{traversal.action} {traversal.id} is {traversal.status}, and no process settles it'
                )
                continue
            nodes = world.store.tables.node.get(traversal.id, {})
            attended = {number for number in nodes if (traversal.id, number) in timers or self._is_held(nodes[number])}
            told_later = _behind(attended, nodes)
            for number, node in nodes.items():
                row = world.store.tables.resource.get(node.resource_id or '')
                if row is not None and row.waits_at(traversal.id):
                    continue  # it waits for a user
                if cancelling and (row is None or row.status is not Status.IN_PROGRESS):
                    continue  # it has nothing to do
                if node.status is NodeStatus.READY and number not in attended | told_later:
                    name = node.name or ''
                    self.note(
                        'wake-up',
                        f'{node.phase} {name} ({traversal.id}, {number}) is ready, and no worker was notified',
                    )

    def _all_are_told(self) -> None:
        """Test that cancels, deletes and deadlines have reached all busy workers."""
        tables = self.world.store.tables
        for process, groups in self.world.groups.items():
            if not process.alive or process.frozen_until > self.world.kernel.now:
                continue
            for traversal in filter(None, map(tables.traversal.get, groups.unasked())):
                current = tables.traversal.get(tables.stack[traversal.stack_id].traversal_id or '')
                over = traversal.status not in (*UNDER_WAY, TraversalStatus.COMPLETE)
                overruled = over and current is not None and current is not traversal and current.cancels
                timed_out = traversal.status is TraversalStatus.FAILED and traversal.failed_phase is None
                if overruled or timed_out or traversal.status is TraversalStatus.CANCELLED:
                    self.note('cancel', f'{process.name} continues {traversal.action}, and got no cancel message')

    def _is_held(self, node: Node) -> bool:
        tables = self.world.store.tables
        row = tables.resource.get(node.resource_id or '')
        if row is not None and row.owner is None and row.handover is not None:
            # A worker on another row of the name notifies it when the name is free.
            named = [each for each in tables.resources_of(row.stack_id) if each.name == row.name]
            row = next((each for each in named if each.owner is not None), row)
        if row is None or row.owner is None:
            # Its stack reports to it at rest; this check handles that stack separately.
            child = child_of(tables, row) if row is not None and row.progress is not None else None
            return child is not None and child.status is Status.IN_PROGRESS
        holder = next((worker for worker in self.world.workers if worker.service.id == row.owner), None)
        return holder is not None and any(fiber.process is holder.process for fiber in self.world.kernel.fibers)


def _learn_goal(checker: InvariantChecker, traversal: Traversal) -> None:
    """Record a planned traversal that has a goal: requested by a user, or begun by an engine as a repair."""
    fiber = checker.world.kernel.current
    checker.changed[traversal.stack_id] = traversal
    if traversal.action is Action.UPDATE and fiber is not None and fiber.name == SWEEP:
        checker.repairs.add(traversal.id)
    else:
        checker.given[traversal.stack_id] = traversal


def _has_busy_rows(world: World, stack: Stack) -> bool:
    return any(row.status is Status.IN_PROGRESS for row in world.store.tables.resources_of(stack.id))


def _take_over(world: World, step: Transition, resource_id: str) -> None:
    """Assign an adopted object to its stack."""
    row = step.tables.resource[resource_id]
    thing = world.reality.objects.get(row.physical_id or '')
    borrowed = row.definition is not None and row.definition.external_id is not None
    if thing is not None and thing.stack_id == NOBODY and not borrowed:
        thing.stack_id = row.stack_id


def _late(traversal: Traversal, nodes: Mapping[int, Node]) -> list[int]:
    """Return the late nodes that wait for the end of the update half. Only their traversal knows that they do."""
    late = [nodes[number] for number in traversal.late_numbers if number in nodes]
    return [node.number for node in late if node.status is NodeStatus.WAITING]


def _take_up_again(world: World, row: Resource) -> None:
    """Assign an object to its stack again, because a row was added for an object that the stack had released."""
    for thing in world.reality.objects.values():
        if thing.stack_id == NOBODY and is_of(row, thing):
            thing.stack_id = row.stack_id


def _is_left(world: World, held: Resource | None) -> bool:
    """Return True if a user requested to keep the object of a row; then its worker loses the row although it lives."""
    return held is not None and any(held.id in each.left_rows for each in world.store.tables.traversal.values())


def _behind(attended: Iterable[int], nodes: Mapping[int, Node]) -> set[int]:
    """Return the nodes behind these in the backlog: each node notifies the next one in its chain."""
    behind: set[int] = set()
    for number in attended:
        follower = nodes[number].next_in_backlog
        while follower is not None and follower not in behind:
            behind.add(follower)
            follower = nodes[follower].next_in_backlog
    return behind
