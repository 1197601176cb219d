"""What was seen of the object of a resource, and when to look again. Pure."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from convergence.core.model import Action, DriftPolicy, Json, Status
from convergence.core.rows import Event, Resource, Stack
from convergence.values import replace

SETTLED = 3
"""Looks in a row that find an object healthy, after which earlier repairs do not count any more."""
LONGEST_REPAIR_PAUSE_S = 3600.0
FIRST_SHARE = 8
"""Right after an object was found otherwise than before, the pause is the interval divided by this."""


class ObservedState(StrEnum):
    """What a look came to.

    * `HEALTHY`: the object is there, and as it was made, as far as its type can tell.
    * `DIFFERS`: it is there, and live properties are others than those that were applied.
    * `UNHEALTHY`: it is there and of no use.
    * `GONE`: it is not there.
    * `UNKNOWN`: nobody has looked, or could look, or the type cannot tell.
    """

    HEALTHY = 'HEALTHY'
    DIFFERS = 'DIFFERS'
    UNHEALTHY = 'UNHEALTHY'
    GONE = 'GONE'
    UNKNOWN = 'UNKNOWN'

    @property
    def is_drift(self) -> bool:
        """Whether reality is known to be otherwise than it was made."""
        return self in (ObservedState.DIFFERS, ObservedState.UNHEALTHY, ObservedState.GONE)


class ObservationSource(StrEnum):
    """Why somebody looked: it was time to, a service told of its object, or a caller asked."""

    POLL = 'POLL'
    NOTIFICATION = 'NOTIFICATION'
    REQUEST = 'REQUEST'


@dataclass(frozen=True, slots=True)
class ObservationResult:
    """What a look came to.

    :param names: of the properties that differ, sorted.
    :param live: the values that those have now.
    :param reason: for people, why it is so; names no values.
    """

    found: ObservedState
    names: tuple[str, ...] = ()
    live: Mapping[str, Json] = field(default_factory=dict)
    reason: str = ''


@dataclass(frozen=True, slots=True)
class Observation:
    """What is known of the object of one resource row. Times are seconds since the epoch.

    :param resource_id: the row; it has at most one.
    :param name: of the resource.
    :param fence: that of the row when the object was looked at. Who claims a row raises it, so an observation is good
        for as long as the row has this one.
    :param found, names, live, reason: as in `ObservationResult`; `live` is empty where it cannot be read.
    :param since: from when on looks came to this.
    :param same_results: how many looks in a row.
    :param observed_at: the last of them; None: nobody has looked yet.
    :param source: why that was.
    :param due_at: when somebody is to look next; while somebody looks, when that one counts as dead.
    :param requested_at: when somebody asked for a look that has not begun since; None: nobody waits for one.
    :param requested_by: why.
    :param holder: who looks; None: nobody.
    :param leased_at: since when.
    :param policy: what it leads to that the object is found otherwise than it was made; `IGNORE`: it is not observed.
    :param repairs: how many repairs in a row were begun, since the object was last healthy for `SETTLED` looks.
    :param repair_at: before that none is begun.
    :param given_up: whether none is begun any more: the object keeps changing, or no repair can put it right.
    :param told: the drift of which an event of the resource has told; None: of none, or that it is over.
    """

    resource_id: str
    stack_id: str
    name: str
    fence: int
    found: ObservedState
    names: tuple[str, ...]
    live: Mapping[str, Json] = field(repr=False)
    reason: str
    since: float
    same_results: int
    observed_at: float | None
    source: ObservationSource
    due_at: float
    requested_at: float | None = None
    requested_by: ObservationSource | None = None
    holder: str | None = None
    leased_at: float | None = None
    policy: DriftPolicy = DriftPolicy.REPORT
    repairs: int = 0
    repair_at: float | None = None
    given_up: bool = False
    told: ObservedState | None = None

    def says(self, result: ObservationResult, fence: int) -> bool:
        """Whether a look at the row as it is now came to the same as the look before."""
        same = (self.found, self.names, self.live) == (result.found, result.names, result.live)
        return same and self.observed_at is not None and self.fence == fence

    @property
    def past(self) -> Past:
        """What outlives the row."""
        return Past(self.resource_id, self.name, self.repairs, self.repair_at, self.given_up, self.told)

    def as_of(self, fence: int) -> Observation:
        """What it tells of its row as that is now: nothing, where somebody has claimed the row since."""
        if self.fence == fence or self.observed_at is None:
            return self
        return replace(
            self,
            fence=fence,
            found=ObservedState.UNKNOWN,
            names=(),
            live={},
            reason='',
            same_results=0,
            observed_at=None,
        )


@dataclass(frozen=True, slots=True)
class Past:
    """What is known of an object that outlives its row: what takes its place keeps changing just as it did.

    All as in `Observation`.
    """

    resource_id: str
    name: str
    repairs: int = 0
    repair_at: float | None = None
    given_up: bool = False
    told: ObservedState | None = None


@dataclass(frozen=True, slots=True)
class Succession:
    """What becomes of what is known of the objects of a stack, when it is looked which of them are to be observed.

    :param before: what is known of objects that are not observed any more, by the names of their resources.
    :param over: the keys of the rows of which nothing has to be known any more, once the stack has come to rest.
    """

    before: Mapping[str, Past]
    over: frozenset[str]


def succession(
    known: Iterable[Past], observed: Collection[str], present: Collection[str], *, is_complete: bool
) -> Succession:
    """Who follows whom, by name: a replacement may fail, and be replaced, and its row be gone before anybody looks.

    Of a resource without an object something stays known while its stack has failed: the next repair makes it.

    :param observed: keys of the rows whose objects are to be observed.
    :param present: names of the resources that have an object, whether it is to be observed or not.
    :param is_complete: whether the stack is.
    """
    gone = sorted((each for each in known if each.resource_id not in observed), key=lambda each: each.repairs)
    over = frozenset(each.resource_id for each in gone if is_complete or each.name in present)
    return Succession({each.name: each for each in gone}, over)


@dataclass(frozen=True, slots=True)
class DriftSummary:
    """What is known of the objects of a stack. Times are seconds since the epoch.

    :param observed: how many are observed; `seen` of them somebody has looked at as they are now.
    :param drifted: how many of these are known to be otherwise than they were made.
    :param since: the first of those; None where there are none.
    :param observed_at: when somebody last looked at any.
    """

    observed: int = 0
    seen: int = 0
    drifted: int = 0
    since: float | None = None
    observed_at: float | None = None

    @classmethod
    def of(cls, observations: Iterable[Observation]) -> DriftSummary:
        """That of some objects."""
        every = list(observations)
        seen = [each for each in every if each.observed_at is not None]
        drifted = [each for each in seen if each.found.is_drift]
        return cls(
            len(every),
            len(seen),
            len(drifted),
            min((each.since for each in drifted), default=None),
            max((each.observed_at for each in seen if each.observed_at is not None), default=None),
        )


@dataclass(frozen=True, slots=True)
class ObservationUpdate:
    """What somebody who had leased it has seen of an object.

    :param fence: of the row, as it was leased.
    :param pause_s: seconds until somebody is to look again.
    :param same: whether it is what was seen before.
    :param news: an event that tells of it; None: there is nothing to tell.
    """

    resource_id: str
    fence: int
    result: ObservationResult
    source: ObservationSource
    pause_s: float
    same: bool
    news: Event | None = None

    @property
    def drift(self) -> ObservedState | None:
        """The drift that was found; None: there is none."""
        return self.result.found if self.result.found.is_drift else None


@dataclass(frozen=True, slots=True)
class KnownObject:
    """An object, and what is known of it.

    :param row: of the resource; its output, and what is pending, are not read.
    """

    observation: Observation
    row: Resource


@dataclass(frozen=True, slots=True)
class Leased:
    """What somebody is to look at.

    :param row: as in `KnownObject`.
    """

    observation: Observation
    row: Resource
    stack: Stack


def is_news(told: ObservedState | None, found: ObservedState) -> bool:
    """Whether an event is to tell what a look came to: once of each drift, and once that it is over.

    :param told: see `Observation`. It outlives repairs and replacements: these are no news until somebody has looked.
    """
    if found.is_drift:
        return found is not told
    return found is ObservedState.HEALTHY and told is not None


def news_of(leased: Leased, result: ObservationResult, new_id: Callable[[], str]) -> Event | None:
    """The event that tells what a look came to; None: none does."""
    row, seen = leased.row, leased.observation
    if not is_news(seen.told, result.found):
        return None
    text = f'Found {result.found}: {result.reason}' if result.found.is_drift else 'Found as it was made again'
    return Event.of_resource(new_id(), row, row.action, row.status, text, seen.leased_at or 0.0)


_NOT_UP = frozenset({Action.INIT, Action.DELETE, Action.SUSPEND})


def is_observable(stack: Stack, row: Resource) -> bool:
    """Whether there is something to compare: an object that is to be up, with which nobody is busy."""
    at_rest = stack.status is not Status.IN_PROGRESS and stack.deleted_at is None and stack.action not in _NOT_UP
    finished = row.status is Status.COMPLETE and row.action not in _NOT_UP and row.owner is None
    return at_rest and finished and row.physical_id is not None and row.replaced_by is None


def pause_s(interval_s: float, same_results: int) -> float:
    """Seconds until the next look: short after something was found otherwise, the whole interval while nothing is.

    :param interval_s: the longest pause.
    :param same_results: how many looks in a row have come to the same, this one included.
    """
    return interval_s * min(1.0, 2.0 ** min(same_results, 16) / FIRST_SHARE)


def repair_pause_s(first_s: float, repairs: int) -> float:
    """Seconds from a repair until another one of the same object: twice as many each time.

    :param first_s: after the first.
    :param repairs: how many there were in a row, this one included.
    """
    return min(first_s * 2.0 ** min(max(repairs - 1, 0), 32), LONGEST_REPAIR_PAUSE_S)


@dataclass(frozen=True, slots=True)
class DriftPolicies:
    """What it leads to that objects of a stack are found otherwise than they were made. The most exact one holds.

    :param of_stack: of the stack at the top of its tree.
    :param of_types: by type.
    :param of_resource: by name; None: nothing is said of it.
    """

    of_stack: DriftPolicy = DriftPolicy.REPORT
    of_types: Mapping[str, DriftPolicy] = field(default_factory=dict)
    of_resource: Callable[[str], DriftPolicy | None] = lambda name: None

    def of(self, name: str, type_: str) -> DriftPolicy:
        """That of one resource."""
        return self.of_resource(name) or self.of_types.get(type_) or self.of_stack
