"""The scenario language: a scenario is a small Python program that queues calls.

The names are those of the field's first convergence prototype, so that its scenarios run unchanged.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from convergence.core.model import Action, Json
from convergence_simulator.cloud.reality import Behaviour, Harm, Mishap, Question, Reality
from convergence_simulator.scenarios.templates import GetAtt, GetRes, RsrcDef, Template

PATIENCE_S = 60.0
"""Seconds that running actions get to finish after a patient cancel."""


@dataclass(frozen=True, slots=True)
class QueuedCall:
    """One queued call of a scenario.

    :param verb: name of the operation.
    :param arguments: arguments of the operation.
    :param again: True if the user repeats the call because the engine died or was too busy to answer.
    """

    verb: str
    arguments: tuple[Any, ...] = ()
    again: bool = False


@dataclass
class Original:
    """The calls of the prototype. Each method queues one call."""

    queue: list[QueuedCall] = field(default_factory=list)

    def create_stack(self, name: str, template: Template) -> None:
        """Create a stack."""
        self.queue.append(QueuedCall('create_stack', (name, template)))

    def update_stack(self, name: str, template: Template) -> None:
        """Give a stack a new goal."""
        self.queue.append(QueuedCall('update_stack', (name, template)))

    def delete_stack(self, name: str, leave: Sequence[str] = ()) -> None:
        """Delete a stack, but keep the objects of the resources named in `leave`."""
        self.queue.append(QueuedCall('delete_stack', (name, *leave)))

    def rollback_stack(self, name: str) -> None:
        """Undo the last operation on a stack."""
        self.queue.append(QueuedCall('rollback_stack', (name,)))

    def noop(self, rounds: int = 1) -> None:
        """Process `rounds` messages; in seeded mode, any number."""
        self.queue.append(QueuedCall('noop', (rounds,)))

    def call(self, function: Callable[..., Any], *arguments: Any, **named: Any) -> None:
        """Call a function of the scenario, for example `verify`."""
        self.queue.append(QueuedCall('call', (function, arguments, named)))


@dataclass
class Mishaps(Original):
    """Ways in which a resource may fail.

    In all methods `action` limits the failure to one action (``CREATE``, ``UPDATE``, ``DELETE``), `after` is the number
    of successful actions before the first failure, and `times` the number of failures (None: no limit).
    """

    def fails(
        self,
        name: str,
        *,
        action: str | None = None,
        after: int = 0,
        times: int | None = 1,
        afterwards: bool = False,
        takes: float = 0.0,
    ) -> None:
        """Let actions of a resource fail.

        :param afterwards: True to fail only after the object exists.
        :param takes: seconds of virtual time that an action takes before it succeeds or fails afterwards.
        """
        mishap = Mishap.FAILS_AFTERWARDS if afterwards else Mishap.FAILS
        self._behaves(name, mishap, action, after, times, takes)

    def raises(self, name: str, *, action: str | None = None, after: int = 0, times: int | None = 1) -> None:
        """Let a resource raise an exception that is no subclass of ``Exception``."""
        self._behaves(name, Mishap.RAISES, action, after, times)

    def hangs(self, name: str, *, action: str | None = None, after: int = 0, times: int | None = 1) -> None:
        """Let actions of a resource begin and never end."""
        self._behaves(name, Mishap.HANGS, action, after, times)

    def blocks(
        self,
        name: str,
        seconds: float | None = None,
        *,
        action: str | None = None,
        after: int = 0,
        times: int | None = 1,
        afterwards: bool = False,
    ) -> None:
        """Let all calls of a resource block for some seconds (None: for ever).

        :param afterwards: True to do the requested action before the call blocks, False to do it after.
        """
        mishap = Mishap.BLOCKS_AFTERWARDS if afterwards else Mishap.BLOCKS
        wanted = Action(action) if action else None
        behaviour = Behaviour(mishap=mishap, action=wanted, after=after, times=times, blocks_s=seconds)
        self.queue.append(QueuedCall('behaves', (name, behaviour)))

    def is_busy(self, name: str, *, action: str | None = None, after: int = 0, times: int | None = 1) -> None:
        """Let a resource answer that it is busy and the action can be tried again later."""
        self._behaves(name, Mishap.BUSY, action, after, times)

    def is_refused(
        self, name: str, *, after: int = 0, times: int | None = 1, takes: float = 0.0, begun: bool = False
    ) -> None:
        """Let an update in place fail after some seconds, because the resource has to be replaced.

        :param begun: True to change the object before the update fails. An update that takes some seconds always
            changes it.
        """
        mishap = Mishap.REFUSES_AFTERWARDS if begun and not takes else Mishap.NEEDS_REPLACEMENT
        self._behaves(name, mishap, 'UPDATE', after, times, takes)

    def is_made_silently(self, name: str, *, after: int = 0, times: int | None = 1) -> None:
        """Let a creation fail although the object exists; the answer does not mention it."""
        self._behaves(name, Mishap.FAILS_SILENTLY, 'CREATE', after, times)

    def vanishes(self, name: str) -> None:
        """Let an outsider remove the objects of a resource."""
        self.queue.append(QueuedCall('vanishes', (name,)))

    def harms(self, name: str, how: str, *, again: bool = False) -> None:
        """Let an outsider change the objects of a resource. Such a scenario has observers.

        :param how: ``CHANGED`` (a property), ``ILL`` (unusable) or ``GONE``.
        :param again: True to repeat the change each time the stack creates or updates them.
        """
        self.queue.append(QueuedCall('harms', (name, Harm(how), again)))

    def takes(self, name: str, seconds: float, every: float | None = None) -> None:
        """Let each action of a resource take some time, and let the worker poll it every `every` seconds."""
        self.queue.append(QueuedCall('behaves', (name, Behaviour(takes_s=seconds, every_s=every))))

    def works(self, name: str) -> None:
        """Let a resource succeed from now on."""
        self.queue.append(QueuedCall('behaves', (name, Behaviour())))

    def _behaves(
        self, name: str, mishap: Mishap, action: str | None, after: int, times: int | None, takes_s: float = 0.0
    ) -> None:
        behaviour = Behaviour(takes_s, mishap, Action(action) if action else None, after, times)
        self.queue.append(QueuedCall('behaves', (name, behaviour)))


@dataclass
class Answers(Mishaps):
    """Ways in which a resource may answer calls that are no actions."""

    def answers(
        self, name: str, question: str, how: str, *, seconds: float = 0.0, after: int = 0, times: int | None = 1
    ) -> None:
        """Let a resource answer a call wrongly.

        :param question: ``FIND``, ``OBSERVE``, ``ATTRIBUTE`` or ``CANCEL``.
        :param how: ``FAILS``, ``RAISES``, ``BUSY``, ``BLOCKS`` (answers late) or ``LIES`` (does not know new objects
            yet).
        :param seconds: duration of the call; for ``LIES``, the age at which an object is known.
        """
        mishap = Mishap(how)
        lies_s, takes_s = (seconds, 0.0) if mishap is Mishap.LIES else (0.0, seconds)
        behaviour = Behaviour(takes_s, mishap, None, after, times, lies_s=lies_s)
        self.queue.append(QueuedCall('answers', (name, Question(question), behaviour)))

    def exists(self, key: str, properties: Mapping[str, Json]) -> None:
        """Create an object that belongs to no stack."""
        self.queue.append(QueuedCall('exists', (key, dict(properties))))


@dataclass
class Accidents(Answers):
    """Accidents of processes, messages, broker and database."""

    def drop(self, count: int = 1) -> None:
        """Lose the next `count` messages in flight."""
        self.queue.append(QueuedCall('drop', (count,)))

    def double(self, count: int = 1) -> None:
        """Deliver the next `count` messages in flight twice."""
        self.queue.append(QueuedCall('double', (count,)))

    def crash_worker(self) -> None:
        """Kill one worker at its current step."""
        self.queue.append(QueuedCall('crash_worker'))

    def crash_engine(self) -> None:
        """Kill one engine at its current step."""
        self.queue.append(QueuedCall('crash_engine'))

    def crash_observer(self) -> None:
        """Kill one observer at its current step."""
        self.queue.append(QueuedCall('crash_observer'))

    def freeze_worker(self, seconds: float) -> None:
        """Let one worker stand still for a while, without a heartbeat; it continues without knowing about the pause."""
        self.queue.append(QueuedCall('freeze_worker', (seconds,)))

    def freeze_engine(self, seconds: float) -> None:
        """Let one engine stand still for a while."""
        self.queue.append(QueuedCall('freeze_engine', (seconds,)))

    def broker_away(self, seconds: float) -> None:
        """Take the broker away for a while. It loses all its messages and comes back empty."""
        self.queue.append(QueuedCall('broker_away', (seconds,)))

    def database_away(self, seconds: float) -> None:
        """Take the database away for a while. A transaction in progress may be committed or not."""
        self.queue.append(QueuedCall('database_away', (seconds,)))

    def database_goes_back(self, commits: int) -> None:
        """Lose the last commits (60 at most), as when a standby is promoted that has not received them."""
        self.queue.append(QueuedCall('database_goes_back', (commits,)))

    def clock_jumps(self, seconds: float) -> None:
        """Move the clock of the database forward, or back with a negative number."""
        self.queue.append(QueuedCall('clock_jumps', (seconds,)))


@dataclass
class Measures(Accidents):
    """Operations on a stack that set no new goal. The user repeats the call while another operation is in progress."""

    def suspend_stack(self, name: str) -> None:
        """Suspend a stack."""
        self.queue.append(QueuedCall('suspend_stack', (name,)))

    def resume_stack(self, name: str) -> None:
        """Resume a stack."""
        self.queue.append(QueuedCall('resume_stack', (name,)))

    def check_stack(self, name: str) -> None:
        """Check that all objects of a stack exist."""
        self.queue.append(QueuedCall('check_stack', (name,)))

    def says_broken(self, name: str, resource: str) -> None:
        """Mark a resource of a stack as unhealthy, unless an action on it is in progress."""
        self.queue.append(QueuedCall('says_broken', (name, resource)))


@dataclass
class FurtherVerbs(Measures):
    """Further requests of a user. A request that the stack cannot carry out in its state has no effect."""

    def signal(self, name: str, resource: str) -> None:
        """Send a signal to a resource.

        (At the end, each resource that still waits for a signal gets one without this call.)
        """
        self.queue.append(QueuedCall('signal', (name, resource)))

    def snapshot_stack(self, name: str) -> None:
        """Take a snapshot of a stack."""
        self.queue.append(QueuedCall('snapshot_stack', (name,)))

    def restore_stack(self, name: str) -> None:
        """Restore a stack from its newest snapshot."""
        self.queue.append(QueuedCall('restore_stack', (name,)))

    def delete_snapshot(self, name: str) -> None:
        """Delete the newest snapshot of a stack."""
        self.queue.append(QueuedCall('delete_snapshot', (name,)))

    def abandon_stack(self, name: str) -> None:
        """Abandon a stack: remove its rows and keep its objects."""
        self.queue.append(QueuedCall('abandon_stack', (name,)))

    def adopt_stack(self, name: str) -> None:
        """Adopt the objects of an abandoned stack into a new stack."""
        self.queue.append(QueuedCall('adopt_stack', (name,)))

    def go_back(self, name: str) -> None:
        """Bring a stack back to its state before the last operation, finished or not."""
        self.queue.append(QueuedCall('go_back', (name,)))


@dataclass
class Verbs(FurtherVerbs):
    """The object called ``engine`` (or ``worker``, or ``converger``) in scenarios."""

    def settle(self) -> None:
        """Wait until nothing is left to do before the next call."""
        self.queue.append(QueuedCall('settle'))

    def rollback_on_failure(self, name: str) -> None:
        """Roll back failures of the stack, from the next operation on."""
        self.queue.append(QueuedCall('rollback_on_failure', (name,)))

    def time_limit(self, name: str, minutes: int) -> None:
        """Set the time limit of operations on the stack, from the next one on."""
        self.queue.append(QueuedCall('time_limit', (name, minutes)))

    def cancel(self, name: str) -> None:
        """Stop the operation in progress at once, without a rollback."""
        self.queue.append(QueuedCall('cancel', (name,)))

    def cancel_patiently(self, name: str) -> None:
        """Start no new action, and let the running actions finish within a minute; no rollback."""
        self.queue.append(QueuedCall('cancel_patiently', (name,)))

    def cancel_and_roll_back(self, name: str) -> None:
        """Stop the update in progress and roll back to the last completed goal.

        If the update is over, nothing happens.
        """
        self.queue.append(QueuedCall('cancel_and_roll_back', (name,)))

    def refuses(self, verb: str, name: str, *arguments: Any) -> None:
        """Request an operation that must be refused and must change nothing."""
        self.queue.append(QueuedCall('refuses', (name, verb, *arguments)))

    def says(self, name: str, *states: str) -> None:
        """Verify that the state of a stack, with its reason, begins with one of these texts: ``CREATE_FAILED: ...``."""
        self.queue.append(QueuedCall('says', (name, *states)))

    def pass_time(self, seconds: float) -> None:
        """Let some seconds pass."""
        self.queue.append(QueuedCall('pass_time', (seconds,)))


@dataclass(frozen=True, slots=True)
class Scenario:
    """A scenario file, compiled once and executed again for each run.

    :param tolerant: True if a refused request does not count as an error of the scenario.
    """

    name: str
    code: Any
    tolerant: bool = False

    @classmethod
    def load(cls, path: Path) -> Scenario:
        """Read a scenario file.

        :raises SyntaxError: the file is no Python program.
        """
        return cls(path.stem, compile(path.read_text(encoding='utf-8'), str(path), 'exec'))

    @classmethod
    def of(cls, name: str, program: str) -> Scenario:
        """Return a scenario from the text of a random program."""
        return cls(name, compile(program, name, 'exec'), tolerant=True)

    def read(self, reality: Reality, verify: Callable[[Template], None], test: Any) -> list[QueuedCall]:
        """Execute the program and return the calls that it queues.

        :param test: object with the assertion methods of the scenario.
        """
        verbs = Verbs()
        names = {
            'Template': Template,
            'RsrcDef': RsrcDef,
            'GetRes': GetRes,
            'GetAtt': GetAtt,
            'engine': verbs,
            'worker': verbs,
            'converger': verbs,
            'reality': reality,
            'verify': verify,
            'test': test,
            '__name__': self.name,
        }
        exec(self.code, names)  # noqa: S102 - a scenario is a program
        return verbs.queue
