"""Plays a scenario on real processes: each call has its moment, and actions take real time.

Real processes run by themselves; the scenario does not choose the next event. Simulated seconds pass `SPEED` times
faster, and ``noop`` is a short pause.
"""

from __future__ import annotations

import time
import unittest
from abc import ABC, abstractmethod
from collections.abc import Collection, Iterator
from typing import Protocol

from convergence import errors
from convergence.values import replace
from convergence_simulator.cloud.reality import NOBODY, PhysicalObject, Reality
from convergence_simulator.runs.run import Verdict
from convergence_simulator.scenarios.language import QueuedCall, Scenario
from convergence_simulator.scenarios.templates import Template
from convergence_simulator.scenarios.verification import Violation, verify

SPEED = 10.0
MOMENT_S = 0.1
LOOK_EVERY_S = 0.05


class ProcessControl(Protocol):
    """Control of real processes by a scenario. Kinds are ``engine`` and ``worker``."""

    def crash(self, kind: str) -> None:
        """Kill a process, and start another one."""

    def freeze(self, kind: str, duration_s: float) -> None:
        """Stop a process for a while, then let it continue."""

    def ended(self) -> list[str]:
        """Return the processes that have ended unexpectedly, each with its last output."""


class PlayedRun(ABC):
    """One scenario, played on real processes.

    :param limit_s: maximum seconds until rest; then the run has failed.
    :param leaves_out: verbs that are not played.
    :ivar left_out: verbs of the scenario that were not played.
    """

    def __init__(
        self,
        scenario: Scenario,
        reality: Reality,
        processes: ProcessControl,
        leaves_out: Collection[str],
        *,
        limit_s: float,
    ) -> None:
        self._scenario = scenario
        self._reality = reality
        self._processes = processes
        self._leaves_out = leaves_out
        self._limit_s = limit_s
        self._test = unittest.TestCase()
        self._misbehaving = False
        self._rested = False
        self.left_out: list[str] = []

    @abstractmethod
    def _prefers(self, call: QueuedCall) -> None:
        """Set the options of the user's next operations."""

    @abstractmethod
    def _ask(self, call: QueuedCall) -> None:
        """Send the user's request for an operation."""

    @abstractmethod
    def _busy(self) -> Iterator[str]:
        """Yield a description of each activity in the stacks."""

    @abstractmethod
    def _look(self) -> None:
        """Check the state; called repeatedly while the scenario waits for rest, and once at rest.

        :raises Violation: a rule is violated.
        """

    @abstractmethod
    def _end(self) -> None:
        """Compare the final state with the goals, after all requests, at rest.

        :raises Violation: they differ.
        """

    def execute(self) -> Verdict:
        """Run the scenario to its end and return the verdict."""
        began = time.monotonic()
        verdict = Verdict(self._scenario.name, 0)
        try:
            for call in self._scenario.read(self._reality, self._verify, self._test):
                self._carry_out(call)
            self._rest()
            self._end()
        except (AssertionError, errors.ConvergenceError) as error:
            rule = str(getattr(error, 'rule', '') or type(error).__name__)
            verdict = replace(verdict, rule=rule, error=str(error) or rule)
        return replace(verdict, seconds=time.monotonic() - began)

    def _carry_out(self, call: QueuedCall) -> None:
        rested, self._rested = self._rested, False
        match call.verb:
            case verb if verb in self._leaves_out:
                self.left_out.append(verb)
                self._rested = rested
            case 'noop':
                time.sleep(MOMENT_S)
            case 'settle':
                self._rest()
            case 'call':
                self._scenario_function(call, rested)
            case 'says':
                self._rested = rested  # for a moment that may have been missed
            case 'rollback_on_failure' | 'time_limit':
                self._prefers(call)
                self._rested = rested
            case 'crash_worker' | 'crash_engine':
                self._processes.crash(call.verb.removeprefix('crash_'))
            case 'freeze_worker' | 'freeze_engine':
                self._processes.freeze(call.verb.removeprefix('freeze_'), call.arguments[0] / SPEED)
            case 'pass_time':
                time.sleep(call.arguments[0] / SPEED)
            case 'behaves' | 'answers' | 'exists' | 'vanishes':
                self._prepare(call)
                self._rested = rested
            case _:
                self._ask(call)

    def _prepare(self, call: QueuedCall) -> None:
        """Set the behaviour of services."""
        match call.verb:
            case 'exists':
                key, properties = call.arguments
                self._reality.objects[key] = PhysicalObject(key, key, NOBODY, '', properties)
                return
            case 'vanishes':
                self._reality.vanish(call.arguments[0])
            case 'behaves':
                name, behaviour = call.arguments
                blocks_s = None if behaviour.blocks_s is None else behaviour.blocks_s / SPEED
                faster = replace(behaviour, takes_s=behaviour.takes_s / SPEED, blocks_s=blocks_s)
                self._reality.behave(name, faster)
            case 'answers':
                name, question, behaviour = call.arguments
                faster = replace(behaviour, takes_s=behaviour.takes_s / SPEED, lies_s=behaviour.lies_s / SPEED)
                self._reality.answer(name, question, faster)
        self._misbehaving = True

    def _scenario_function(self, call: QueuedCall, rested: bool) -> None:
        """Call a function of the scenario. As in seeded mode, only checks of a state at rest are valid."""
        function, arguments, named = call.arguments
        if function == self._verify:
            self._rest()
        if self._rested or rested:
            function(*arguments, **named)
            self._rested = True

    def _verify(self, wanted: Template) -> None:
        verify(self._reality, wanted)

    def _rest(self) -> None:
        """Wait until every stack is in a final state and no worker has claimed any of its rows."""
        ends = time.monotonic() + self._limit_s
        while busy := list(self._busy()):
            if gone := self._processes.ended():
                raise Violation('processes', f'processes ended unexpectedly: {"; ".join(gone)}')
            if time.monotonic() > ends:
                raise Violation('liveness', f'not at rest after {self._limit_s:g} s: {"; ".join(busy)}')
            self._look()
            time.sleep(LOOK_EVERY_S)
        self._look()
        self._rested = True
