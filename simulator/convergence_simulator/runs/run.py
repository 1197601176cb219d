"""Runs one scenario once, to its end, and checks the final state."""

from __future__ import annotations

import unittest
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from functools import lru_cache, partial

from convergence.core.request import Planner
from convergence.values import replace
from convergence_simulator.cloud.reality import NOBODY, PhysicalObject
from convergence_simulator.rules.checker import InvariantChecker
from convergence_simulator.runs.ending import FinalComparison
from convergence_simulator.runs.plan import Mode, RunPlan
from convergence_simulator.runs.requests import waiting
from convergence_simulator.runs.user import BESIDE, User
from convergence_simulator.scenarios.language import QueuedCall, Scenario
from convergence_simulator.scenarios.own_checks import OwnChecks
from convergence_simulator.scenarios.verification import Violation, verify
from convergence_simulator.world.accidents import ACCIDENTS, befall, describe
from convergence_simulator.world.choices import Choices
from convergence_simulator.world.faults import SWEEP_S
from convergence_simulator.world.kernel import Fiber
from convergence_simulator.world.meddling import awaited, harm_all, require_repaired
from convergence_simulator.world.observing import observe
from convergence_simulator.world.planning import VisitingPlanner
from convergence_simulator.world.rewinding import LOSSES
from convergence_simulator.world.world import Watch, World, WorldShape

INSTANT = frozenset(
    {'call', 'behaves', 'answers', 'exists', 'harms', 'rollback_on_failure', 'says', 'time_limit', 'vanishes'}
)
"""Calls of a scenario that send no request; in ordered mode, no message is delivered after them."""


class Run:
    """One scenario in one world."""

    def __init__(
        self, scenario: Scenario, plan: RunPlan, choices: Choices, make_watch: Callable[[], Watch] | None = None
    ) -> None:
        ordered = plan.mode is Mode.ORDER
        self._plan = plan
        self._choices = choices
        self.world = World(
            choices,
            InvariantChecker,
            faults=plan.faults,
            shape=WorldShape(
                engines=1 if ordered else plan.engines,
                workers=1 if ordered else plan.workers,
                planner=VisitingPlanner if ordered else Planner,
                threads=plan.threads,
                max_inline_nodes=1 if ordered else plan.max_inline_nodes,
                window=plan.window,
            ),
            watch=make_watch() if make_watch else None,
            storage=plan.storage,
        )
        self.world.kernel.fine = not ordered
        self.world.kernel.passed = plan.passed
        self.user = User(self.world)
        self.user.tolerant = scenario.tolerant
        self._ending = FinalComparison(self.world, self.user)
        self._verify = partial(verify, self.world.reality)
        self._test = unittest.TestCase()
        self._calls = scenario.read(self.world.reality, self._verify, self._test)
        if any(call.verb == 'database_goes_back' for call in self._calls):
            self.world.store.spread(max(LOSSES))
        if any(call.verb == 'harms' for call in self._calls):
            observe(self.world)
        self.world.watch.losses += [self.user.has_forgotten, self._attended_nothing]
        self.checks = OwnChecks(self._calls, partial(resting, scenario))
        self.resting: set[int] = set()
        self._asking: Fiber | None = None
        self._asked: QueuedCall | None = None
        self._rested = False
        self._attended: set[tuple[object, ...]] = set()
        self._patience = 0
        self._waits_until = 0.0
        self.steps = 0
        self.before_step: Callable[[], None] | None = None

    def remaining(self) -> tuple[object, ...]:
        """Return the pending calls and expectations of the user, for comparing states of the same scenario."""
        return (
            len(self._calls),
            self._calls[0].verb if self._calls else '',
            self._asking is not None,
            self._rested,
            self._patience,
            self.user.turned_away,
            self.user.remembers(),
        )

    # --- the loop ---------------------------------------------------------------------------------------------

    def execute(self) -> None:
        """Run to the end.

        :raises Violation: a rule is violated.
        :raises AssertionError: a check of the scenario failed.
        """
        self._play()
        self._ending.check()
        self._try_again()

    def _play(self) -> None:
        if self._plan.mode is Mode.ORDER:
            self._in_order()
        while self._calls or self._asking is not None:
            self._step(self._user_may_go_on)
        self._come_to_rest()

    def _in_order(self) -> None:
        pending: list[QueuedCall] = self._calls
        while pending:
            while self._asking is not None or self._waits_until > self.world.kernel.now:
                self._step()
            call = pending.pop(0)
            if call.verb == 'noop':
                for _ in range(call.arguments[0]):
                    self._deliver_next()
                continue
            if call.verb == 'settle':
                self._come_to_rest()
            self._carry_out(call)
            if call.verb not in INSTANT:
                self._deliver_next()

    def _deliver_next(self) -> None:
        """Deliver one message and finish its work.

        Messages other than checks of nodes are delivered with the next one.
        """
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

    def _user_may_go_on(self) -> bool:
        if self._asking is not None or not self._calls or self._waits_until > self.world.kernel.now:
            return False
        call = self._calls[0]
        if call.verb == 'settle' or (call.verb == 'call' and self._waits_for_rest(call)):
            return self._is_idle()
        if self._patience:
            world = self.world
            if world.bag or world.kernel.runnable() or world.waits_briefly():
                return False
            self._patience = 0
        return True

    def _is_idle(self) -> bool:
        """Return True if nothing is left to do, including repairs of drift."""
        return self.world.is_idle() and not awaited(self.world)

    def _waits_for_rest(self, call: QueuedCall) -> bool:
        return call.arguments[0] == self._verify or self.checks.comes_at_rest(call)

    def _step(self, user_may: Callable[[], bool] = lambda: False) -> bool:
        """Execute one of the possible events; return False if only time passed."""
        world = self.world
        if self.before_step is not None:
            self.before_step()
        self.steps += 1
        if self.steps > self._plan.steps:
            require_repaired(world)
            raise Violation('liveness', f'not at rest after {self._plan.steps} steps: {describe(self.world)}')
        fibers = world.kernel.runnable()
        user = user_may()
        count = len(fibers) + len(world.bag) + user
        if not count and self._attend():
            return True
        if not count:
            world.checker.at_rest()
            world.checker.raise_any()
            world.tick()
            return False
        chosen = self._choices.pick(count)
        if chosen < len(fibers):
            self._turn(fibers[chosen])
        elif chosen < len(fibers) + len(world.bag):
            message = world.bag[chosen - len(fibers)]
            self._patience = max(0, self._patience - 1)
            world.deliver(message)
        else:
            self._carry_out(self._calls.pop(0))
        return True

    def _attend(self) -> bool:
        """If a resource waits for a user, send its signal or clear its hook. Called when nothing happens by itself.

        Return False if none waits.
        """
        if self._asking is not None:
            return False
        for name, row, hook in waiting(self.world):
            key = (row.id, row.hook_traversal_id if hook else row.traversal_id, hook)
            if self.user.ids.get(name) == row.stack_id and key not in self._attended:
                self._attended.add(key)
                verb = (
                    QueuedCall('clear_hook', (name, row.name, hook)) if hook else QueuedCall('signal', (name, row.name))
                )
                self._operation(verb)
                return True
        return False

    def _attended_nothing(self) -> None:
        """Forget which resources have got a signal: it may be lost."""
        self._attended.clear()

    def _turn(self, fiber: Fiber) -> None:
        self.world.kernel.run(fiber)
        if self.world.checker.broken is not None:
            self.world.checker.raise_any()
        if self._asking is not None:
            self._hear()

    def _hear(self) -> None:
        """Check if the user got an answer. If the engine died, its work is unknown and the user repeats the request."""
        asking = self._asking
        if asking is None or (asking.process.alive and not asking.let.dead):
            return
        self._asking = None
        if (self.user.turned_away or not asking.process.alive) and self._asked is not None:
            self._calls.insert(0, replace(self._asked, again=True))
            pause_s = SWEEP_S if self.user.turned_away else 0.0
            self._waits_until = max(self.world.trouble.database_until, self.world.kernel.now + pause_s)
        self.user.turned_away = False

    def _come_to_rest(self) -> None:
        world, sweeps = self.world, 0
        while not self._is_idle() or self._asking is not None:
            if self._step():
                continue
            if world.bag or world.kernel.runnable():
                sweeps += 1
            if sweeps > self._plan.sweeps:
                require_repaired(world)
                raise Violation('liveness', f'not at rest after {sweeps} sweeps: {describe(self.world)}')

    # --- calls ------------------------------------------------------------------------------------------------

    def _carry_out(self, call: QueuedCall) -> None:
        world = self.world
        rested, self._rested = self._rested, False
        match call.verb:
            case 'noop':
                self._patience = self._choices.pick(2 * call.arguments[0] + 1)
            case 'settle':
                self._rested = self.checks.settled = True
            case 'call':
                self._rested = self._check(call, rested=rested)
            case 'behaves':
                world.reality.behave(*call.arguments)
                self._rested = rested
            case 'answers':
                world.reality.answer(*call.arguments)
                self._rested = rested
            case 'exists':
                key, properties = call.arguments
                world.reality.objects[key] = PhysicalObject(key, key, NOBODY, '', properties)
                self._rested = rested
            case 'harms':
                harm_all(world, *call.arguments)
                self._rested = rested
            case 'vanishes':
                world.reality.vanish(call.arguments[0])
                self._rested = rested
            case 'says' if self.world.trouble.drifts or (self.world.losses and self._plan.mode is not Mode.ORDER):
                self.checks.left_out += 1  # changes by an outsider and lost commits may have any result
            case 'says':
                self.user.is_told(*call.arguments)
                self._rested = rested
            case 'rollback_on_failure' | 'time_limit':
                self.user.prefers(call)
                self._rested = rested
            case 'pass_time':
                ends = world.kernel.now + call.arguments[0]
                while world.kernel.now < ends:
                    self._step()
            case verb if verb in ACCIDENTS:
                befall(world, call)
                self._hear()
            case _:
                self._operation(call)

    def _check(self, call: QueuedCall, *, rested: bool) -> bool:
        """Call a function of the scenario. Return True if everything is known to be at rest afterwards."""
        function, arguments, named = call.arguments
        in_order = self._plan.mode is Mode.ORDER
        if in_order and self.world.is_idle():
            self.resting.add(self.checks.place(call))
        if self.world.reality.late or self.world.losses or self.world.trouble.drifts:
            self.checks.left_out += 1
            return rested  # After these faults the state now is not predictable; the final comparison decides.
        own = not in_order and function != self._verify
        if own and not self.checks.may_make(rested=rested or self.checks.comes_at_rest(call)):
            return rested
        function(*arguments, **named)
        return True

    def _operation(self, call: QueuedCall) -> None:
        """Send an operation on a stack to one of the engines; the user waits for the answer."""
        world = self.world
        if not call.again and call.verb not in BESIDE:
            self.checks.operation(at_rest=world.is_idle())
        engine = world.engines[self._choices.pick(len(world.engines))]
        world.watch.story('user', f'{call.verb} {call.arguments[0]}', engine.process.name)
        self._asked = call
        self._asking = world.kernel.spawn(engine.process, call.verb, lambda: self.user.ask(engine, call))
        world.trouble.asked(self._asking)
        if self._plan.mode is Mode.ORDER:
            self._finish_fibers()

    # --- the end ----------------------------------------------------------------------------------------------

    def _try_again(self) -> None:
        """Repeat the goals after all faults have stopped: each stack has to reach its goal from any failed state."""
        calls = self._ending.failed()
        if not calls:
            return
        self.world.trouble.end()
        self.world.reality.behaves_well()
        self.user.starts_afresh()
        self._calls = calls
        self._patience = 0
        self._play()
        self._ending.check()


@dataclass(frozen=True, slots=True)
class Verdict:
    """The result of one run.

    :param choices: all choices of the run; they repeat it.
    :param left_out: number of checks of the scenario that were not made; see
        `convergence_simulator.scenarios.own_checks`.
    """

    scenario: str
    seed: int
    error: str = ''
    rule: str = ''
    choices: tuple[int, ...] = ()
    steps: int = 0
    seconds: float = 0.0
    left_out: int = 0


@lru_cache(maxsize=1024)
def resting(scenario: Scenario) -> frozenset[int]:
    """Return the places of the calls of a scenario at which its ordered run is at rest."""
    run = Run(scenario, RunPlan(mode=Mode.ORDER), Choices())
    # The result of the ordered run is reported elsewhere; only its moments of rest matter here.
    with suppress(Exception):
        run.execute()
    run.world.close()
    return frozenset(run.resting)
