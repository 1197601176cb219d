"""The resource type `Test::Thing` and the fake cloud behind it.

"Physical objects" are entries of a dict, so that they can be counted; and a test may have anything done in the middle
of an action: whatever it does there happens while a worker holds the row.
"""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from convergence.core.model import Action, Json
from convergence.resources.contract import (
    Answer,
    Call,
    Done,
    FinalFailure,
    InProgress,
    ObjectNotFound,
    Observed,
    ReplacementNeeded,
    ResourceType,
)
from convergence.resources.schema import prop

# ruff: noqa: RUF009 - prop() makes dataclass fields, like field()

Behaviour = Callable[[Call[Any]], Answer | None]
"""Run instead of a call of the resource type. None: it was only watching, the call goes on as usual."""


@dataclass(frozen=True)
class ThingProperties:
    """`key` replaces, `value` is changed in place, `link` takes any reference."""

    value: str = prop('', update_allowed=True)
    link: Json = prop(None, update_allowed=True)
    key: str = prop('')


@dataclass(frozen=True)
class ThingAttributes:
    """What can be asked of a thing."""

    value: str = ''
    other: str = ''


@dataclass
class Reality:
    """The fake cloud: objects by physical id, and how often each call was made.

    :ivar calls: by verb and resource name.
    :ivar journal: verbs, names and physical ids, in order.
    :ivar asleep: physical ids of suspended objects; `copies` are what snapshots have kept.
    :ivar once: behaviours to be used up, by verb and resource name; `always` are used every time.
    """

    objects: dict[str, dict[str, Any]] = field(default_factory=dict)
    calls: Counter[tuple[str, str]] = field(default_factory=Counter)
    journal: list[tuple[str, str, str | None]] = field(default_factory=list)
    once: dict[tuple[str, str], list[Behaviour]] = field(default_factory=dict)
    always: dict[tuple[str, str], Behaviour] = field(default_factory=dict)
    tokens: dict[str, str] = field(default_factory=dict)
    asleep: set[str] = field(default_factory=set)
    copies: dict[str, Any] = field(default_factory=dict)
    numbers: Any = field(default_factory=lambda: itertools.count(1))

    def happens(self, verb: str, call: Call[Any]) -> Answer | None:
        """A call was made; what it is to be answered instead of the usual, if anything."""
        self.calls[verb, call.name] += 1
        self.journal.append((verb, call.name, call.physical_id))
        waiting = self.once.get((verb, call.name))
        if waiting:
            return waiting.pop(0)(call)
        behaviour = self.always.get((verb, call.name))
        return behaviour(call) if behaviour else None

    def make(self, call: Call[Any]) -> str:
        """A new physical object for a call."""
        physical_id = f'{call.name}-{next(self.numbers)}'
        self.objects[physical_id] = {'name': call.name, 'stack': call.stack_id, **vars(call.properties)}
        self.tokens[call.token] = physical_id
        return physical_id

    def copy(self, call: Call[Any], snapshot_id: str) -> dict[str, Json]:
        """Keep what an object holds; where that is."""
        name = f'{snapshot_id}/{call.name}'
        self.copies[name] = self.objects[call.physical_id or ''].get('content')
        return {'copy': name}

    def names(self) -> list[str]:
        """Names of the resources that the objects belong to, sorted; a name twice: two objects."""
        return sorted(entry['name'] for entry in self.objects.values())

    def values(self) -> dict[str, Any]:
        """The value of each resource's object. Two objects for one name are refused."""
        assert len(set(self.names())) == len(self.objects), self.objects
        return {entry['name']: entry['value'] for entry in self.objects.values()}

    def order(self, verb: str) -> list[str]:
        """For which names a verb was called, in order."""
        return [name for done, name, _ in self.journal if done == verb]


class Thing(ResourceType[ThingProperties]):
    """Makes an entry in `Reality`."""

    Properties = ThingProperties
    Attributes = ThingAttributes

    def __init__(self, reality: Reality) -> None:
        self.reality = reality

    def create(self, call: Call[ThingProperties]) -> Answer:
        """A new object, even if there is one already: nothing here is idempotent by itself."""
        answer = self.reality.happens('create', call)
        return answer if answer is not None else Done(self.reality.make(call))

    def update(self, call: Call[ThingProperties]) -> Answer:
        """Change the object."""
        answer = self.reality.happens('update', call)
        if answer is not None:
            return answer
        if call.physical_id not in self.reality.objects:
            raise ObjectNotFound(f'{call.name}: {call.physical_id} does not exist')
        self.reality.objects[call.physical_id].update(vars(call.properties))
        return Done()

    def delete(self, call: Call[ThingProperties]) -> Answer:
        """Remove the object."""
        answer = self.reality.happens('delete', call)
        if answer is not None:
            return answer
        if self.reality.objects.pop(call.physical_id, None) is None:
            raise ObjectNotFound(f'{call.name}: {call.physical_id} does not exist')
        return Done()

    def poll(self, call: Call[ThingProperties], action: Action, progress: Mapping[str, Json]) -> Answer:
        """Done, unless the test says otherwise."""
        answer = self.reality.happens('poll', call)
        if answer is not None:
            return answer
        if action is Action.DELETE:
            self.reality.objects.pop(call.physical_id, None)
        elif action is Action.UPDATE:
            self.reality.objects[call.physical_id].update(vars(call.properties))
        return Done()

    def find(self, call: Call[ThingProperties]) -> Answer | None:
        """By token."""
        answer = self.reality.happens('find', call)
        physical_id = self.reality.tokens.get(call.token)
        found = Done(physical_id) if physical_id in self.reality.objects else None
        return answer if answer is not None else found

    def observe(self, call: Call[ThingProperties]) -> Observed | None:
        """What it is, if it is there."""
        self.reality.happens('observe', call)
        entry = self.reality.objects.get(call.physical_id or '')
        if entry is None:
            raise ObjectNotFound(f'{call.name}: {call.physical_id} does not exist')
        return Observed(properties={name: entry[name] for name in vars(call.properties) if name in entry})

    def attribute(self, call: Call[ThingProperties], name: str) -> Json:
        """`value` is what the object has."""
        self.reality.happens(f'attribute {name}', call)
        return self.reality.objects[call.physical_id or '']['value']

    def reference_id(self, call: Call[ThingProperties]) -> str | None:
        """The physical id."""
        self.reality.happens('reference', call)
        return call.physical_id

    def needs_replacement(self, call: Call[ThingProperties]) -> bool:
        """Only where the test says so, by an exception."""
        self.reality.happens('compare', call)
        return False

    def cancel(self, call: Call[ThingProperties], action: Action, progress: Mapping[str, Json]) -> None:
        """Noted."""
        self.reality.happens('cancel', call)

    def check(self, call: Call[ThingProperties]) -> Answer:
        """It has to be there."""
        answer = self.reality.happens('check', call)
        return answer if answer is not None else super().check(call)

    def suspend(self, call: Call[ThingProperties]) -> Answer:
        """Put the object to sleep."""
        answer = self.reality.happens('suspend', call)
        if answer is not None:
            return answer
        self.reality.asleep.add(call.physical_id or '')
        return Done()

    def resume(self, call: Call[ThingProperties]) -> Answer:
        """Wake the object up."""
        answer = self.reality.happens('resume', call)
        if answer is not None:
            return answer
        self.reality.asleep.discard(call.physical_id or '')
        return Done()


class KeptThing(Thing):
    """A thing of which snapshots are taken: copies of the object, by snapshot and name."""

    def create(self, call: Call[ThingProperties]) -> Answer:
        """As always, with what a snapshot has kept."""
        answer = super().create(call)
        self._restore(call, answer.physical_id)
        return answer

    def update(self, call: Call[ThingProperties]) -> Answer:
        """As always, with what a snapshot has kept."""
        answer = super().update(call)
        self._restore(call, call.physical_id)
        return answer

    def snapshot(self, call: Call[ThingProperties], snapshot_id: str) -> Answer:
        """A copy of the object."""
        answer = self.reality.happens('snapshot', call)
        if answer is not None:
            return answer
        return Done(kept=self.reality.copy(call, snapshot_id))

    def delete_snapshot(self, call: Call[ThingProperties], snapshot_id: str, kept: Mapping[str, Json]) -> None:
        """Remove the copy, whether its name was heard or not."""
        self.reality.happens('delete_snapshot', call)
        self.reality.copies.pop(f'{snapshot_id}/{call.name}', None)

    def _restore(self, call: Call[ThingProperties], physical_id: str | None) -> None:
        if call.restored_from is not None:
            self.reality.objects[physical_id or '']['content'] = self.reality.copies[call.restored_from['copy']]


class EnforcedThing(Thing):
    """The service behind it makes one object for one token."""

    token_enforced = True

    def create(self, call: Call[ThingProperties]) -> Answer:
        """The object of the token, or a new one."""
        answer = self.reality.happens('create', call)
        if answer is not None:
            return answer
        physical_id = self.reality.tokens.get(call.token)
        return Done(physical_id if physical_id in self.reality.objects else self.reality.make(call))


class TokenThing(EnforcedThing):
    """As before, and nothing else tells what was made."""

    find = ResourceType.find


class HolderThing(Thing):
    """Each holds its name, which there is only once."""

    def create(self, call: Call[ThingProperties]) -> Answer:
        """A new object, unless another one holds the name."""
        answer = self.reality.happens('create', call)
        if answer is not None:
            return answer
        if any(entry['name'] == call.name and entry.get('holds', True) for entry in self.reality.objects.values()):
            raise FinalFailure(f'the name {call.name} is still in use')
        return Done(self.reality.make(call))

    def release_for_replacement(self, call: Call[ThingProperties]) -> None:
        """Give the name up."""
        self.reality.happens('release_for_replacement', call)
        self.reality.objects[call.physical_id or '']['holds'] = False

    def reclaim(self, call: Call[ThingProperties]) -> None:
        """Hold the name again."""
        self.reality.happens('reclaim', call)
        self.reality.objects[call.physical_id or '']['holds'] = True


class PlainThing(Thing):
    """Nobody can tell what was made."""

    find = ResourceType.find


# --- behaviours ---------------------------------------------------------------------------------------------------


def fails(error: BaseException) -> Behaviour:
    """Raise something."""

    def behaviour(call: Call[Any]) -> Answer | None:
        raise error

    return behaviour


def meanwhile(*steps: Callable[[], object]) -> Behaviour:
    """Do something while the row is held; then the call goes on as usual."""

    def behaviour(call: Call[Any]) -> Answer | None:
        for step in steps:
            step()
        return None

    return behaviour


def makes_then(reality: Reality, then: Callable[[], object] | BaseException) -> Behaviour:
    """Make the object, then do something, or raise it: the answer may be lost."""

    def behaviour(call: Call[Any]) -> Answer | None:
        physical_id = reality.make(call)
        if isinstance(then, BaseException):
            raise then
        then()
        return Done(physical_id)

    return behaviour


def starts(reality: Reality) -> Behaviour:
    """A create that takes a while: the object is there, the action is in progress."""
    return lambda call: InProgress({'round': 1}, physical_id=reality.make(call))


def goes_on() -> Behaviour:
    """Not done yet."""
    return lambda call: InProgress({'round': 2})


def wants_replacement() -> Behaviour:
    """Asked too late: only a new object will do."""
    return fails(ReplacementNeeded('only a new one will do'))
