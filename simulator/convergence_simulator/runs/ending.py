"""Comparison at the end of a run: each stack has reached its goal, and no other object exists."""

from __future__ import annotations

from convergence.core.model import PERFORMED, Action, Status, TraversalStatus
from convergence.core.orphans import LATE
from convergence.core.rows import Stack
from convergence_simulator.cloud.groups import WITH_MEMBERS
from convergence_simulator.cloud.reality import NOBODY, is_of
from convergence_simulator.cloud.sorts import ADDRESSED
from convergence_simulator.cloud.trees import NESTING, POLICY, children
from convergence_simulator.memory.look import Tables
from convergence_simulator.runs.user import PLENTY, Expectation, User
from convergence_simulator.scenarios.language import QueuedCall
from convergence_simulator.scenarios.templates import RsrcDef, Template
from convergence_simulator.scenarios.verification import Violation, verify
from convergence_simulator.world.meddling import harmed_rows
from convergence_simulator.world.place import WatchedPlace


class FinalComparison:
    """Compares the goals of the user with the rows and the objects."""

    def __init__(self, world: WatchedPlace, user: User) -> None:
        self.world = world
        self.user = user
        self._again = False
        self._left = world.reality

    def failed(self) -> list[QueuedCall]:
        """Return the calls with which the user repeats failed goals, after all faults have stopped."""
        calls, self._again = [], True
        for name, expected in sorted(self.user.stacks.items()):
            stack = self.world.store.tables.stack.get(self.user.ids.get(name, ''))
            if stack is None:
                if self.world.losses and expected.goal is not None:
                    calls.append(QueuedCall('create_stack', (name, expected.goal)))
                continue
            is_in_doubt = bool(self.world.reality.late or self.world.losses) or self._was_refused_late(stack)
            tables = self.world.store.tables
            lacks = any(has_failed_to_scale(tables, nested) for nested in children(tables, stack.id).values())
            if not (stack.status is Status.FAILED or is_in_doubt or lacks or self._is_behind(stack)):
                continue
            # The processes that knew of a lost commit may have died, and not every change by an outsider is repaired:
            # the user requests a check of everything.
            doubts = bool(self.world.losses and self.world.crashes) or bool(self.world.reality.harmed)
            if doubts and stack.action is not Action.DELETE:
                calls += [QueuedCall('check_stack', (name,)), QueuedCall('settle')]
            if stack.action is Action.DELETE or expected.goal is None:
                calls.append(QueuedCall('delete_stack', (name,)))
            elif stack.action is Action.SUSPEND:
                calls += [
                    QueuedCall('resume_stack', (name,)),
                    QueuedCall('settle'),
                    QueuedCall('update_stack', (name, expected.goal, doubts)),
                ]
            else:
                calls.append(QueuedCall('update_stack', (name, expected.goal, doubts)))
        return calls

    def check(self) -> None:
        """Compare every stack with its goal, when everything is at rest.

        An object that a process created too late, for a row that it no longer held, is deleted by the next operation.

        :raises Violation: a stack differs.
        """
        self._set_aside_untracked()
        # Changes by an outsider that no engine has to repair are ignored.
        self._left = self.world.reality.as_left([key for _, key in harmed_rows(self.world)])
        newest = {self.user.ids[name]: name for name in self.user.stacks if name in self.user.ids}
        for stack in self.world.store.tables.stack.values():
            name = newest.get(stack.id)
            if name is None and stack.root_id is not None:
                self._check_nested(stack)
                continue
            if stack.id in self.world.left_stacks:
                self._check_tracked(stack)
                continue
            if name is None and stack.deleted_at is None:
                raise Violation('end state', f'stack {stack.name} exists, but no user created it')
            is_in_doubt = bool(self.world.reality.late or self.world.losses) or self._was_refused_late(stack)
            if is_in_doubt and not self._again:
                self._check_tracked(stack)
            else:
                self._check_stack(stack, self.user.stacks[name] if name is not None else Expectation(None))

    def _was_refused_late(self, stack: Stack) -> bool:
        """Return True if a process found its address occupied by another object and may not know the reason."""
        rows = self.world.store.tables.resources_of(stack.id)
        return any(row.type in ADDRESSED and row.status_reason == LATE for row in rows)

    def _set_aside_untracked(self) -> None:
        """Remove objects that no live process can know from the comparison.

        They were created late for a stack that is gone, or the processes that knew them died before they reported them.
        """
        world = self.world
        known = {row.physical_id for row in world.store.tables.resource.values()}
        for key, action in world.reality.late.items():
            thing = world.reality.objects.get(key)
            if thing is None or key in known or thing.stack_id == NOBODY:
                continue
            if action is not Action.CREATE and not world.losses:
                continue
            stack = world.store.tables.stack.get(thing.stack_id)
            is_told = any(process.alive for process in world.checker.known_to.get(key, ()))
            if stack is None or stack.deleted_at is not None or not is_told:
                del world.reality.objects[key]

    def _check_stack(self, stack: Stack, expected: Expectation) -> None:
        world = self.world
        may_fail = expected.cancelled or world.reality.mishaps > 0 or self.user.minutes.get(stack.name, PLENTY) < PLENTY
        may_fail = may_fail or any(each.restricted for each in world.checker.templates.values())
        if stack.status is Status.FAILED:
            if not may_fail:
                raise Violation('end state', f'{stack.name} is {stack.action}_FAILED: {stack.status_reason}')
            self._check_tracked(stack)
            return
        if self._is_behind(stack):
            self._check_tracked(stack)
            return
        may_roll_back = expected.asked_back or (may_fail and stack.name in self.user.rolls_back)
        if self._went_back(stack) and not may_roll_back:
            raise Violation('end state', f'{stack.name} was rolled back without a cause')
        if (stack.action is Action.DELETE) is not (expected.goal is None):
            raise Violation(
                'end state', f'{stack.name} is {stack.action}_COMPLETE, but the user requested another operation'
            )
        wanted = self._wanted(stack, expected)
        self._check_tree(stack, wanted)
        self._check_rest(stack)

    def _check_tree(self, stack: Stack, wanted: Template) -> None:
        """Check a complete stack and all its nested stacks."""
        tables = self.world.store.tables
        nested = children(tables, stack.id)
        verify(self._left, wanted, stack.id, {name: child.id for name, child in nested.items()})
        self._check_rows(stack, wanted)
        for name, resource in wanted.resources.items():
            if resource.nested is None and resource.kind not in WITH_MEMBERS:
                continue
            child = nested.get(name)
            if child is not None and stack.action in PERFORMED and child.action in (Action.CHECK, Action.SNAPSHOT):
                continue  # a problem that a check has found is left to the next operation with a goal
            if (
                child is not None
                and has_failed_to_scale(tables, child)
                and self.world.reality.mishaps
                and not self._again
            ):
                self._check_tracked(child)  # the parent stack of a group does not notice that scaling failed
                continue
            if child is None or child.status is not Status.COMPLETE:
                state = f'{child.action}_{child.status}: {child.status_reason}' if child is not None else 'not there'
                raise Violation('end state', f'{stack.name} is complete, but the stack {name} in it is {state}')
            if resource.nested is None:
                _check_group(tables, child, resource)
            self._check_tree(child, resource.nested or self.world.checker.templates[child.template_id])

    def _check_nested(self, stack: Stack) -> None:
        """Check the properties of a nested stack that hold in every state of its parent stack."""
        tables = self.world.store.tables
        if stack.deleted_at is None:
            parent = tables.stack.get(stack.parent_id or '')
            if parent is None or parent.deleted_at is not None:
                raise Violation('end state', f'nested stack {stack.id} has no parent stack')
            if stack.status is Status.IN_PROGRESS:
                raise Violation('end state', f'nested stack {stack.id} stays {stack.action}_IN_PROGRESS')
        self._check_tracked(stack)

    def _check_rest(self, stack: Stack) -> None:
        suspended = stack.action is Action.SUSPEND
        for thing in self.world.reality.objects.values():
            excused = thing.id in self.world.reality.late or thing.id in self.world.reality.untold
            if thing.stack_id == stack.id and thing.asleep is not suspended and not excused:
                state = 'suspended' if thing.asleep else 'not suspended'
                raise Violation('end state', f'{thing.id} is {state} in a stack that is {stack.action}_{stack.status}')

    def _wanted(self, stack: Stack, expected: Expectation) -> Template:
        traversal = self.world.store.tables.traversal[stack.traversal_id or '']
        wanted = self.world.checker.templates[traversal.template_id]
        asked = (expected.goal or Template()).document()
        if not self._went_back(stack) and wanted.document() != asked:
            raise Violation('end state', f'{stack.name} has another goal than the last accepted one')
        return wanted

    def _went_back(self, stack: Stack) -> bool:
        """Return True if a rollback set the goal of the stack. Later operations may have kept it."""
        given = self.world.checker.given.get(stack.id)
        return given is not None and given.action is Action.ROLLBACK

    def _is_behind(self, stack: Stack) -> bool:
        """Return True if the last operation kept a goal that the operation before it had not reached.

        The next operation with a goal does the remaining work.
        """
        given = self.world.checker.changed.get(stack.id)
        if given is None or stack.action not in PERFORMED or stack.status is not Status.COMPLETE:
            return False
        if stack.action is not Action.SUSPEND and given.template_id != self.world.checker.good.get(stack.id):
            state = f'{stack.action}_COMPLETE'
            raise Violation('end state', f'{stack.name} is {state}, though its template was never in service')
        return self.world.store.tables.traversal[given.id].status is not TraversalStatus.COMPLETE

    def _check_tracked(self, stack: Stack) -> None:
        known = {row.physical_id for row in self.world.store.tables.resources_of(stack.id)}
        tokens = {row.token for row in self.world.store.tables.resources_of(stack.id)}
        for thing in self.world.reality.objects.values():
            is_known = thing.id in known or thing.token in tokens or thing.id in self.world.reality.untold
            if thing.stack_id == stack.id and not is_known:
                raise Violation('I6', f'{thing.id} exists, but no row has its id')

    def _check_rows(self, stack: Stack, wanted: Template) -> None:
        objects = self._left.objects
        vanished = self.world.reality.vanished
        rows = self.world.store.tables.resources_of(stack.id)
        names = sorted(row.name for row in rows)
        if names != sorted(wanted.resources):
            raise Violation(
                'end state', f'{stack.name} has rows for {names}, but its goal has {sorted(wanted.resources)}'
            )
        for row in rows:
            there = row.physical_id in objects or any(is_of(row, thing) for thing in objects.values())
            there = there or row.type in NESTING or row.type == POLICY
            if row.handover is not None and stack.status is Status.COMPLETE:
                raise Violation('end state', f'{row.name} of {stack.name} is up, but is {row.handover}')
            thing = objects.get(row.physical_id or '')
            if thing is not None and not thing.has_address:
                raise Violation('end state', f'{thing.id} is the object of {row.name}, but has lost its address')
            untouched = stack.action in PERFORMED and row.action in (Action.CHECK, Action.SNAPSHOT)
            if not (row.status is Status.COMPLETE or untouched) or not (there or vanished):
                raise Violation('end state', f'the row of {row.name} is {row.action}_{row.status}, {row.physical_id}')


def has_failed_to_scale(tables: Tables, stack: Stack) -> bool:
    """Return True if a stack is a group that a signal tried to scale without success."""
    traversal = tables.traversal.get(stack.traversal_id or '')
    return stack.status is Status.FAILED and traversal is not None and traversal.scaling is not None


def _check_group(tables: Tables, stack: Stack, wanted: RsrcDef) -> None:
    """Check the properties of a group. The rules check its members at every change."""
    made_from = tables.resource[stack.parent_resource_id or ''].properties
    if made_from != wanted.properties:
        raise Violation('end state', f'{stack.name} is made from {made_from}, but should be {wanted.properties}')
