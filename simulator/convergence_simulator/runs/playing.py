"""Play a scenario where nobody decides what happens next: each call of it has its moment, and things take their time.

Simulated seconds pass `SPEED` times faster, and ``noop`` means a moment.
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
    """What a scenario can do to real processes. Kinds are ``engine`` and ``worker``."""

    def crash(self, kind: str) -> None:
        """Kill a process, and start another one."""

    def freeze(self, kind: str, duration_s: float) -> None:
        """Let a process stand still for a while, and then go on."""

    def ended(self) -> list[str]:
        """Which processes have ended by themselves, each with its last words."""


class PlayedRun(ABC):
    """One scenario.

    :param limit_s: after so long without coming to rest the run has failed.
    :param leaves_out: verbs that are not played.
    :ivar left_out: those of them that the scenario has.
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
        """How operations are to be asked for from now on."""

    @abstractmethod
    def _ask(self, call: QueuedCall) -> None:
        """The user asks for an operation."""

    @abstractmethod
    def _busy(self) -> Iterator[str]:
        """What is going on in the stacks."""

    @abstractmethod
    def _look(self) -> None:
        """Called again and again while the scenario waits for rest, and once at rest.

        :raises Violation: something is wrong.
        """

    @abstractmethod
    def _end(self) -> None:
        """All has been asked for, and has come to rest. Is everything as it should be?

        :raises Violation: it is not.
        """

    def execute(self) -> Verdict:
        """Run it to its end; what came of it."""
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
                self._rested = rested  # of a moment that may have been missed
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
        """Let services be, or behave, otherwise."""
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
        """As in a simulation without order: only checks of what has come to rest mean anything."""
        function, arguments, named = call.arguments
        if function == self._verify:
            self._rest()
        if self._rested or rested:
            function(*arguments, **named)
            self._rested = True

    def _verify(self, wanted: Template) -> None:
        verify(self._reality, wanted)

    def _rest(self) -> None:
        """Wait until every stack is in a final state and nobody holds any of its rows."""
        ends = time.monotonic() + self._limit_s
        while busy := list(self._busy()):
            if gone := self._processes.ended():
                raise Violation('processes', f'some have ended by themselves: {"; ".join(gone)}')
            if time.monotonic() > ends:
                raise Violation('liveness', f'not at rest after {self._limit_s:g} s: {"; ".join(busy)}')
            self._look()
            time.sleep(LOOK_EVERY_S)
        self._look()
        self._rested = True
