"""Observations of the objects of resources: their results, their schedule, and the reaction to drift. No I/O."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from convergence.core.model import Action, DriftPolicy, Json, Status
from convergence.core.rows import Event, Resource, Stack
from convergence.values import replace

SETTLED = 3
"""Number of healthy observations in a row after which earlier repairs no longer count."""
LONGEST_REPAIR_PAUSE_S = 3600.0
FIRST_SHARE = 8
"""Divisor of the interval: after an observation with a new result, the next one follows after this part of it."""


class ObservedState(StrEnum):
    """The state of an object in an observation.

    * `HEALTHY`: the object exists and matches its record, as far as its type can compare them.
    * `DIFFERS`: the object exists, and some live properties differ from the applied ones.
    * `UNHEALTHY`: the object exists and does not work.
    * `GONE`: the object does not exist.
    * `UNKNOWN`: the object was not observed, could not be read, or its type cannot compare it.
    """

    HEALTHY = 'HEALTHY'
    DIFFERS = 'DIFFERS'
    UNHEALTHY = 'UNHEALTHY'
    GONE = 'GONE'
    UNKNOWN = 'UNKNOWN'

    @property
    def is_drift(self) -> bool:
        """True if the object is known to differ from its record."""
        return self in (ObservedState.DIFFERS, ObservedState.UNHEALTHY, ObservedState.GONE)


class ObservationSource(StrEnum):
    """The cause of an observation: its schedule, a notification of the service, or the request of a user."""

    POLL = 'POLL'
    NOTIFICATION = 'NOTIFICATION'
    REQUEST = 'REQUEST'


@dataclass(frozen=True, slots=True)
class ObservationResult:
    """The result of one observation.

    :param found: the state of the object.
    :param names: sorted names of the properties that differ.
    :param live: the live values of these properties.
    :param reason: explanation for users; contains no values.
    """

    found: ObservedState
    names: tuple[str, ...] = ()
    live: Mapping[str, Json] = field(default_factory=dict)
    reason: str = ''


@dataclass(frozen=True, slots=True)
class Observation:
    """The last known state of the object of one resource row, and its schedule. Times are seconds since the epoch.

    :param resource_id: the row; a row has at most one observation.
    :param name: name of the resource.
    :param fence: fence of the row at the time of the observation. A claim raises the fence of the row, and the
        observation is valid only while both are equal.
    :param found, names, live, reason: as in `ObservationResult`; `live` is empty if it cannot be read.
    :param since: time of the first observation with this result.
    :param same_results: number of observations in a row with this result.
    :param observed_at: time of the last observation; None if there was none.
    :param source: cause of the last observation.
    :param due_at: time of the next observation. While an observer holds the lease, the end of the lease.
    :param requested_at: time of a request for an observation that has not begun yet; None: no request waits.
    :param requested_by: cause of that request.
    :param holder: the observer that holds the lease; None: no observer does.
    :param leased_at: start of the lease.
    :param policy: the reaction to drift; `IGNORE`: the object is not observed.
    :param repairs: number of repairs in a row, since the object was last healthy in `SETTLED` observations in a row.
    :param repair_at: time before which no further repair begins.
    :param given_up: True if no further repair begins, because the object keeps changing or no repair helps.
    :param told: the drift that the last event of the resource reported; None: no drift, or its end.
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
        """Return True if a new result for the row equals the last one, and the row was not claimed in between.

        :param fence: fence of the row now.
        """
        same = (self.found, self.names, self.live) == (result.found, result.names, result.live)
        return same and self.observed_at is not None and self.fence == fence

    @property
    def past(self) -> Past:
        """The part that passes to the row that replaces this one."""
        return Past(self.resource_id, self.name, self.repairs, self.repair_at, self.given_up, self.told)

    def as_of(self, fence: int) -> Observation:
        """Return the observation for the row with its fence now: `UNKNOWN` if a worker has claimed the row since."""
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
    """The part of an observation that passes to a replacement of the row, whose object may keep drifting as well.

    The fields are those of `Observation`.
    """

    resource_id: str
    name: str
    repairs: int = 0
    repair_at: float | None = None
    given_up: bool = False
    told: ObservedState | None = None


@dataclass(frozen=True, slots=True)
class Succession:
    """The changes to the observations of a stack when the set of its observed objects changes.

    :param before: the past of objects that are not observed any more, by resource name; their replacements inherit it.
    :param over: ids of the rows whose observations can be deleted.
    """

    before: Mapping[str, Past]
    over: frozenset[str]


def succession(
    known: Iterable[Past], observed: Collection[str], present: Collection[str], *, is_complete: bool
) -> Succession:
    """Find the rows that inherit the past of rows that are not observed any more. Rows match by resource name.

    The name is the only link: a replacement may fail, be replaced itself, and be removed before its first observation.
    While a stack has failed, the past of a resource without an object is kept, because the next repair creates one.

    :param known: the past of all observed rows so far.
    :param observed: ids of the rows to observe from now on.
    :param present: names of the resources that have an object, observed or not.
    :param is_complete: True if the stack is complete.
    """
    gone = sorted((each for each in known if each.resource_id not in observed), key=lambda each: each.repairs)
    over = frozenset(each.resource_id for each in gone if is_complete or each.name in present)
    return Succession({each.name: each for each in gone}, over)


@dataclass(frozen=True, slots=True)
class DriftSummary:
    """Numbers of the objects of a stack by their observations. Times are seconds since the epoch.

    :param observed: number of objects that are to be observed.
    :param seen: number of these objects with a valid observation.
    :param drifted: number of these objects with drift.
    :param since: time of the earliest drift; None if there is none.
    :param observed_at: time of the last observation of any object; None if there was none.
    """

    observed: int = 0
    seen: int = 0
    drifted: int = 0
    since: float | None = None
    observed_at: float | None = None

    @classmethod
    def of(cls, observations: Iterable[Observation]) -> DriftSummary:
        """Summarize the observations of some objects."""
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
    """The result of an observer for an object that it had leased.

    :param fence: fence of the row when the lease began.
    :param pause_s: seconds until the next observation.
    :param same: True if the result equals the previous one.
    :param news: the event that reports it; None: there is nothing to report.
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
        """The observed drift, or None."""
        return self.result.found if self.result.found.is_drift else None


@dataclass(frozen=True, slots=True)
class KnownObject:
    """An object and its observation.

    :param row: row of the resource, read without its output and its pending values.
    """

    observation: Observation
    row: Resource


@dataclass(frozen=True, slots=True)
class Leased:
    """An object that an observer has leased for an observation.

    :param row: as in `KnownObject`.
    """

    observation: Observation
    row: Resource
    stack: Stack


def is_news(told: ObservedState | None, found: ObservedState) -> bool:
    """Return True if an event must report a result. Each drift is reported once, and its end once.

    :param told: see `Observation`. It survives repairs and replacements: only an observation shows their success.
    """
    if found.is_drift:
        return found is not told
    return found is ObservedState.HEALTHY and told is not None


def news_of(leased: Leased, result: ObservationResult, new_id: Callable[[], str]) -> Event | None:
    """Return the event that reports a result, or None if there is nothing to report."""
    row, seen = leased.row, leased.observation
    if not is_news(seen.told, result.found):
        return None
    text = f'Found {result.found}: {result.reason}' if result.found.is_drift else 'Found as it was made again'
    return Event.of_resource(new_id(), row, row.action, row.status, text, seen.leased_at or 0.0)


_NOT_UP = frozenset({Action.INIT, Action.DELETE, Action.SUSPEND})


def is_observable(stack: Stack, row: Resource) -> bool:
    """Return True if an observer may compare the object: it should be up, and no operation works on it."""
    at_rest = stack.status is not Status.IN_PROGRESS and stack.deleted_at is None and stack.action not in _NOT_UP
    finished = row.status is Status.COMPLETE and row.action not in _NOT_UP and row.owner is None
    return at_rest and finished and row.physical_id is not None and row.replaced_by is None


def pause_s(interval_s: float, same_results: int) -> float:
    """Return the seconds until the next observation: short after a new result, growing up to the whole interval.

    :param interval_s: the longest pause.
    :param same_results: number of observations in a row with the same result, including this one.
    """
    return interval_s * min(1.0, 2.0 ** min(same_results, 16) / FIRST_SHARE)


def repair_pause_s(first_s: float, repairs: int) -> float:
    """Return the seconds from a repair until the next one of the same object. The pause doubles each time.

    :param first_s: seconds after the first repair.
    :param repairs: number of repairs in a row, including this one.
    """
    return min(first_s * 2.0 ** min(max(repairs - 1, 0), 32), LONGEST_REPAIR_PAUSE_S)


@dataclass(frozen=True, slots=True)
class DriftPolicies:
    """The reactions to drift of the objects of a stack. The most specific policy applies.

    :param of_stack: policy of the root stack.
    :param of_types: policies by resource type.
    :param of_resource: returns the policy of a resource by its name; None: it has none of its own.
    """

    of_stack: DriftPolicy = DriftPolicy.REPORT
    of_types: Mapping[str, DriftPolicy] = field(default_factory=dict)
    of_resource: Callable[[str], DriftPolicy | None] = lambda name: None

    def of(self, name: str, type_: str) -> DriftPolicy:
        """Return the policy of one resource."""
        return self.of_resource(name) or self.of_types.get(type_) or self.of_stack
