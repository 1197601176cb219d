"""A simulated cloud: the objects that really exist, and the behaviour of its services."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from convergence.core.model import Action, Json
from convergence.core.rows import Resource
from convergence.resources.contract import FinalFailure, TransientFailure
from convergence.values import replace

TYPE = 'Convergence::Simulated::Thing'
"""The resource type of most scenarios; `convergence_simulator.cloud.sorts` has the others."""
NOBODY = ''
"""In place of the id of a stack: the object belongs to no stack, or no longer does."""


class PhysicalId(str):
    """A physical id. In scenarios it also has an attribute, as a row does."""

    __slots__ = ()

    @property
    def uuid(self) -> str:
        """The id itself."""
        return self


class Harm(StrEnum):
    """Changes of an object by an outsider: a property changes, the object becomes unusable, or it is removed."""

    CHANGED = 'CHANGED'
    ILL = 'ILL'
    GONE = 'GONE'


@dataclass(eq=False)
class PhysicalObject:
    """One object that exists.

    :ivar properties: properties from its creation or its last update.
    :ivar asleep: True while it is suspended; then it cannot be changed.
    :ivar kind: the resource type that created it.
    :ivar made_at: time of its creation on the simulated clock.
    :ivar key: the key that its type has chosen.
    :ivar ill: True if it is unusable.
    :ivar before: properties that the last update assumed, if they were wrong; otherwise None.
    :ivar was: its real properties at that time.
    :ivar has_address: True if it is reachable under its name; of some types only one object of a name is.
    :ivar denied: True if its creation reported that no object was created. Then a search finds the object at any age: a
        type may be wrong about one of the two, not about both.
    """

    id: str
    name: str
    stack_id: str
    token: str
    properties: dict[str, Json]
    asleep: bool = False
    kind: str = TYPE
    made_at: float = 0.0
    before: dict[str, Json] | None = None
    was: dict[str, Json] = field(default_factory=dict)
    key: str = ''
    has_address: bool = True
    ill: bool = False
    denied: bool = False


@dataclass(frozen=True, slots=True)
class HarmedObject:
    """An object that an outsider has changed.

    :param left: the properties that its stack set last.
    """

    thing: PhysicalObject
    harm: Harm
    left: dict[str, Json]


class Question(StrEnum):
    """Calls to a service that are no actions."""

    FIND = 'FIND'
    OBSERVE = 'OBSERVE'
    ATTRIBUTE = 'ATTRIBUTE'
    CANCEL = 'CANCEL'


class Mishap(StrEnum):
    """Ways in which an action of a resource, or another call, may fail."""

    FAILS = 'FAILS'
    RAISES = 'RAISES'
    FAILS_AFTERWARDS = 'FAILS_AFTERWARDS'
    FAILS_SILENTLY = 'FAILS_SILENTLY'
    REFUSES_AFTERWARDS = 'REFUSES_AFTERWARDS'
    LIES = 'LIES'
    HANGS = 'HANGS'
    BUSY = 'BUSY'
    NEEDS_REPLACEMENT = 'NEEDS_REPLACEMENT'
    BLOCKS = 'BLOCKS'
    BLOCKS_AFTERWARDS = 'BLOCKS_AFTERWARDS'


@dataclass
class Behaviour:
    """The behaviour of a resource.

    :ivar takes_s: duration of each action, in seconds of virtual time.
    :ivar every_s: seconds between polls of an action; None for one poll at the end.
    :ivar mishap: the failure; it affects only the action `action` if that is given.
    :ivar after: number of successful actions before the first failure.
    :ivar times: number of failures; None for no limit.
    :ivar blocks_s: seconds for which a call blocks; None for ever.
    :ivar lies_s: age, in seconds, at which a lying service knows a new object.
    """

    takes_s: float = 0.0
    mishap: Mishap | None = None
    action: Action | None = None
    after: int = 0
    times: int | None = None
    every_s: float | None = None
    blocks_s: float | None = None
    lies_s: float = 0.0


@dataclass
class Reality:
    """The objects that really exist, and counts of all actions.

    :ivar answers: behaviour of a resource in calls that are no actions.
    :ivar kept: properties that snapshots contain, by the ids of snapshot and object.
    :ivar untold: objects that are untracked: their type cannot find them, and an event has reported that to the user.
    :ivar told_gone: ids of objects that a call has reported as not existing.
    :ivar mishaps: number of all failures.
    :ivar vanished: True if an outsider has removed an object.
    :ivar mended: True if nothing fails any more, including actions in progress.
    :ivar late: the last action on each object by a process that had lost its row; no service can refuse it.
    :ivar too_late: ids of two rows: the deletion of the first could begin before the second, which depends on it, was
        known.
    :ivar harmed: objects that an outsider has changed since the last action of their stacks, by id.
    :ivar ever_harmed: ids of all objects that were ever changed by an outsider.
    :ivar harmed_again: names and types of resources whose objects the outsider changes again after each creation or
        update.
    :ivar pause: called at points where a call to a real service could be interrupted.
    :ivar block: called where a call blocks, with the seconds or None for ever.
    :ivar changed: called after each change with the action and the object.
    """

    objects: dict[str, PhysicalObject] = field(default_factory=dict)
    behaviours: dict[str, Behaviour] = field(default_factory=dict)
    counts: dict[tuple[str, str], int] = field(default_factory=dict)
    made: dict[str, int] = field(default_factory=dict)
    answers: dict[tuple[str, str], Behaviour] = field(default_factory=dict)
    kept: dict[tuple[str, str], dict[str, Json]] = field(default_factory=dict)
    untold: set[str] = field(default_factory=set)
    told_gone: set[str] = field(default_factory=set)
    mishaps: int = 0
    vanished: bool = False
    mended: bool = False
    late: dict[str, Action] = field(default_factory=dict)
    too_late: set[tuple[str, str]] = field(default_factory=set)
    harmed: dict[str, HarmedObject] = field(default_factory=dict)
    ever_harmed: set[str] = field(default_factory=set)
    harmed_again: dict[tuple[str, str], Harm] = field(default_factory=dict)
    now: Callable[[], float] = lambda: 0.0
    pause: Callable[[str], None] = lambda point: None
    block: Callable[[float | None], None] = lambda duration_s: None
    changed: Callable[[Action, PhysicalObject], None] = lambda action, thing: None

    def resources_by_logical_name(self, name: str) -> dict[str, PhysicalObject]:
        """Return the objects of a resource name, by physical id."""
        return {PhysicalId(key): thing for key, thing in self.objects.items() if thing.name == name}

    def all_resources(self) -> dict[str, PhysicalObject]:
        """Return all objects, by physical id."""
        return {PhysicalId(key): thing for key, thing in self.objects.items()}

    def create(
        self, name: str, stack_id: str, token: str, properties: Mapping[str, Json], kind: str = TYPE
    ) -> PhysicalObject:
        """Create an object."""
        number = sum(self.made.values()) + 1
        thing = PhysicalObject(
            f'{name}-{number}', name, stack_id, token, dict(properties), kind=kind, made_at=self.now()
        )
        self.objects[thing.id] = thing
        self.made[token] = self.made.get(token, 0) + 1
        self.changed(Action.CREATE, thing)
        self.left(thing)
        return thing

    def goes_wrong(self, name: str, action: Action) -> Mishap | None:
        """Count an action of a resource, and return the failure that it has this time, or None."""
        behaviour = self.behaviours.get(name)
        if behaviour is None or behaviour.mishap is None or behaviour.action not in (None, action):
            return None
        return self._counted(name, action, behaviour)

    def ask(self, name: str, question: Question) -> float:
        """Count a call that is no action; it may fail in any way.

        :returns: age, in seconds, at which the called service knows an object.
        """
        self.pause(question.lower())
        behaviour = self.answers.get((name, question))
        if behaviour is None:
            return 0.0
        mishap = self._counted(name, question, behaviour)
        if mishap is not None and behaviour.takes_s:
            self.block(behaviour.takes_s)
        match mishap:
            case Mishap.FAILS:
                raise FinalFailure(f'{question} of {name} fails')
            case Mishap.RAISES:
                raise SystemExit(f'{question} of {name} raises an unexpected exception')
            case Mishap.BUSY:
                raise TransientFailure(f'{name} is too busy for {question}')
            case Mishap.LIES:
                return behaviour.lies_s
        return 0.0

    def _counted(self, name: str, action: str, behaviour: Behaviour) -> Mishap | None:
        done = self.counts.get((name, action), 0)
        self.counts[name, action] = done + 1
        if done < behaviour.after:
            return None
        if behaviour.times is not None and done >= behaviour.after + behaviour.times:
            return None
        self.mishaps += 1
        return behaviour.mishap

    def behave(self, name: str, behaviour: Behaviour) -> None:
        """Set the behaviour of a resource in actions, from now on."""
        self.behaviours[name] = behaviour
        for key in [key for key in self.counts if key[0] == name and (name, key[1]) not in self.answers]:
            del self.counts[key]

    def answer(self, name: str, question: Question, behaviour: Behaviour) -> None:
        """Set the behaviour of a resource in another call, from now on."""
        self.answers[name, question] = behaviour
        self.counts.pop((name, question), None)

    def behaves_well(self) -> None:
        """Stop all failures, and reset their counts."""
        self.behaviours.clear()
        self.answers.clear()
        self.harmed_again.clear()
        self.mishaps, self.vanished, self.mended = 0, False, True

    def clear(self) -> None:
        """Remove all objects and all records of them."""
        for kept in (self.objects, self.behaviours, self.counts, self.made, self.answers, self.kept):
            kept.clear()

    def vanish(self, name: str) -> None:
        """Remove the objects of a resource name, as an outsider."""
        self.vanished = True
        for key in self.resources_by_logical_name(name):
            self.mishaps += 1
            del self.objects[key]

    # --- changes by an outsider -------------------------------------------------------------------------------

    def harm(self, thing: PhysicalObject, harm: Harm) -> None:
        """Change an object, as an outsider. An object without a changeable property becomes unusable instead."""
        known = self.harmed.get(thing.id)
        left = known.left if known is not None else dict(thing.properties)
        names = sorted(name for name, value in thing.properties.items() if '!' not in name and value is not None)
        self.mishaps += 1
        self.ever_harmed.add(thing.id)
        if harm is Harm.GONE:
            self.objects.pop(thing.id, None)
        elif harm is Harm.ILL or not names:
            thing.ill, harm = True, Harm.ILL
        else:
            # Each value is new, so that an observation never mistakes it for an earlier one.
            thing.properties = {**thing.properties, names[0]: f'changed {self.mishaps} times'}
        self.harmed[thing.id] = HarmedObject(thing, Harm.ILL if thing.ill and harm is Harm.CHANGED else harm, left)

    def left(self, thing: PhysicalObject) -> None:
        """Record that a stack created or updated an object. This overwrites earlier changes by an outsider."""
        if thing.ill:
            self.harmed[thing.id] = HarmedObject(thing, Harm.ILL, dict(thing.properties))
        else:
            self.harmed.pop(thing.id, None)
        again = self.harmed_again.get((thing.name, thing.kind))
        if again is not None:
            self.harm(thing, again)

    def as_left(self, keys: Collection[str]) -> Reality:
        """Return the cloud as it would be without an outsider's changes of these objects."""
        if not keys:
            return self
        harmed = {key: self.harmed[key] for key in keys}
        before = {key: replace(each.thing, properties=each.left) for key, each in harmed.items()}
        return replace(self, objects={**self.objects, **before})


def is_of(row: Resource, thing: PhysicalObject) -> bool:
    """Return True if the row has created the object with its token, or names it."""
    return row.token == thing.token if row.token is not None else row.physical_id == thing.id


def may_find(row: Resource, thing: PhysicalObject) -> bool:
    """Return True if the row can find the object: by its token, and by the chosen key if there is one."""
    return is_of(row, thing) and thing.key in ('', row.data.get('key'))
