"""The user of a simulated world: requests operations, repeats unanswered requests, and knows the expected results."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from convergence import errors
from convergence.core.model import Action, Status
from convergence.core.rows import Stack
from convergence.values import replace
from convergence_simulator.runs.requests import request
from convergence_simulator.scenarios.language import QueuedCall
from convergence_simulator.scenarios.templates import Template
from convergence_simulator.scenarios.verification import Violation
from convergence_simulator.world.place import AnEngine, WatchedPlace
from convergence_simulator.world.world import PROJECT, Context

PLENTY = 60
"""Time limit, in minutes, that no operation of a scenario reaches by itself."""


REFUSALS = (errors.NotSupported, errors.EntityNotFound, errors.StackExists, errors.Invalid)
"""Answers of an engine to a request that is impossible in the current state."""

BESIDE = frozenset({'signal', 'clear_hook'})
"""Verbs that do not change the expected result; they are sent even while another request waits for repetition."""


@dataclass
class Expectation:
    """The expected result for one stack.

    :ivar goal: the last requested goal; None if the stack is to be deleted.
    :ivar before: the last completed goal before that request; None if there was none.
    :ivar asked_back: True if the user has requested a rollback.
    :ivar cancelled: True if the user has cancelled the operation.
    :ivar by_update: True if an update restores the earlier goal, because it was too late for a rollback.
    """

    goal: Template | None
    before: Template | None = None
    asked_back: bool = False
    cancelled: bool = False
    by_update: bool = False


class User:
    """Sends requests to engines, one at a time.

    :ivar stacks: expected result for each stack, by name; `ids`: the newest stack of each name.
    :ivar rolls_back: names of the stacks whose failures are to be rolled back; `minutes`: time limits by name.
    :ivar turned_away: True if the last answer was to repeat the request later.
    :ivar tolerant: True if a refused request is no error: random programs send such requests.
    :ivar left: data and template of each abandoned stack.
    """

    def __init__(self, world: WatchedPlace) -> None:
        self.world = world
        self.stacks: dict[str, Expectation] = {}
        self.ids: dict[str, str] = {}
        self.rolls_back: set[str] = set()
        self.minutes: dict[str, int] = {}
        self.turned_away = False
        self.tolerant = False
        self.left: dict[str, tuple[dict[str, Any], Template]] = {}
        self._before: Expectation | None = None

    def prefers(self, call: QueuedCall) -> None:
        """Set the options of the next operations."""
        if call.verb == 'rollback_on_failure':
            self.rolls_back.add(call.arguments[0])
        else:
            name, minutes = call.arguments
            self.minutes[name] = minutes

    def is_told(self, name: str, *states: str) -> None:
        """Check the state of a stack.

        :raises Violation: its state and reason begin with none of the texts.
        """
        stack = self.stack(name)
        found = f'{stack.action}_{stack.status}: {stack.status_reason}'
        if not found.startswith(states):
            raise Violation('says', f'{name} is {found}')

    def starts_afresh(self) -> None:
        """Reset the options and the cancelled operations."""
        self.rolls_back.clear()
        self.minutes = dict.fromkeys(self.minutes, PLENTY)
        for expected in self.stacks.values():
            expected.cancelled = expected.asked_back = False

    def has_forgotten(self) -> None:
        """Update the known stacks after lost commits: the database may know another stack by a name, or none."""
        tables = self.world.store.tables
        living = {stack.name: stack for stack in tables.stack.values() if stack.deleted_at is None}
        for name, expected in self.stacks.items():
            stack = living.get(name)
            if stack is not None:
                self.ids[name] = stack.id
                self.left.pop(name, None)
                if stack.action is Action.DELETE:
                    expected.goal = None
            elif self.ids.get(name) not in tables.stack:
                self.ids.pop(name, None)

    def remembers(self) -> tuple[object, ...]:
        """Return the facts that distinguish two users with the same goals."""
        return tuple(
            (name, expected.goal is None, expected.asked_back, expected.cancelled)
            for name, expected in sorted(self.stacks.items())
        )

    # --- requests ---------------------------------------------------------------------------------------------

    def ask(self, engine: AnEngine, call: QueuedCall) -> None:
        """Send a request to an engine. The expected result is set before the first attempt."""
        name = call.arguments[0]
        if self.world.losses and self.ids.get(name) not in self.world.store.tables.stack:
            self.ids.pop(name, None)  # perhaps lost before the answer arrived
            if call.verb not in ('create_stack', 'update_stack'):
                return  # the stack no longer exists
            call = replace(call, verb='create_stack')
        if not call.again and call.verb not in BESIDE:
            known = self.stacks.get(name)
            self._before = replace(known) if known is not None else None
            self._expect(name, call)
        try:
            self._ask(engine, call)
        except errors.RetryLater:
            self.turned_away = True
        except KeyError:
            if not self.world.losses:
                raise  # otherwise commits were lost during the request, and the stack with them
        except REFUSALS as error:
            if isinstance(error, errors.EntityNotFound) and self.ids.get(name) not in self.world.store.tables.stack:
                self.turned_away = True  # the stack was lost during the request; the next attempt creates it
                return
            # This request was not intended; the expected result stays the same.
            if not self.tolerant:
                raise
            if self._before is not None:
                self.stacks[name] = self._before

    def _ask(self, engine: AnEngine, call: QueuedCall) -> None:
        name = call.arguments[0]
        match call.verb:
            case 'create_stack':
                self._create(engine, name, call.arguments[1])
            case 'update_stack':
                self._update(engine, name, *call.arguments[1:])
            case 'delete_stack':
                _unless_too_late(lambda: self._delete(engine, name, call.arguments[1:], again=call.again))
            case 'rollback_stack':
                self._roll_back(engine, name, again=call.again)
            case 'cancel':
                _unless_too_late(lambda: self._cancel(engine, name, roll_back=False))
            case 'cancel_patiently':
                _unless_too_late(lambda: self._cancel(engine, name, roll_back=False, now=False))
            case 'cancel_and_roll_back':
                _unless_too_late(lambda: self._cancel(engine, name, roll_back=True))
            case 'go_back':
                _unless_too_late(lambda: self._go_back(engine, name))
            case 'suspend_stack' | 'resume_stack' | 'check_stack':
                act = getattr(engine.parts.actions, f'stack_{call.verb.partition("_")[0]}')
                _unless_too_late(lambda: act(Context(), self.identity(name)))
            case 'says_broken':
                with suppress(errors.ActionInProgress):
                    self.world.reality.mishaps += 1
                    identity, resource = self.identity(name), call.arguments[1]
                    _unless_too_late(
                        lambda: engine.parts.actions.resource_mark_unhealthy(Context(), identity, resource, True)
                    )
            case 'refuses':
                self._is_refused(engine, *call.arguments)
            case _:
                request(self, engine, call)

    def _expect(self, name: str, call: QueuedCall) -> None:
        known = self.stacks.get(name)
        match call.verb:
            case 'create_stack':
                self.stacks[name] = Expectation(call.arguments[1])
            case 'update_stack':
                self.stacks[name] = Expectation(call.arguments[1], last_up(self.world, self.ids[name]))
            case 'delete_stack':
                self.stacks[name] = Expectation(None)
            case 'rollback_stack':
                assert known is not None
                self.stacks[name] = Expectation(known.before or Template(), known.before, asked_back=True)
            case 'go_back':
                assert known is not None
                known.asked_back = True
            case 'cancel' | 'cancel_patiently':
                assert known is not None
                known.cancelled = True
            case 'cancel_and_roll_back':
                assert known is not None
                known.cancelled = known.asked_back = True

    def wants(self, name: str, goal: Template | None) -> None:
        """Set the expected result of a stack from now on."""
        self.stacks[name] = Expectation(goal, last_up(self.world, self.ids[name]))

    def _create(self, engine: AnEngine, name: str, wanted: Template) -> None:
        try:
            identity = engine.parts.stacks.create_stack(
                Context(), name, wanted.document(), wanted.environment(), args=self.arguments(name)
            )
            self.ids[name] = identity['stack_id']
        except errors.StackExists:
            existing = self.world.reader.stack_named(PROJECT, name)
            if existing is not None and self.world.losses:
                self.ids[name] = existing.id  # the deletion is forgotten
                self._update(engine, name, wanted)
                return
            if existing is None or existing.id == self.ids.get(name):
                raise
            self.ids[name] = existing.id

    def _update(self, engine: AnEngine, name: str, wanted: Template, converge: bool = False) -> None:
        args = {**self.arguments(name), 'converge': converge}
        engine.parts.stacks.update_stack(
            Context(), self.identity(name), wanted.document(), wanted.environment(), args=args
        )

    def _roll_back(self, engine: AnEngine, name: str, *, again: bool) -> None:
        """Restore the last completed goal: by a rollback, or by an update if the operation is over."""
        stack = self.stack(name)
        if again and stack.action is Action.ROLLBACK:
            return
        traversal = self.world.reader.traversal(stack.traversal_id or '')
        may_go_back = stack.status is Status.IN_PROGRESS and stack.action in (Action.CREATE, Action.UPDATE)
        in_time = may_go_back and not self.stacks[name].by_update
        if in_time and traversal is not None and stack.last_good_template_id != traversal.template_id:
            try:
                engine.parts.traversals.roll_back(stack, traversal)
                return
            except errors.ConvergenceError:
                pass
        self.stacks[name].by_update = True
        target = self.stacks[name].goal or Template()
        self._update(engine, name, target)

    def _go_back(self, engine: AnEngine, name: str) -> None:
        engine.parts.rollbacks.stack_rollback(Context(), self.identity(name))

    def _delete(self, engine: AnEngine, name: str, leave: Sequence[str], *, again: bool) -> None:
        """Delete a stack.

        Objects to keep are also kept if the engine died after it had accepted that, or lost the stack.
        """
        still = {row.name for row in self.world.store.tables.resources_of(self.ids[name])}
        may_be_gone = again or self.world.losses
        leaves = [each for each in leave if not may_be_gone or each in still]
        try:
            engine.parts.stacks.delete_stack(Context(), self.identity(name), leave=leaves)
        except errors.Invalid:
            if not self.world.losses:
                raise
            self.turned_away = True  # commits were lost during the request, and their rows with them

    def _cancel(self, engine: AnEngine, name: str, *, roll_back: bool, now: bool = True) -> None:
        engine.parts.stacks.stack_cancel_update(Context(), self.identity(name), roll_back, now)

    def _is_refused(self, engine: AnEngine, name: str, verb: str, *arguments: Any) -> None:
        try:
            if verb == 'create_stack':
                engine.parts.stacks.create_stack(Context(), name, arguments[0].document())
            elif verb == 'update_stack':
                self._update(engine, name, arguments[0])
            else:
                self._cancel(engine, name, roll_back=verb == 'cancel_and_roll_back')
        except errors.ConvergenceError:
            return
        raise Violation('refusal', f'{verb} of {name} was accepted')

    def arguments(self, name: str) -> dict[str, Any]:
        """Return the arguments of requests for operations on a stack."""
        arguments: dict[str, Any] = {'disable_rollback': name not in self.rolls_back}
        if name in self.minutes:
            arguments['timeout_mins'] = self.minutes[name]
        goal = self.stacks[name].goal if name in self.stacks else None
        if goal is not None and goal.drift_policy is not None:
            arguments['drift_policy'] = goal.drift_policy
        return arguments

    def identity(self, name: str) -> dict[str, Any]:
        """Return the newest stack of a name, as a request refers to it."""
        return {'stack_id': self.ids[name], 'stack_name': name}

    def stack(self, name: str) -> Stack:
        """Return the newest stack of a name."""
        found: Stack = self.world.store.tables.stack[self.ids[name]]
        return found


def last_up(world: WatchedPlace, stack_id: str) -> Template | None:
    """Return the last completed goal of a stack; None if there is none."""
    good = world.checker.good.get(stack_id)
    return world.checker.templates[good] if good is not None else None


def _unless_too_late(ask: Callable[[], None]) -> None:
    try:
        ask()
    except (errors.NotSupported, errors.EntityNotFound):
        return
