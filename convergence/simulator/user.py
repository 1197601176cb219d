"""The user of a simulated world: asks for operations, asks again when nobody answered, and knows what to expect."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from convergence import errors
from convergence.core.model import Action, Status
from convergence.core.rows import Stack
from convergence.simulator.language import Call, Template
from convergence.simulator.verification import Violation, verify
from convergence.simulator.world import PROJECT, Context, Engine, World


@dataclass
class Expectation:
    """What is expected of one stack.

    :ivar goal: what was asked for last; None once the stack is to be deleted.
    :ivar before: what was last up when that was asked for; None for nothing.
    :ivar asked_back: whether the user has asked to go back.
    :ivar cancelled: whether the user has asked to stop.
    :ivar by_update: whether the way back is an update, for it was too late for a rollback.
    """

    goal: Template | None
    before: Template | None = None
    asked_back: bool = False
    cancelled: bool = False
    by_update: bool = False


class User:
    """Asks engines for operations, one at a time.

    :ivar stacks: what is expected of each stack, by name.
    """

    def __init__(self, world: World) -> None:
        self.world = world
        self.stacks: dict[str, Expectation] = {}
        self._ids: dict[str, str] = {}
        self._rolls_back: set[str] = set()
        self._minutes: dict[str, int] = {}

    def prefers(self, call: Call) -> None:
        """How operations are to be asked for from now on."""
        if call.verb == 'rollback_on_failure':
            self._rolls_back.add(call.arguments[0])
        else:
            name, minutes = call.arguments
            self._minutes[name] = minutes

    def starts_afresh(self) -> None:
        """What was preferred and cancelled so far does not count any more."""
        self._rolls_back.clear()
        self._minutes.clear()
        for expected in self.stacks.values():
            expected.cancelled = expected.asked_back = False

    def remembers(self) -> tuple[object, ...]:
        """What tells two users apart who want the same."""
        return tuple(
            (name, expected.goal is None, expected.asked_back, expected.cancelled)
            for name, expected in sorted(self.stacks.items())
        )

    # --- asking -----------------------------------------------------------------------------------------------

    def ask(self, engine: Engine, call: Call) -> None:
        """Ask an engine for an operation. What is expected of it is settled before it is asked for the first time.

        :raises ActionInProgress: the stack is too busy; ask again.
        """
        name = call.arguments[0]
        if not call.again:
            self._expect(name, call)
        match call.verb:
            case 'create_stack':
                self._create(engine, name, call.arguments[1])
            case 'update_stack':
                self._update(engine, name, call.arguments[1])
            case 'delete_stack':
                self._unless_too_late(lambda: engine.stacks.delete_stack(Context(), self._identity(name)))
            case 'rollback_stack':
                self._roll_back(engine, name, again=call.again)
            case 'cancel':
                self._unless_too_late(lambda: self._cancel(engine, name, roll_back=False))
            case 'cancel_and_roll_back':
                self._unless_too_late(lambda: self._cancel(engine, name, roll_back=True))
            case 'refuses':
                self._is_refused(engine, *call.arguments)
            case _:
                raise AssertionError(f'no verb {call.verb}')

    def _expect(self, name: str, call: Call) -> None:
        known = self.stacks.get(name)
        match call.verb:
            case 'create_stack':
                self.stacks[name] = Expectation(call.arguments[1])
            case 'update_stack':
                self.stacks[name] = Expectation(call.arguments[1], self._last_up(name))
            case 'delete_stack':
                self.stacks[name] = Expectation(None)
            case 'rollback_stack':
                assert known is not None
                self.stacks[name] = Expectation(known.before or Template(), known.before, asked_back=True)
            case 'cancel':
                assert known is not None
                known.cancelled = True
            case 'cancel_and_roll_back':
                assert known is not None
                known.cancelled = known.asked_back = True

    def _last_up(self, name: str) -> Template | None:
        good = self.world.checker.good.get(self._ids[name])
        return self.world.checker.templates[good] if good is not None else None

    def _create(self, engine: Engine, name: str, wanted: Template) -> None:
        try:
            identity = engine.stacks.create_stack(Context(), name, wanted.document(), args=self._arguments(name))
            self._ids[name] = identity['stack_id']
        except errors.StackExists:
            existing = self.world.reader.stack_named(PROJECT, name)
            if existing is None or existing.id == self._ids.get(name):
                raise
            self._ids[name] = existing.id

    def _update(self, engine: Engine, name: str, wanted: Template) -> None:
        engine.stacks.update_stack(
            Context(), self._identity(name), wanted.document(), args=self._arguments(name)
        )

    def _roll_back(self, engine: Engine, name: str, *, again: bool) -> None:
        """Back to what was up before the last operation: by a rollback, or if that is over, by an update."""
        stack = self.stack(name)
        if again and stack.action is Action.ROLLBACK:
            return
        traversal = self.world.reader.traversal(stack.traversal_id or '')
        in_time = stack.status is Status.IN_PROGRESS and not self.stacks[name].by_update
        if in_time and traversal is not None and stack.last_good_template_id != traversal.template_id:
            try:
                engine.traversals.roll_back(stack, traversal)
                return
            except errors.ConvergenceError:
                pass
        self.stacks[name].by_update = True
        target = self.stacks[name].goal or Template()
        engine.stacks.update_stack(Context(), self._identity(name), target.document(), args=self._arguments(name))

    def _cancel(self, engine: Engine, name: str, *, roll_back: bool) -> None:
        engine.stacks.stack_cancel_update(Context(), self._identity(name), roll_back)

    def _is_refused(self, engine: Engine, name: str, verb: str, *arguments: Any) -> None:
        try:
            if verb == 'create_stack':
                engine.stacks.create_stack(Context(), name, arguments[0].document())
            elif verb == 'update_stack':
                self._update(engine, name, arguments[0])
            else:
                self._cancel(engine, name, roll_back=verb == 'cancel_and_roll_back')
        except errors.ConvergenceError:
            return
        raise Violation('refusal', f'{verb} of {name} was accepted')

    def _arguments(self, name: str) -> dict[str, Any]:
        arguments: dict[str, Any] = {'disable_rollback': name not in self._rolls_back}
        if name in self._minutes:
            arguments['timeout_mins'] = self._minutes[name]
        return arguments

    @staticmethod
    def _unless_too_late(ask: Callable[[], None]) -> None:
        try:
            ask()
        except (errors.NotSupported, errors.EntityNotFound):
            return

    def _identity(self, name: str) -> dict[str, Any]:
        return {'stack_id': self._ids[name], 'stack_name': name}

    def stack(self, name: str) -> Stack:
        """The newest stack of that name."""
        return self.world.store.tables.stack[self._ids[name]]

    # --- the end ----------------------------------------------------------------------------------------------

    def failed(self) -> list[Call]:
        """What a user would ask for now: those stacks that have failed have to converge when nothing fails any more."""
        calls = []
        for name, expected in sorted(self.stacks.items()):
            stack = self.stack(name) if name in self._ids else None
            if stack is None or (stack.status is not Status.FAILED and not self.world.frozen):
                continue
            if stack.action is Action.DELETE or expected.goal is None:
                calls.append(Call('delete_stack', (name,)))
            else:
                calls.append(Call('update_stack', (name, expected.goal)))
        return calls

    def check_end(self) -> None:
        """Everything is at rest. Is every stack what it should be?

        :raises Violation: one is not.
        """
        newest = {self._ids[name]: name for name in self.stacks if name in self._ids}
        for stack in self.world.store.tables.stack.values():
            name = newest.get(stack.id)
            if name is None and stack.deleted_at is None:
                raise Violation('end state', f'there is a stack {stack.name} that nobody asked for')
            self._check_stack(stack, self.stacks[name] if name is not None else Expectation(None))

    def _check_stack(self, stack: Stack, expected: Expectation) -> None:
        world = self.world
        may_fail = expected.cancelled or world.reality.mishaps > 0 or stack.name in self._minutes
        if stack.status is Status.FAILED:
            if not may_fail:
                raise Violation('end state', f'{stack.name} is {stack.action}_FAILED: {stack.status_reason}')
            self._check_tracked(stack)
            return
        may_roll_back = expected.asked_back or (may_fail and stack.name in self._rolls_back)
        if stack.action is Action.ROLLBACK and not may_roll_back:
            raise Violation('end state', f'{stack.name} was rolled back without a cause')
        if (stack.action is Action.DELETE) is not (expected.goal is None):
            raise Violation('end state', f'{stack.name} is {stack.action}_COMPLETE, which is not what was asked for')
        wanted = self._wanted(stack, expected)
        verify(world.reality, wanted, stack.id)
        self._check_rows(stack, wanted)

    def _wanted(self, stack: Stack, expected: Expectation) -> Template:
        traversal = self.world.store.tables.traversal[stack.traversal_id or '']
        wanted = self.world.checker.templates[traversal.template_id]
        asked = (expected.goal or Template()).document()
        if stack.action is not Action.ROLLBACK and wanted.document() != asked:
            raise Violation('end state', f'{stack.name} has another goal than the one that was accepted last')
        return wanted

    def _check_tracked(self, stack: Stack) -> None:
        known = {row.physical_id for row in self.world.store.tables.resources_of(stack.id)}
        tokens = {row.token for row in self.world.store.tables.resources_of(stack.id)}
        for thing in self.world.reality.objects.values():
            if thing.stack_id == stack.id and thing.id not in known and thing.token not in tokens:
                raise Violation('I6', f'{thing.id} exists, but no row knows of it')

    def _check_rows(self, stack: Stack, wanted: Template) -> None:
        objects = self.world.reality.objects
        rows = self.world.store.tables.resources_of(stack.id)
        names = sorted(row.name for row in rows)
        if names != sorted(wanted.resources):
            raise Violation('end state', f'{stack.name} has rows for {names}, but wants {sorted(wanted.resources)}')
        for row in rows:
            if row.status is not Status.COMPLETE or (row.physical_id not in objects and not self.world.reality.vanished):
                raise Violation('end state', f'the row of {row.name} is {row.action}_{row.status}, {row.physical_id}')
