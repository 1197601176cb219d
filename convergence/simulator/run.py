"""Run one scenario once, to its end, and check what has become of the world."""

from __future__ import annotations

import unittest
from collections.abc import Callable
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from convergence import errors
from convergence.core.model import Status
from convergence.core.rows import Stack
from convergence.simulator.choices import Choices
from convergence.simulator.kernel import Fiber
from convergence.simulator.language import Call, Scenario, Template
from convergence.simulator.verification import Violation, verify
from convergence.simulator.world import (
    PROJECT,
    Context,
    Engine,
    Faults,
    Message,
    Storage,
    Watch,
    World,
    in_memory,
)


class Mode(StrEnum):
    """How the next thing to happen is chosen.

    * `ORDER`: one queued call, one message, in turn; each is finished before the next, as in the prototype.
    * `SEEDED`: anything that can happen, at random, with processes giving way at every point.
    """

    ORDER = 'ORDER'
    SEEDED = 'SEEDED'


@dataclass(frozen=True, slots=True)
class Plan:
    """How to run scenarios.

    :param steps: after so many steps a run counts as endless.
    :param sweeps: how many sweeps may pass at the end before everything has to be at rest.
    :param storage: makes the database of a run, on the run's clock.
    :param passed: points at which processes do not give way; see `convergence.simulator.kernel`.
    """

    mode: Mode = Mode.SEEDED
    faults: Faults = field(default_factory=Faults)
    engines: int = 2
    workers: int = 3
    steps: int = 20_000
    sweeps: int = 1_500
    storage: Callable[[Callable[[], float]], Storage] = in_memory
    passed: frozenset[str] = frozenset()


@dataclass
class Expectation:
    """What the scenario expects of one stack.

    :ivar goal: None once the stack has been deleted.
    :ivar before: what the stack was, for certain, when the last operation was accepted.
    :ivar vague: whether a failure or a cancel has made the end state depend on the order of events.
    """

    goal: Template | None
    before: Template | None = None
    vague: bool = False


class Run:
    """One scenario in one world."""

    def __init__(
        self, scenario: Scenario, plan: Plan, choices: Choices, make_watch: Callable[[], Watch] | None = None
    ) -> None:
        ordered = plan.mode is Mode.ORDER
        self._plan = plan
        self._choices = choices
        self.world = World(
            choices,
            faults=plan.faults,
            engines=1 if ordered else plan.engines,
            workers=1 if ordered else plan.workers,
            visit_unchanged=ordered,
            watch=make_watch() if make_watch else None,
            storage=plan.storage,
        )
        self.world.kernel.fine = not ordered
        self.world.kernel.passed = plan.passed
        self.stacks: dict[str, Expectation] = {}
        self._names: dict[str, str] = {}
        self._rollback_on_failure: set[str] = set()
        self._test = unittest.TestCase()
        self._calls = scenario.read(self.world.reality, self._verify, self._test)
        self._user: Fiber | None = None
        self._asked: Call | None = None
        self._rested = False
        self.steps = 0
        self.before_step: Callable[[], None] = lambda: None

    def remaining(self) -> tuple[object, ...]:
        """What the user still wants, as far as it tells two moments of the same scenario apart."""
        calls = (len(self._calls), self._calls[0].verb if self._calls else '', self._user is not None, self._rested)
        return (*calls, sorted((name, expected.vague) for name, expected in self.stacks.items()))

    # --- the loop ---------------------------------------------------------------------------------------------

    def execute(self) -> None:
        """Run to the end.

        :raises Violation: something that must hold did not.
        :raises AssertionError: a check of the scenario failed.
        """
        if self._plan.mode is Mode.ORDER:
            self._in_order()
        else:
            self._seeded()
        self._come_to_rest()
        self._check_end()

    def _in_order(self) -> None:
        pending: list[Call] = self._calls
        while pending:
            call = pending.pop(0)
            if call.verb == 'noop':
                for _ in range(call.arguments[0]):
                    self._deliver_next()
                continue
            self._carry_out(call)
            if call.verb not in ('call', 'behaves'):
                self._deliver_next()

    def _deliver_next(self) -> None:
        """One message, worked on to its end; what is no resource's check goes with the message before it."""
        world = self.world
        if world.bag:
            world.deliver(world.bag[0])
            self._finish_fibers()
        while world.bag and world.bag[0].kind != 'check_resource':
            world.deliver(world.bag[0])
            self._finish_fibers()

    def _finish_fibers(self) -> None:
        while runnable := self.world.kernel.runnable():
            self._turn(runnable[0])

    def _seeded(self) -> None:
        while self._calls or self._user is not None:
            self._step(self._user_may_go_on)

    def _user_may_go_on(self) -> bool:
        if self._user is not None or not self._calls:
            return False
        call = self._calls[0]
        if call.verb == 'settle' or (call.verb == 'call' and call.arguments[0] == self._verify):
            return self.world.is_idle()
        return True

    def _step(self, user_may: Callable[[], bool] = lambda: False) -> bool:
        """Let one of the things happen that can happen now; False where that was only the passing of time."""
        world = self.world
        self.before_step()
        self.steps += 1
        if self.steps > self._plan.steps:
            raise Violation('liveness', f'not at rest after {self._plan.steps} steps: {self.describe()}')
        fibers = world.kernel.runnable()
        user = user_may()
        count = len(fibers) + len(world.bag) + user
        if not count:
            world.tick()
            return False
        chosen = self._choices.pick(count)
        if chosen < len(fibers):
            self._turn(fibers[chosen])
        elif chosen < len(fibers) + len(world.bag):
            message = world.bag[chosen - len(fibers)]
            world.deliver(message)
        else:
            self._carry_out(self._calls.pop(0))
        return True

    def _turn(self, fiber: Fiber) -> None:
        self.world.kernel.run(fiber)
        user = self._user
        if user is None or (user.process.alive and not user.let.dead):
            return
        self._user = None
        if not user.process.alive and self._asked is not None:
            # The engine died before it answered. The user cannot know what it had done, and asks again.
            self._calls.insert(0, self._asked)

    def _come_to_rest(self) -> None:
        world, sweeps = self.world, 0
        while not world.is_idle():
            if self._step():
                continue
            if world.bag or world.kernel.runnable():
                sweeps += 1
            if sweeps > self._plan.sweeps:
                raise Violation('liveness', f'not at rest after {sweeps} sweeps: {self.describe()}')

    # --- calls ------------------------------------------------------------------------------------------------

    def _carry_out(self, call: Call) -> None:
        rested, self._rested = self._rested, False
        match call.verb:
            case 'noop':
                return
            case 'settle':
                self._rested = True
            case 'call':
                self._scenario_function(call, rested)
            case 'behaves':
                name, behaviour = call.arguments
                self.world.reality.behaviours[name] = behaviour
                for key in [key for key in self.world.reality.counts if key[0] == name]:
                    del self.world.reality.counts[key]
                self._rested = rested
            case 'rollback_on_failure':
                self._rollback_on_failure.add(call.arguments[0])
                self._rested = rested
            case 'drop' | 'double' | 'crash_worker' | 'crash_engine' | 'pass_time':
                self._fault(call)
            case _:
                self._operation(call)

    def _scenario_function(self, call: Call, rested: bool) -> None:
        """A check of the scenario; one that looks at a moment of the prototype's order has none in any other."""
        function, arguments, named = call.arguments
        if self._plan.mode is Mode.ORDER or function == self._verify or rested:
            function(*arguments, **named)
            self._rested = True

    def _verify(self, wanted: Template) -> None:
        verify(self.world.reality, wanted)

    def _fault(self, call: Call) -> None:
        world = self.world
        if call.verb == 'drop':
            world.lost = True
            del world.bag[: call.arguments[0]]
        elif call.verb == 'double':
            copies = world.bag[: call.arguments[0]]
            world.bag += [Message(each.kind, each.traversal_id, each.number, each.stack_id) for each in copies]
        elif call.verb == 'pass_time':
            ends = world.kernel.now + call.arguments[0]
            while world.kernel.now < ends:
                world.tick()
        else:
            processes = world.workers if call.verb == 'crash_worker' else world.engines
            busy = {fiber.process for fiber in world.kernel.fibers}
            victims = [each.process for each in processes if each.process in busy] or [processes[0].process]
            world.crash(victims[self._choices.pick(len(victims))])
            world.kernel.bury()

    def _operation(self, call: Call) -> None:
        """An operation on a stack, asked of one of the engines; the user waits for the answer."""
        engine = self.world.engines[self._choices.pick(len(self.world.engines))]
        self.world.watch.story('user', f'{call.verb} {call.arguments[0]}', engine.process.name)
        self._asked = call
        self._user = self.world.kernel.spawn(engine.process, call.verb, lambda: self._ask(engine, call))
        if self._plan.mode is Mode.ORDER:
            self._finish_fibers()
            self._user = None

    def _ask(self, engine: Engine, call: Call) -> None:
        name = call.arguments[0]
        match call.verb:
            case 'create_stack':
                self._create(engine, name, call.arguments[1])
            case 'update_stack':
                self._update(engine, name, call.arguments[1])
            case 'delete_stack':
                self.stacks[name] = Expectation(None)
                engine.stacks.delete_stack(Context(), self._identity(name))
            case 'rollback_stack':
                self._roll_back(engine, name)
            case 'cancel':
                self.stacks[name].vague = True
                self._unless_too_late(
                    lambda: engine.stacks.stack_cancel_update(Context(), self._identity(name), False)
                )
            case _:
                raise AssertionError(f'no verb {call.verb}')

    def _create(self, engine: Engine, name: str, wanted: Template) -> None:
        self.stacks[name] = Expectation(wanted)
        disable = name not in self._rollback_on_failure
        try:
            identity = engine.stacks.create_stack(
                Context(), name, wanted.document(), args={'disable_rollback': disable}
            )
            self._names[name] = identity['stack_id']
        except errors.StackExists:
            existing = self.world.reader.stack_named(PROJECT, name)
            assert existing is not None
            self._names[name] = existing.id

    def _update(self, engine: Engine, name: str, wanted: Template) -> None:
        stack = self._stack(name)
        known = self.stacks[name]
        good = known.goal if stack.status is Status.COMPLETE else known.before
        self.stacks[name] = Expectation(wanted, good)
        disable = name not in self._rollback_on_failure
        engine.stacks.update_stack(
            Context(), self._identity(name), wanted.document(), args={'disable_rollback': disable}
        )

    def _roll_back(self, engine: Engine, name: str) -> None:
        """Back to what the stack was before the last operation: by a rollback, or if it is over, by an update."""
        known, stack = self.stacks[name], self._stack(name)
        target = known.before or Template()
        traversal = self.world.reader.traversal(stack.traversal_id or '')
        in_time = stack.status is Status.IN_PROGRESS and traversal is not None
        self.stacks[name] = Expectation(target)
        if in_time and traversal is not None and stack.last_good_template_id != traversal.template_id:
            try:
                engine.traversals.roll_back(stack, traversal)
                return
            except errors.ConvergenceError:
                pass
        engine.stacks.update_stack(Context(), self._identity(name), target.document())

    @staticmethod
    def _unless_too_late(ask: Callable[[], None]) -> None:
        try:
            ask()
        except (errors.NotSupported, errors.EntityNotFound):
            return

    def _identity(self, name: str) -> dict[str, Any]:
        return {'stack_id': self._names[name], 'stack_name': name}

    def _stack(self, name: str) -> Stack:
        return self.world.store.tables.stack[self._names[name]]

    # --- the end ----------------------------------------------------------------------------------------------

    def _check_end(self) -> None:
        world = self.world
        held = [row for row in world.store.tables.resource.values() if row.owner is not None]
        if held:
            raise Violation('end state', f'{held[0].name} is still held by {held[0].owner}')
        for name, expected in self.stacks.items():
            stack = self._stack(name)
            failed = stack.status is Status.FAILED
            if expected.vague or (failed and world.reality.behaviours):
                continue
            if failed:
                raise Violation('end state', f'{name} is {stack.action}_FAILED: {stack.status_reason}')
            if stack.action.value == 'ROLLBACK' and world.reality.behaviours:
                verify(world.reality, expected.before or Template(), stack.id)
                continue
            verify(world.reality, expected.goal or Template(), stack.id)

    def describe(self) -> str:
        """What is going on, in a line, for the text of an error."""
        tables = self.world.store.tables
        stacks = ', '.join(f'{each.name} {each.action}_{each.status}' for each in tables.stack.values())
        fibers = ', '.join(f'{each.process.name} {each.name} at {each.point}' for each in self.world.kernel.fibers)
        return f'{stacks or "no stack"}; {fibers or "no fiber"}; {len(self.world.bag)} messages'


@dataclass(frozen=True, slots=True)
class Verdict:
    """What became of one run.

    :param choices: everything that was chosen; repeats the run.
    """

    scenario: str
    seed: int
    error: str = ''
    rule: str = ''
    choices: tuple[int, ...] = ()
    steps: int = 0
    seconds: float = field(default=0.0)
