"""A cloud that exists only here: what is really there, and how its services behave."""

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
"""In place of a stack: an object that belongs to no stack, or does not any more."""


class PhysicalId(str):
    """A physical id. Scenarios also know it as the attribute of a row."""

    __slots__ = ()

    @property
    def uuid(self) -> str:
        """The id itself."""
        return self


class Harm(StrEnum):
    """What somebody else does to an object: changes a property, makes it useless, or removes it."""

    CHANGED = 'CHANGED'
    ILL = 'ILL'
    GONE = 'GONE'


@dataclass(eq=False)
class PhysicalObject:
    """One thing that exists.

    :ivar properties: what it was made with, or changed to.
    :ivar asleep: whether it is suspended; then it cannot be changed.
    :ivar kind: the resource type that made it.
    :ivar made_at: when that was, on the simulated clock.
    :ivar key: what its type has called it.
    :ivar ill: whether it is of no use any more.
    :ivar before: what whoever changed it last said that it had been before, where that is not so.
    :ivar was: what it really was then.
    :ivar has_address: whether it is reached under its name; of some types only one object of a name is.
    :ivar denied: whether the creation that made it has promised that nothing was made. Then whoever asks for it is told
        of it, however new it is: a type may be wrong about one of the two, not about both.
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
    """An object to which somebody else has done something.

    :param left: the properties with which its stack has left it.
    """

    thing: PhysicalObject
    harm: Harm
    left: dict[str, Json]


class Question(StrEnum):
    """What a service is asked besides actions."""

    FIND = 'FIND'
    OBSERVE = 'OBSERVE'
    ATTRIBUTE = 'ATTRIBUTE'
    CANCEL = 'CANCEL'


class Mishap(StrEnum):
    """What an action of a resource, or a question, may do instead of simply succeeding."""

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

    :ivar takes_s: how long each action takes, in seconds of virtual time.
    :ivar every_s: how often it wants to be asked meanwhile; None for once, at the end.
    :ivar mishap: what goes wrong, in the action `action` only if that is given.
    :ivar after: how many times the action succeeds before that.
    :ivar times: how often it goes wrong; None for always.
    :ivar blocks_s: how long a call that blocks does not return; None for ever.
    :ivar lies_s: how long a service that lies does not know of an object that was made.
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
    """Everything that really exists, and how often anything was done.

    :ivar answers: how a resource behaves when it is asked a question.
    :ivar kept: what was kept of an object: properties by the snapshot's id and the object's.
    :ivar untold: objects that nobody can know of: their type cannot find them, and the user was told so.
    :ivar told_gone: ids of objects of which somebody was told that they do not exist any more.
    :ivar mishaps: how often anything has gone wrong.
    :ivar vanished: whether somebody else has removed anything.
    :ivar mended: whether nothing goes wrong any more, not even what was going to.
    :ivar late: what was done last to each object by somebody who had lost its row by then: no service can refuse it.
    :ivar too_late: keys of two rows: the deletion of the first could begin before it was known that there is the
        second, which was built on it.
    :ivar harmed: the objects to which somebody else has done something since their stacks have left them, by id.
    :ivar ever_harmed: ids of all objects to which anything was ever done.
    :ivar harmed_again: names of resources, with their types, to whose objects the same is done again, whenever a stack
        has made or changed them.
    :ivar pause: called where a call to a real service could be interrupted.
    :ivar block: called where a call does not return for so many seconds, or (None) ever, whatever is asked of it.
    :ivar changed: called after each change with what was done and to which object.
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
        """Make an object."""
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
        """Count an action of a resource, and tell what goes wrong with it this time."""
        behaviour = self.behaviours.get(name)
        if behaviour is None or behaviour.mishap is None or behaviour.action not in (None, action):
            return None
        return self._counted(name, action, behaviour)

    def ask(self, name: str, question: Question) -> float:
        """Somebody asks a question of a resource, and it may behave in any way.

        :returns: for how many seconds after they were made objects are not known to whoever answers.
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
                raise SystemExit(f'{question} of {name} raises something unheard of')
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
        """From now on a resource behaves like that."""
        self.behaviours[name] = behaviour
        for key in [key for key in self.counts if key[0] == name and (name, key[1]) not in self.answers]:
            del self.counts[key]

    def answer(self, name: str, question: Question, behaviour: Behaviour) -> None:
        """From now on a resource behaves like that when it is asked."""
        self.answers[name, question] = behaviour
        self.counts.pop((name, question), None)

    def behaves_well(self) -> None:
        """Nothing goes wrong any more, and nothing has."""
        self.behaviours.clear()
        self.answers.clear()
        self.harmed_again.clear()
        self.mishaps, self.vanished, self.mended = 0, False, True

    def clear(self) -> None:
        """Nothing exists, nothing ever did."""
        for kept in (self.objects, self.behaviours, self.counts, self.made, self.answers, self.kept):
            kept.clear()

    def vanish(self, name: str) -> None:
        """Somebody else removes the objects of a resource name."""
        self.vanished = True
        for key in self.resources_by_logical_name(name):
            self.mishaps += 1
            del self.objects[key]

    # --- what somebody else does ------------------------------------------------------------------------------

    def harm(self, thing: PhysicalObject, harm: Harm) -> None:
        """Somebody else does something to an object. One without a property that can be changed falls ill instead."""
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
            # Never the same value twice: nobody may take what is there for what he has seen before.
            thing.properties = {**thing.properties, names[0]: f'changed {self.mishaps} times'}
        self.harmed[thing.id] = HarmedObject(thing, Harm.ILL if thing.ill and harm is Harm.CHANGED else harm, left)

    def left(self, thing: PhysicalObject) -> None:
        """A stack has made or changed an object; what was done to it before does not show any more."""
        if thing.ill:
            self.harmed[thing.id] = HarmedObject(thing, Harm.ILL, dict(thing.properties))
        else:
            self.harmed.pop(thing.id, None)
        again = self.harmed_again.get((thing.name, thing.kind))
        if again is not None:
            self.harm(thing, again)

    def as_left(self, keys: Collection[str]) -> Reality:
        """What would be there, had nobody done anything to some objects."""
        if not keys:
            return self
        harmed = {key: self.harmed[key] for key in keys}
        before = {key: replace(each.thing, properties=each.left) for key, each in harmed.items()}
        return replace(self, objects={**self.objects, **before})


def is_of(row: Resource, thing: PhysicalObject) -> bool:
    """Whether a row is that of an object: made under its token, or named by it."""
    return row.token == thing.token if row.token is not None else row.physical_id == thing.id


def may_find(row: Resource, thing: PhysicalObject) -> bool:
    """Whether what a row knows leads to an object: its token, and the key that was chosen for it, if there is one."""
    return is_of(row, thing) and thing.key in ('', row.data.get('key'))
