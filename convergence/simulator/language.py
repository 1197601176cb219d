"""The scenario language: a scenario is a small program that queues calls.

The names are those of the field's first convergence prototype, so that its scenarios run as they are.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from convergence.core.model import Action, Json
from convergence.simulator.reality import TYPE, Behaviour, Mishap, Reality


@dataclass(frozen=True, slots=True)
class GetRes:
    """The reference id of another resource."""

    target_name: str


@dataclass(frozen=True, slots=True)
class GetAtt:
    """An attribute of another resource; attributes mirror properties."""

    target_name: str
    attr: str


class RsrcDef:
    """What a scenario wants of one resource."""

    def __init__(self, properties: Mapping[str, Any], depends_on: Sequence[str] = ()) -> None:
        self.properties = dict(properties)
        self.depends_on = list(depends_on)

    def document(self) -> dict[str, Json]:
        """The resource, as a template says it."""
        properties: dict[str, Json] = {name: _encode(value) for name, value in self.properties.items()}
        return {'type': TYPE, 'properties': properties, 'depends_on': list(self.depends_on)}


def _encode(value: Any) -> Json:
    if isinstance(value, GetRes):
        return {'get_resource': value.target_name}
    if isinstance(value, GetAtt):
        return {'get_attr': [value.target_name, value.attr]}
    if isinstance(value, Mapping):
        return {str(key): _encode(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [_encode(item) for item in value]
    encoded: Json = value
    return encoded


class Template:
    """What a scenario wants of a stack."""

    def __init__(self, resources: Mapping[str, RsrcDef] | None = None) -> None:
        self.resources = dict(resources or {})

    def document(self) -> dict[str, Json]:
        """The template, in the language that the engine reads."""
        resources: dict[str, Json] = {name: wanted.document() for name, wanted in self.resources.items()}
        return {'heat_template_version': '2018-08-31', 'resources': resources}


@dataclass(frozen=True, slots=True)
class Call:
    """One queued call of a scenario.

    :param verb: what to do; `arguments` as the verb has them.
    """

    verb: str
    arguments: tuple[Any, ...] = ()


@dataclass
class Verbs:
    """The object called ``engine`` (or ``worker``, or ``converger``) in scenarios. Every method queues a call."""

    queue: list[Call] = field(default_factory=list)

    def create_stack(self, name: str, template: Template) -> None:
        """Create a stack."""
        self.queue.append(Call('create_stack', (name, template)))

    def update_stack(self, name: str, template: Template) -> None:
        """Give a stack a new goal."""
        self.queue.append(Call('update_stack', (name, template)))

    def delete_stack(self, name: str) -> None:
        """Delete a stack."""
        self.queue.append(Call('delete_stack', (name,)))

    def rollback_stack(self, name: str) -> None:
        """Take the last operation on a stack back."""
        self.queue.append(Call('rollback_stack', (name,)))

    def noop(self, rounds: int) -> None:
        """Let so many messages be processed; in seeded mode, any number."""
        self.queue.append(Call('noop', (rounds,)))

    def call(self, function: Callable[..., Any], *arguments: Any, **named: Any) -> None:
        """Call a function of the scenario, for example `verify`."""
        self.queue.append(Call('call', (function, arguments, named)))

    # --- beyond the prototype ---------------------------------------------------------------------------------

    def settle(self) -> None:
        """Let everything come to rest before the next call."""
        self.queue.append(Call('settle'))

    def rollback_on_failure(self, name: str) -> None:
        """From the next operation on, let failures of the stack be rolled back."""
        self.queue.append(Call('rollback_on_failure', (name,)))

    def cancel(self, name: str) -> None:
        """Stop what is in progress, without going back."""
        self.queue.append(Call('cancel', (name,)))

    def fails(
        self, name: str, *, action: str | None = None, after: int = 0, times: int | None = 1, afterwards: bool = False
    ) -> None:
        """Let actions of a resource fail: `times` times (None: always), after `after` that succeed.

        :param afterwards: fail only when the object is there.
        """
        mishap = Mishap.FAILS_AFTERWARDS if afterwards else Mishap.FAILS
        self._behaves(name, mishap, action, after, times)

    def raises(self, name: str, *, action: str | None = None, after: int = 0, times: int | None = 1) -> None:
        """Let a resource raise something that is not even an ordinary error."""
        self._behaves(name, Mishap.RAISES, action, after, times)

    def hangs(self, name: str, *, action: str | None = None, after: int = 0, times: int | None = 1) -> None:
        """Let actions of a resource begin and never end."""
        self._behaves(name, Mishap.HANGS, action, after, times)

    def takes(self, name: str, seconds: float) -> None:
        """Let each action of a resource take some time."""
        self.queue.append(Call('behaves', (name, Behaviour(takes_s=seconds))))

    def works(self, name: str) -> None:
        """From now on a resource does what it should."""
        self.queue.append(Call('behaves', (name, Behaviour())))

    def drop(self, count: int = 1) -> None:
        """Lose the next messages that are in flight."""
        self.queue.append(Call('drop', (count,)))

    def double(self, count: int = 1) -> None:
        """Deliver the next messages that are in flight twice."""
        self.queue.append(Call('double', (count,)))

    def crash_worker(self) -> None:
        """Let one worker die where it stands."""
        self.queue.append(Call('crash_worker'))

    def crash_engine(self) -> None:
        """Let one engine die where it stands."""
        self.queue.append(Call('crash_engine'))

    def pass_time(self, seconds: float) -> None:
        """Let time pass."""
        self.queue.append(Call('pass_time', (seconds,)))

    def _behaves(self, name: str, mishap: Mishap, action: str | None, after: int, times: int | None) -> None:
        behaviour = Behaviour(mishap=mishap, action=Action(action) if action else None, after=after, times=times)
        self.queue.append(Call('behaves', (name, behaviour)))


@dataclass(frozen=True, slots=True)
class Scenario:
    """A scenario file, compiled once and read anew for each run."""

    name: str
    code: Any

    @classmethod
    def load(cls, path: Path) -> Scenario:
        """Read a scenario file.

        :raises SyntaxError: it is no Python.
        """
        return cls(path.stem, compile(path.read_text(encoding='utf-8'), str(path), 'exec'))

    def read(self, reality: Reality, verify: Callable[[Template], None], test: Any) -> list[Call]:
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
        exec(self.code, names)  # a scenario is a program
        return verbs.queue
