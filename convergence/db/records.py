"""Rows and answers that the ports of the database exchange with their callers.

Each store builds them from its own rows: `convergence.db.repositories` from a database, the memory store from objects.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from types import MappingProxyType
from typing import Any

from convergence.core.model import DISPATCH_WINDOW, Action, Hook, Json, Phase, Status
from convergence.core.observation import KnownObject
from convergence.core.rows import Resource, Retry, Stack, Traversal
from convergence.values import quickly_made


@dataclass(frozen=True, slots=True)
class ReadyNode:
    """A ready node whose dispatch is some time ago."""

    stack_id: str
    traversal_id: str
    number: int
    phase: Phase


@dataclass(frozen=True, slots=True)
class HeldRow:
    """A resource row with an action in progress.

    :param traversal_id: the traversal for which it was last claimed.
    :param owner: the worker that holds it; None if it is free.
    :param silent_s: seconds for which a dead owner has certainly begun no call: calls may begin until the next
        heartbeat is due, and a lease lasts for at least two heartbeats.
    """

    resource_id: str
    name: str
    stack_id: str
    traversal_id: str | None
    owner: str | None
    fence: int
    silent_s: float = 0.0


@dataclass(frozen=True, slots=True)
class EndedTraversal:
    """A current traversal that has failed, or is late, while its stack still says that it is in progress."""

    stack_id: str
    traversal_id: str


@dataclass(frozen=True, slots=True)
class TraversalProgress:
    """A current, running traversal, and when it last made progress. All times by the database's clock.

    :param stalled_at: since when it has been reported to make none; None where it has not.
    """

    stack_id: str
    traversal_id: str
    stalled_at: float | None
    started_at: float
    finished_at: float | None
    began_at: float | None
    now: float = field(compare=False)

    @property
    def progressed_at(self) -> float:
        """When a step of it last began or ended."""
        return max(self.started_at, self.finished_at or 0.0, self.began_at or 0.0)

    def is_news(self, after_s: float) -> bool:
        """Return True if the traversal stalled, or moved again, and this is not reported yet."""
        if self.stalled_at is not None:
            return self.progressed_at > self.stalled_at
        return self.progressed_at < self.now - after_s


@dataclass(frozen=True, slots=True)
class UnneededNested:
    """A nested stack, and the resource whose object it is, or was."""

    stack_id: str
    traversal_id: str
    resource_id: str


@dataclass(frozen=True, slots=True)
class NestingRow:
    """A resource whose object is a stack, or is to be one.

    :param stack: the one that the resource is in.
    :param traversal: the operation that the row was claimed for last.
    :param nested: the stack that is its object, deleted or not; None where there is none yet.
    :param has_snapshots: True if there are snapshots of that stack.
    """

    row: Resource
    stack: Stack
    traversal: Traversal
    nested: Stack | None
    has_snapshots: bool


@dataclass(frozen=True, slots=True)
class FrontierNode:
    """A node that may be worked on now, and its owner.

    :param owner: the worker that holds the node's row; None if it is free.
    :param owner_host: the host of that worker; None once it is not registered any more.
    :param owner_is_up: True if its lease has not expired.
    :param is_parked: True if an action in progress is parked in its row.
    :param wake_in_s: seconds until the next poll; negative when it is late.
    :param age_s: seconds since the last dispatch of the node.
    :param action_s: seconds since the present action began.
    :param time_left_s: seconds until its timeout; None where it has none of its own.
    :param crash_count: number of workers in a row that died during the action.
    :param retry: set while a call is retried after a transient failure.
    :param hook: the hook that a person has to clear before it continues.
    :param lost_token: token of a creation whose result is unknown.
    :param search_until: time until which the creation may still take effect and its object is searched; None: no
        search.
    """

    number: int
    phase: Phase
    name: str | None
    resource_id: str | None
    resource_type: str | None
    action: Action | None
    status: Status | None
    reason: str | None
    owner: str | None
    owner_host: str | None
    owner_is_up: bool
    is_parked: bool
    wake_in_s: float | None
    age_s: float | None
    action_s: float | None = None
    time_left_s: float | None = None
    crash_count: int | None = None
    retry: Retry | None = None
    hook: Hook | None = None
    lost_token: str | None = None
    search_until: float | None = None


class SweepTask(StrEnum):
    """A task of the sweeper that begins with a question; see `convergence.engine.sweeper.tasks`."""

    TAKE_OVER = 'take over'
    EXPIRE = 'expire'
    GIVE_UP = 'give up'
    TIME_OUT = 'time out'
    SETTLE = 'settle'
    STOP_NESTED = 'stop nested'
    CANCEL_NESTED = 'cancel nested'
    WAKE = 'wake'
    PURGE = 'purge'
    FORGET = 'forget'
    ENROL = 'schedule'
    REPAIR = 'repair'


class WorkerTask(StrEnum):
    """A task of a worker that begins with a question; see `convergence.worker.upkeep.maintenance`."""

    GIVE_BACK = 'give back'
    INTERRUPT = 'interrupt'
    HELP_OUT = 'help out'
    REMOVE_SNAPSHOTS = 'remove snapshots'


class RelayTask(StrEnum):
    """A task of a relay that begins with a question; see `convergence.engine.notifications.relay`."""

    REPORT_PROGRESS = 'report progress'
    FAN_OUT = 'fan out'
    TELL_BUS = 'tell bus'
    TELL_WEBHOOKS = 'tell webhooks'


@dataclass(frozen=True, slots=True)
class SweepCriteria:
    """With what the tasks of a sweep ask; see the methods of `convergence.db.ports.SweepsPort`. Times in seconds.

    :param older_than_s: for how long a node was ready.
    :param slack_s: for how long an action is past its deadline.
    :param rested_s: for how long a stack was at rest that has left a row in progress.
    :param repair_pauses: see `convergence.db.ports.RepairsPort.failed_repairs`.
    """

    older_than_s: float
    slack_s: float
    rested_s: float
    repair_pauses: tuple[float, ...]
    limit: int
    window: int = DISPATCH_WINDOW


NO_LOAD: Mapping[str, Json] = MappingProxyType({})


@quickly_made
@dataclass(frozen=True, slots=True)
class Service:
    """One process.

    :param kind: ``api``, ``engine`` or ``worker``.
    :param lease_s: how many seconds after its last heartbeat it is taken for dead.
    :param load: how busy it said it was: ``threads``, ``busy``, ``waiting``, ``stuck``, as far as it knows; its
        ``pid``, and the ``mark`` of `convergence.lifetime`.
    :param age_s: seconds since the last heartbeat, by the database's clock.
    """

    id: str
    kind: str
    host: str
    version: str
    started_at: float
    beat_at: float
    lease_s: float
    stopped: bool
    load: Mapping[str, Json]
    age_s: float

    @property
    def is_up(self) -> bool:
        """Return True if the lease still runs."""
        return not self.stopped and self.age_s < self.lease_s

    @property
    def has_room(self) -> bool:
        """Return True if a worker would soon begin what it is given, as far as is known: nothing waits for its
        threads."""
        load: Mapping[str, Any] = self.load
        return 'threads' not in load or load['busy'] < load['threads'] or not load['waiting']


@dataclass(frozen=True, slots=True)
class Keep:
    """How much of the past is kept. None: all of it.

    :param events: the newest of each stack.
    :param operations: the newest of each stack, in its history.
    :param deleted_s: seconds for which a deleted stack can still be shown.
    """

    events: int | None = None
    operations: int | None = None
    deleted_s: float | None = None


EVERYTHING = Keep()

SNAPSHOT_RETRY_S = 60.0
"""Seconds before the deletion of a kept part of a snapshot is tried again: it failed, or its worker is still busy."""


@dataclass(frozen=True, slots=True)
class UnscheduledStack:
    """A stack at rest whose objects are not scheduled for observation yet."""

    stack_id: str
    traversal_id: str


@dataclass(frozen=True, slots=True)
class Drifted:
    """An object that is to be put right.

    :param root_id: the stack at the top of the tree that it belongs to.
    """

    root_id: str
    known: KnownObject


@dataclass(frozen=True, slots=True)
class WatchTarget:
    """A row whose object a notification is about.

    :param is_busy: True if an action of it is in progress, which may wait for just this notification.
    """

    resource_id: str
    stack_id: str
    is_busy: bool
