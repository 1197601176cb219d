"""A cloud that exists only here: what is really there, made and unmade through a resource type like any other."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from convergence.core.model import Action, Json
from convergence.resources.attributes import AnyAttribute
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
    TransientFailure,
)
from convergence.resources.schema import remaining

TYPE = 'Convergence::Simulated::Thing'


@dataclass(eq=False)
class PhysicalObject:
    """One thing that exists.

    :ivar properties: what it was made with, or changed to.
    :ivar asleep: whether it is suspended; then it cannot be changed.
    """

    id: str
    name: str
    stack_id: str
    token: str
    properties: dict[str, Json]
    asleep: bool = False


class Mishap(StrEnum):
    """What an action of a resource may do instead of simply succeeding."""

    FAILS = 'FAILS'
    RAISES = 'RAISES'
    FAILS_AFTERWARDS = 'FAILS_AFTERWARDS'
    HANGS = 'HANGS'
    BUSY = 'BUSY'
    NEEDS_REPLACEMENT = 'NEEDS_REPLACEMENT'
    BLOCKS = 'BLOCKS'
    BLOCKS_AFTERWARDS = 'BLOCKS_AFTERWARDS'


@dataclass
class Behaviour:
    """How a resource behaves.

    :ivar takes_s: how long each action takes, in seconds of virtual time.
    :ivar every_s: how often it wants to be asked meanwhile; None for once, at the end.
    :ivar mishap: what goes wrong, in the action `action` only if that is given.
    :ivar after: how many times the action succeeds before that.
    :ivar times: how often it goes wrong; None for always.
    :ivar blocks_s: how long a call that blocks does not return; None for ever.
    """

    takes_s: float = 0.0
    mishap: Mishap | None = None
    action: Action | None = None
    after: int = 0
    times: int | None = None
    every_s: float | None = None
    blocks_s: float | None = None


@dataclass
class Reality:
    """Everything that really exists, and how often anything was done.

    :ivar mishaps: how often anything has gone wrong.
    :ivar vanished: whether somebody else has removed anything.
    :ivar late: what was done last to each object by somebody who had lost its row by then: no service can refuse it.
    :ivar too_late: keys of two rows: the deletion of the first could begin before it was known that there is the
        second, which was built on it.
    :ivar pause: called where a call to a real service could be interrupted.
    :ivar block: called where a call does not return for so many seconds, or (None) ever, whatever is asked of it.
    :ivar changed: called after each change with what was done and to which object.
    """

    objects: dict[str, PhysicalObject] = field(default_factory=dict)
    behaviours: dict[str, Behaviour] = field(default_factory=dict)
    counts: dict[tuple[str, Action], int] = field(default_factory=dict)
    made: dict[str, int] = field(default_factory=dict)
    mishaps: int = 0
    vanished: bool = False
    late: dict[str, Action] = field(default_factory=dict)
    too_late: set[tuple[str, str]] = field(default_factory=set)
    now: Callable[[], float] = lambda: 0.0
    pause: Callable[[str], None] = lambda point: None
    block: Callable[[float | None], None] = lambda duration_s: None
    changed: Callable[[Action, PhysicalObject], None] = lambda action, thing: None

    def resources_by_logical_name(self, name: str) -> dict[str, PhysicalObject]:
        """The objects of a resource name, by physical id."""
        return {key: thing for key, thing in self.objects.items() if thing.name == name}

    def all_resources(self) -> dict[str, PhysicalObject]:
        """All objects, by physical id."""
        return dict(self.objects)

    def create(self, name: str, stack_id: str, token: str, properties: Mapping[str, Json]) -> PhysicalObject:
        """Make an object."""
        number = sum(self.made.values()) + 1
        thing = PhysicalObject(f'{name}-{number}', name, stack_id, token, dict(properties))
        self.objects[thing.id] = thing
        self.made[token] = self.made.get(token, 0) + 1
        self.changed(Action.CREATE, thing)
        return thing

    def goes_wrong(self, name: str, action: Action) -> Mishap | None:
        """Count an action of a resource, and tell what goes wrong with it this time."""
        behaviour = self.behaviours.get(name)
        if behaviour is None or behaviour.mishap is None or behaviour.action not in (None, action):
            return None
        done = self.counts.get((name, action), 0)
        self.counts[name, action] = done + 1
        if done < behaviour.after:
            return None
        if behaviour.times is not None and done >= behaviour.after + behaviour.times:
            return None
        self.mishaps += 1
        return behaviour.mishap

    def behave(self, name: str, behaviour: Behaviour) -> None:
        """From now on a resource behaves like that."""
        self.behaviours[name] = behaviour
        for key in [key for key in self.counts if key[0] == name]:
            del self.counts[key]

    def vanish(self, name: str) -> None:
        """Somebody else removes the objects of a resource name."""
        self.vanished = True
        for key in self.resources_by_logical_name(name):
            self.mishaps += 1
            del self.objects[key]


@dataclass(frozen=True)
class ThingProperties:
    """Whatever the scenario says."""

    values: dict[str, Json] = remaining(description='Any property.')  # noqa: RUF009 - makes a field


class AtRest(ResourceType[ThingProperties]):
    """What is done to an object as it is; how an action begins and ends is told below."""

    _reality: Reality
    _begin: Callable[[Call[ThingProperties], Action], Mishap | None]
    _end: Callable[[Call[ThingProperties], Mishap | None, str], Answer]
    _existing: Callable[[Call[ThingProperties]], PhysicalObject]

    def check(self, call: Call[ThingProperties]) -> Answer:
        """It has to be there."""
        mishap = self._begin(call, Action.CHECK)
        return self._end(call, mishap, self._existing(call).id)

    def suspend(self, call: Call[ThingProperties]) -> Answer:
        """From now on it cannot be changed."""
        return self._rest(call, Action.SUSPEND, asleep=True)

    def resume(self, call: Call[ThingProperties]) -> Answer:
        """From now on it can be changed."""
        return self._rest(call, Action.RESUME, asleep=False)

    def _rest(self, call: Call[ThingProperties], action: Action, *, asleep: bool) -> Answer:
        mishap = self._begin(call, action)
        thing = self._existing(call)
        thing.asleep = asleep
        self._reality.changed(action, thing)
        self._reality.pause('rested')
        return self._end(call, mishap, thing.id)


class Thing(AtRest):
    """An object in the simulated cloud. A property whose name has a ``!`` in it cannot be changed in place."""

    Properties = ThingProperties
    Attributes = AnyAttribute

    def __init__(self, reality: Reality) -> None:
        self._reality = reality

    def create(self, call: Call[ThingProperties]) -> Answer:
        """Make it; the id is known when the call returns, so a crash in between loses it."""
        reality = self._reality
        mishap = self._begin(call, Action.CREATE)
        thing = reality.create(call.name, call.stack_id, call.token, call.properties.values)
        reality.pause('created')
        self._linger(call, mishap)
        return self._end(call, mishap, thing.id)

    def update(self, call: Call[ThingProperties]) -> Answer:
        """Change it in place."""
        mishap = self._begin(call, Action.UPDATE)
        thing = self._existing(call)
        if thing.asleep:
            raise FinalFailure(f'{call.name} cannot be changed while it is suspended')
        thing.properties = dict(call.properties.values)
        self._reality.changed(Action.UPDATE, thing)
        self._reality.pause('updated')
        self._linger(call, mishap)
        return self._end(call, mishap, thing.id)

    def delete(self, call: Call[ThingProperties]) -> Answer:
        """Remove it."""
        mishap = self._begin(call, Action.DELETE)
        thing = self._existing(call)
        behaviour = self._reality.behaviours.get(call.name)
        if mishap is Mishap.HANGS:
            return InProgress({'hangs': True}, poll_after_s=60.0)
        if behaviour is not None and behaviour.takes_s:
            return self._takes(behaviour, mishap, thing.id)
        self._remove(thing)
        self._linger(call, mishap)
        if mishap is Mishap.FAILS_AFTERWARDS:
            raise FinalFailure(f'{call.name} fails after it was removed')
        return Done()

    def poll(self, call: Call[ThingProperties], action: Action, progress: Mapping[str, Json]) -> Answer:
        """Done when its time has come; not while it hangs."""
        self._reality.pause('poll')
        until, now = progress.get('until'), self._reality.now()
        behaviour = self._reality.behaviours.get(call.name)
        if progress.get('hangs') and behaviour is not None and behaviour.mishap is Mishap.HANGS:
            return InProgress(progress, poll_after_s=60.0)
        if isinstance(until, (int, float)) and until > now:
            every_s = progress.get('every_s')
            left_s = until - now
            return InProgress(progress, poll_after_s=min(every_s, left_s) if isinstance(every_s, float) else left_s)
        if progress.get('refuses'):
            raise ReplacementNeeded(f'{call.name} cannot be changed in place after all')
        if progress.get('fails'):
            raise FinalFailure(f'{action} of {call.name} fails after a while')
        if action is Action.DELETE:
            self._remove(self._existing(call))
        return Done(call.physical_id)

    def find(self, call: Call[ThingProperties]) -> Answer | None:
        """The object that was made under the token."""
        self._reality.pause('find')
        for thing in self._reality.objects.values():
            if thing.token == call.token:
                return Done(thing.id)
        return None

    def observe(self, call: Call[ThingProperties]) -> Observed | None:
        """What is there."""
        self._reality.pause('observe')
        return Observed(properties=dict(self._existing(call).properties))

    def needs_replacement(self, call: Call[ThingProperties]) -> bool:
        """Whether a property with a ``!`` changes."""
        before = call.previous.values if call.previous is not None else {}
        after = call.properties.values
        return any('!' in name and before.get(name) != after.get(name) for name in {*before, *after})

    def attribute(self, call: Call[ThingProperties], name: str) -> Json:
        """Attributes mirror properties."""
        return call.properties.values.get(name)

    def _begin(self, call: Call[ThingProperties], action: Action) -> Mishap | None:
        self._reality.pause('call')
        mishap = self._reality.goes_wrong(call.name, action)
        if mishap is Mishap.BLOCKS:
            self._reality.block(self._reality.behaviours[call.name].blocks_s)
        if mishap is Mishap.FAILS:
            raise FinalFailure(f'{action} of {call.name} fails')
        if mishap is Mishap.RAISES:
            raise SystemExit(f'{action} of {call.name} raises something unheard of')
        if mishap is Mishap.BUSY:
            raise TransientFailure(f'{call.name} is busy')
        if mishap is Mishap.NEEDS_REPLACEMENT and not self._reality.behaviours[call.name].takes_s:
            raise ReplacementNeeded(f'{call.name} cannot be changed in place after all')
        return mishap

    def _linger(self, call: Call[ThingProperties], mishap: Mishap | None) -> None:
        """What was asked for is done, but the call does not return yet."""
        if mishap is Mishap.BLOCKS_AFTERWARDS:
            self._reality.block(self._reality.behaviours[call.name].blocks_s)

    def _end(self, call: Call[ThingProperties], mishap: Mishap | None, physical_id: str) -> Answer:
        behaviour = self._reality.behaviours.get(call.name)
        if mishap is Mishap.HANGS:
            return InProgress({'hangs': True}, physical_id=physical_id, poll_after_s=60.0)
        if behaviour is not None and behaviour.takes_s:
            return self._takes(behaviour, mishap, physical_id)
        if mishap is Mishap.FAILS_AFTERWARDS:
            raise FinalFailure(f'{call.name} fails after it was made', physical_id=physical_id)
        return Done(physical_id)

    def _takes(self, behaviour: Behaviour, mishap: Mishap | None, physical_id: str) -> Answer:
        progress: dict[str, Json] = {
            'until': self._reality.now() + behaviour.takes_s,
            'fails': mishap is Mishap.FAILS_AFTERWARDS,
            'refuses': mishap is Mishap.NEEDS_REPLACEMENT,
            'every_s': behaviour.every_s,
        }
        wait_s = behaviour.takes_s if behaviour.every_s is None else min(behaviour.every_s, behaviour.takes_s)
        return InProgress(progress, physical_id=physical_id, poll_after_s=wait_s)

    def _existing(self, call: Call[ThingProperties]) -> PhysicalObject:
        thing = self._reality.objects.get(call.physical_id or '')
        if thing is None:
            raise ObjectNotFound(f'{call.name} ({call.physical_id}) does not exist')
        return thing

    def _remove(self, thing: PhysicalObject) -> None:
        del self._reality.objects[thing.id]
        self._reality.changed(Action.DELETE, thing)
        self._reality.pause('deleted')
