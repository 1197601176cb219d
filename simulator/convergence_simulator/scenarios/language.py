"""The scenario language: a scenario is a small program that queues calls.

The names are those of the field's first convergence prototype, so that its scenarios run as they are.
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
"""Seconds that what runs has, after a patient cancel, to come to its end."""


@dataclass(frozen=True, slots=True)
class QueuedCall:
    """One queued call of a scenario.

    :param verb: what to do; `arguments` as the verb has them.
    :param again: whether it was asked before, and the engine died or was too busy to answer.
    """

    verb: str
    arguments: tuple[Any, ...] = ()
    again: bool = False


@dataclass
class Original:
    """The calls that the prototype had. Every method queues one."""

    queue: list[QueuedCall] = field(default_factory=list)

    def create_stack(self, name: str, template: Template) -> None:
        """Create a stack."""
        self.queue.append(QueuedCall('create_stack', (name, template)))

    def update_stack(self, name: str, template: Template) -> None:
        """Give a stack a new goal."""
        self.queue.append(QueuedCall('update_stack', (name, template)))

    def delete_stack(self, name: str, leave: Sequence[str] = ()) -> None:
        """Delete a stack, and leave the objects of the resources of some names."""
        self.queue.append(QueuedCall('delete_stack', (name, *leave)))

    def rollback_stack(self, name: str) -> None:
        """Take the last operation on a stack back."""
        self.queue.append(QueuedCall('rollback_stack', (name,)))

    def noop(self, rounds: int = 1) -> None:
        """Let so many messages be processed; in seeded mode, any number."""
        self.queue.append(QueuedCall('noop', (rounds,)))

    def call(self, function: Callable[..., Any], *arguments: Any, **named: Any) -> None:
        """Call a function of the scenario, for example `verify`."""
        self.queue.append(QueuedCall('call', (function, arguments, named)))


@dataclass
class Mishaps(Original):
    """What a resource may do instead of simply succeeding.

    In all of them `action` limits it to one action (``CREATE``, ``UPDATE``, ``DELETE``), `after` is how often the
    action succeeds before, and `times` how often it then goes wrong (None: always).
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

        :param afterwards: fail only when the object is there.
        :param takes: seconds of virtual time that an action takes, if it fails afterwards or not at all.
        """
        mishap = Mishap.FAILS_AFTERWARDS if afterwards else Mishap.FAILS
        self._behaves(name, mishap, action, after, times, takes)

    def raises(self, name: str, *, action: str | None = None, after: int = 0, times: int | None = 1) -> None:
        """Let a resource raise something that is not even an ordinary error."""
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
        """Let calls of a resource not return for some seconds (None: never), whatever is asked of them.

        :param afterwards: what was asked for is done before that, not after it.
        """
        mishap = Mishap.BLOCKS_AFTERWARDS if afterwards else Mishap.BLOCKS
        wanted = Action(action) if action else None
        behaviour = Behaviour(mishap=mishap, action=wanted, after=after, times=times, blocks_s=seconds)
        self.queue.append(QueuedCall('behaves', (name, behaviour)))

    def is_busy(self, name: str, *, action: str | None = None, after: int = 0, times: int | None = 1) -> None:
        """Let a resource say that it could perhaps do it later."""
        self._behaves(name, Mishap.BUSY, action, after, times)

    def is_refused(
        self, name: str, *, after: int = 0, times: int | None = 1, takes: float = 0.0, begun: bool = False
    ) -> None:
        """Let an update in place find out, after some seconds, that only a new object will do.

        :param begun: only when the object was changed already; so it is, too, where it takes some seconds.
        """
        mishap = Mishap.REFUSES_AFTERWARDS if begun and not takes else Mishap.NEEDS_REPLACEMENT
        self._behaves(name, mishap, 'UPDATE', after, times, takes)

    def is_made_silently(self, name: str, *, after: int = 0, times: int | None = 1) -> None:
        """Let a creation fail without saying that the object is there."""
        self._behaves(name, Mishap.FAILS_SILENTLY, 'CREATE', after, times)

    def vanishes(self, name: str) -> None:
        """Let the objects of a resource be removed by somebody else."""
        self.queue.append(QueuedCall('vanishes', (name,)))

    def harms(self, name: str, how: str, *, again: bool = False) -> None:
        """Let somebody else do something to the objects of a resource. There are observers in such a scenario.

        :param how: ``CHANGED`` (a property), ``ILL`` (of no use any more) or ``GONE``.
        :param again: do it again whenever the stack has made or changed them.
        """
        self.queue.append(QueuedCall('harms', (name, Harm(how), again)))

    def takes(self, name: str, seconds: float, every: float | None = None) -> None:
        """Let each action of a resource take some time, and be asked `every` so many seconds how far it is."""
        self.queue.append(QueuedCall('behaves', (name, Behaviour(takes_s=seconds, every_s=every))))

    def works(self, name: str) -> None:
        """From now on a resource does what it should."""
        self.queue.append(QueuedCall('behaves', (name, Behaviour())))

    def _behaves(
        self, name: str, mishap: Mishap, action: str | None, after: int, times: int | None, takes_s: float = 0.0
    ) -> None:
        behaviour = Behaviour(takes_s, mishap, Action(action) if action else None, after, times)
        self.queue.append(QueuedCall('behaves', (name, behaviour)))


@dataclass
class Answers(Mishaps):
    """What a resource may do when it is asked for something else than an action."""

    def answers(
        self, name: str, question: str, how: str, *, seconds: float = 0.0, after: int = 0, times: int | None = 1
    ) -> None:
        """Let a question be answered badly.

        :param question: ``FIND``, ``OBSERVE``, ``ATTRIBUTE`` or ``CANCEL``.
        :param how: ``FAILS``, ``RAISES``, ``BUSY``, ``BLOCKS`` (answers late) or ``LIES`` (does not know what is new).
        :param seconds: how long it takes; of a lie, how long an object has been there before it is known.
        """
        mishap = Mishap(how)
        lies_s, takes_s = (seconds, 0.0) if mishap is Mishap.LIES else (0.0, seconds)
        behaviour = Behaviour(takes_s, mishap, None, after, times, lies_s=lies_s)
        self.queue.append(QueuedCall('answers', (name, Question(question), behaviour)))

    def exists(self, key: str, properties: Mapping[str, Json]) -> None:
        """Let there be an object that belongs to no stack."""
        self.queue.append(QueuedCall('exists', (key, dict(properties))))


@dataclass
class Accidents(Answers):
    """What may happen to processes, messages, broker and database."""

    def drop(self, count: int = 1) -> None:
        """Lose the next messages that are in flight."""
        self.queue.append(QueuedCall('drop', (count,)))

    def double(self, count: int = 1) -> None:
        """Deliver the next messages that are in flight twice."""
        self.queue.append(QueuedCall('double', (count,)))

    def crash_worker(self) -> None:
        """Let one worker die where it stands."""
        self.queue.append(QueuedCall('crash_worker'))

    def crash_engine(self) -> None:
        """Let one engine die where it stands."""
        self.queue.append(QueuedCall('crash_engine'))

    def crash_observer(self) -> None:
        """Let one observer die where it stands."""
        self.queue.append(QueuedCall('crash_observer'))

    def freeze_worker(self, seconds: float) -> None:
        """Let one worker stand still for a while, without a heartbeat, and then go on as if nothing had been."""
        self.queue.append(QueuedCall('freeze_worker', (seconds,)))

    def freeze_engine(self, seconds: float) -> None:
        """Let one engine stand still for a while."""
        self.queue.append(QueuedCall('freeze_engine', (seconds,)))

    def broker_away(self, seconds: float) -> None:
        """Let the broker go away, with all the messages that it had, and come back empty."""
        self.queue.append(QueuedCall('broker_away', (seconds,)))

    def database_away(self, seconds: float) -> None:
        """Let the database not answer for a while: what was asked of it just now may have been done or not."""
        self.queue.append(QueuedCall('database_away', (seconds,)))

    def database_goes_back(self, commits: int) -> None:
        """Let the last commits be lost (60 at most), as when a standby takes over that has not received them."""
        self.queue.append(QueuedCall('database_goes_back', (commits,)))

    def clock_jumps(self, seconds: float) -> None:
        """Let the clock of the database jump ahead, or (negative) back."""
        self.queue.append(QueuedCall('clock_jumps', (seconds,)))


@dataclass
class Measures(Accidents):
    """What is done to a stack without a new goal. While something else goes on, the user asks again."""

    def suspend_stack(self, name: str) -> None:
        """Put a stack to rest."""
        self.queue.append(QueuedCall('suspend_stack', (name,)))

    def resume_stack(self, name: str) -> None:
        """Wake a stack up."""
        self.queue.append(QueuedCall('resume_stack', (name,)))

    def check_stack(self, name: str) -> None:
        """Look whether everything of a stack is there."""
        self.queue.append(QueuedCall('check_stack', (name,)))

    def says_broken(self, name: str, resource: str) -> None:
        """Say that a resource of a stack is of no use, if nothing is being done with it."""
        self.queue.append(QueuedCall('says_broken', (name, resource)))


@dataclass
class FurtherVerbs(Measures):
    """What else a person may ask for. What the stack cannot do any more, or never could, is not done."""

    def signal(self, name: str, resource: str) -> None:
        """Tell a resource something. (One that waits for it is told in the end, even so.)"""
        self.queue.append(QueuedCall('signal', (name, resource)))

    def snapshot_stack(self, name: str) -> None:
        """Take a snapshot of a stack."""
        self.queue.append(QueuedCall('snapshot_stack', (name,)))

    def restore_stack(self, name: str) -> None:
        """Bring a stack back to its newest snapshot."""
        self.queue.append(QueuedCall('restore_stack', (name,)))

    def delete_snapshot(self, name: str) -> None:
        """Delete the newest snapshot of a stack."""
        self.queue.append(QueuedCall('delete_snapshot', (name,)))

    def abandon_stack(self, name: str) -> None:
        """Forget a stack, and leave its objects."""
        self.queue.append(QueuedCall('abandon_stack', (name,)))

    def adopt_stack(self, name: str) -> None:
        """Make a stack again from what was left when it was abandoned."""
        self.queue.append(QueuedCall('adopt_stack', (name,)))

    def go_back(self, name: str) -> None:
        """Bring a stack back to what it was before its last operation, whether that is over or not."""
        self.queue.append(QueuedCall('go_back', (name,)))


@dataclass
class Verbs(FurtherVerbs):
    """The object called ``engine`` (or ``worker``, or ``converger``) in scenarios."""

    def settle(self) -> None:
        """Let everything come to rest before the next call."""
        self.queue.append(QueuedCall('settle'))

    def rollback_on_failure(self, name: str) -> None:
        """From the next operation on, let failures of the stack be rolled back."""
        self.queue.append(QueuedCall('rollback_on_failure', (name,)))

    def time_limit(self, name: str, minutes: int) -> None:
        """From the next operation on, let operations on the stack take no longer than that."""
        self.queue.append(QueuedCall('time_limit', (name, minutes)))

    def cancel(self, name: str) -> None:
        """Stop what is in progress at once, without going back."""
        self.queue.append(QueuedCall('cancel', (name,)))

    def cancel_patiently(self, name: str) -> None:
        """Let nothing more begin, and what runs come to its end in a minute; no way back."""
        self.queue.append(QueuedCall('cancel_patiently', (name,)))

    def cancel_and_roll_back(self, name: str) -> None:
        """Stop the update in progress and go back to what was last up. Too late, nothing happens."""
        self.queue.append(QueuedCall('cancel_and_roll_back', (name,)))

    def refuses(self, verb: str, name: str, *arguments: Any) -> None:
        """Ask for something that has to be refused, and leave nothing behind."""
        self.queue.append(QueuedCall('refuses', (name, verb, *arguments)))

    def says(self, name: str, *states: str) -> None:
        """Verify that the state of a stack, with its reason, begins with one of some texts: ``CREATE_FAILED: ...``."""
        self.queue.append(QueuedCall('says', (name, *states)))

    def pass_time(self, seconds: float) -> None:
        """Let time pass."""
        self.queue.append(QueuedCall('pass_time', (seconds,)))


@dataclass(frozen=True, slots=True)
class Scenario:
    """A scenario file, compiled once and read anew for each run.

    :param tolerant: whether asking for what is refused is no mistake of the author's.
    """

    name: str
    code: Any
    tolerant: bool = False

    @classmethod
    def load(cls, path: Path) -> Scenario:
        """Read a scenario file.

        :raises SyntaxError: it is no Python.
        """
        return cls(path.stem, compile(path.read_text(encoding='utf-8'), str(path), 'exec'))

    @classmethod
    def of(cls, name: str, program: str) -> Scenario:
        """A program that was made up by chance."""
        return cls(name, compile(program, name, 'exec'), tolerant=True)

    def read(self, reality: Reality, verify: Callable[[Template], None], test: Any) -> list[QueuedCall]:
        """The calls that the scenario queues.

        :param test: what the scenario makes its assertions with.
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
