"""A simulated cloud: its objects, and the behaviour of its services."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from convergence.core.model import Action, Json
from convergence.core.rows import Resource
from convergence.resources.contract import FinalFailure, TransientFailure
from convergence.values import replace

TYPE = 'Convergence::Simulated::Thing'
"""The resource type of most scenarios. `convergence_simulator.cloud.sorts` has the others."""
NOBODY = ''
"""Stands for the stack of an object that belongs to no stack, or to none any more."""


class PhysicalId(str):
    """A physical id. Scenarios also use it as the attribute ``uuid`` of a row."""

    __slots__ = ()

    @property
    def uuid(self) -> str:
        """The id itself."""
        return self


class Harm(StrEnum):
    """Harm that another user does to an object: changes a property, makes the object unusable (``ILL``), or removes
    it."""

    CHANGED = 'CHANGED'
    ILL = 'ILL'
    GONE = 'GONE'


@dataclass(eq=False)
class PhysicalObject:
    """One object of the simulated cloud.

    :ivar properties: the properties of its creation or of its latest update.
    :ivar asleep: True if it is suspended, so that it cannot be changed.
    :ivar kind: the resource type that created it.
    :ivar made_at: the time of its creation on the simulated clock.
    :ivar key: the key that its type has chosen for it.
    :ivar ill: True if it is unusable.
    :ivar before: the previous properties that the caller of the latest update stated, if they differed from the actual
        ones.
    :ivar was: the actual properties before the latest update.
    :ivar has_address: True if it is reachable under its name. Some types allow that for one object of a name only.
    :ivar denied: True if the call that created it reported that it created nothing. A search then always finds it,
        however new it is: a type may be wrong in one of the two answers, but not in both.
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
    """An object that another user has harmed.

    :param left: the properties that its stack had given it.
    """

    thing: PhysicalObject
    harm: Harm
    left: dict[str, Json]


class Question(StrEnum):
    """Questions to a service, besides actions."""

    FIND = 'FIND'
    OBSERVE = 'OBSERVE'
    ATTRIBUTE = 'ATTRIBUTE'
    CANCEL = 'CANCEL'


class Mishap(StrEnum):
    """Failures of an action or of a question."""

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
    """How a resource behaves.

    :ivar takes_s: duration of each action, in seconds of virtual time.
    :ivar every_s: seconds between two polls, or None for a single poll at the end.
    :ivar mishap: the failure. If `action` is given, only that action fails.
    :ivar after: number of times that the action succeeds first.
    :ivar times: number of failures, or None for no limit.
    :ivar blocks_s: seconds for which a blocking call does not return, or None for ever.
    :ivar lies_s: seconds after a creation in which a service that lies does not know the object.
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
    """All objects of the simulated cloud, and counts of the actions on them.

    :ivar behaviours: the behaviour of a resource in actions, by its name.
    :ivar counts: the number of actions and questions so far, by resource name and action or question.
    :ivar made: the number of objects created under each token.
    :ivar answers: the behaviour of a resource when its service answers a question.
    :ivar kept: the properties that a snapshot keeps of an object, by the id of the snapshot and of the object.
    :ivar untold: ids of objects that no row can lead to: their type cannot find them, and an event has warned the user.
    :ivar told_gone: ids of objects that a service has reported as not existing.
    :ivar mishaps: number of failures so far.
    :ivar vanished: True if another user has removed an object.
    :ivar mended: True if nothing fails any more, not even an action whose failure was planned.
    :ivar late: the last action on an object by a worker that had lost its claim by then. No service can refuse it.
    :ivar too_late: keys of two rows. The deletion of the first could begin before the engine knew of the second, which
        was built on it.
    :ivar harmed: the objects that another user has harmed since their stacks changed them last, by id.
    :ivar ever_harmed: ids of all objects that were ever harmed.
    :ivar harmed_again: names of resources with their types. Another user harms their objects in the same way again
        after each change by the stack.
    :ivar now: returns the time on the simulated clock.
    :ivar pause: called at each point at which a call to a real service could be interrupted.
    :ivar block: called with the seconds for which a call does not return, or with None for ever.
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
        """The objects of a resource name, by physical id."""
        return {PhysicalId(key): thing for key, thing in self.objects.items() if thing.name == name}

    def all_resources(self) -> dict[str, PhysicalObject]:
        """All objects, by physical id."""
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
        """Count an action of a resource, and return its failure this time, or None."""
        behaviour = self.behaviours.get(name)
        if behaviour is None or behaviour.mishap is None or behaviour.action not in (None, action):
            return None
        return self._counted(name, action, behaviour)

    def ask(self, name: str, question: Question) -> float:
        """Answer a question about a resource, or fail as its behaviour says.

        :returns: seconds after a creation in which the service does not know the object.
        :raises FinalFailure: the question fails.
        :raises TransientFailure: the service is too busy.
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
        """Set the behaviour of a resource from now on."""
        self.behaviours[name] = behaviour
        for key in [key for key in self.counts if key[0] == name and (name, key[1]) not in self.answers]:
            del self.counts[key]

    def answer(self, name: str, question: Question, behaviour: Behaviour) -> None:
        """Set the behaviour of a resource in answers to a question from now on."""
        self.answers[name, question] = behaviour
        self.counts.pop((name, question), None)

    def behaves_well(self) -> None:
        """End all failures and forget past ones."""
        self.behaviours.clear()
        self.answers.clear()
        self.harmed_again.clear()
        self.mishaps, self.vanished, self.mended = 0, False, True

    def clear(self) -> None:
        """Forget all objects and their history."""
        for kept in (self.objects, self.behaviours, self.counts, self.made, self.answers, self.kept):
            kept.clear()

    def vanish(self, name: str) -> None:
        """Remove the objects of a resource name, as another user would."""
        self.vanished = True
        for key in self.resources_by_logical_name(name):
            self.mishaps += 1
            del self.objects[key]

    # --- harm by other users ----------------------------------------------------------------------------------

    def harm(self, thing: PhysicalObject, harm: Harm) -> None:
        """Harm an object as another user would. An object without a changeable property becomes unusable instead of
        changed."""
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
            # Each value is new, so that a comparison cannot take it for a value seen earlier.
            thing.properties = {**thing.properties, names[0]: f'changed {self.mishaps} times'}
        self.harmed[thing.id] = HarmedObject(thing, Harm.ILL if thing.ill and harm is Harm.CHANGED else harm, left)

    def left(self, thing: PhysicalObject) -> None:
        """Record that a stack has created or changed an object, which undoes earlier changes by other users."""
        if thing.ill:
            self.harmed[thing.id] = HarmedObject(thing, Harm.ILL, dict(thing.properties))
        else:
            self.harmed.pop(thing.id, None)
        again = self.harmed_again.get((thing.name, thing.kind))
        if again is not None:
            self.harm(thing, again)

    def as_left(self, keys: Collection[str]) -> Reality:
        """The cloud as it would be without the harm to some objects."""
        if not keys:
            return self
        harmed = {key: self.harmed[key] for key in keys}
        before = {key: replace(each.thing, properties=each.left) for key, each in harmed.items()}
        return replace(self, objects={**self.objects, **before})


def is_of(row: Resource, thing: PhysicalObject) -> bool:
    """True if an object belongs to a row: the row has its token, or names it."""
    return row.token == thing.token if row.token is not None else row.physical_id == thing.id


def may_find(row: Resource, thing: PhysicalObject) -> bool:
    """True if a row leads to an object by its token, and by the key chosen for it if there is one."""
    return is_of(row, thing) and thing.key in ('', row.data.get('key'))
