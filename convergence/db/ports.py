"""Ports: the protocols through which engines and workers use the database, one for each purpose.

`convergence.db.repositories` implements them for SQL databases; the simulator has a memory store. Reads that serve the
API alone have no port: engines call `convergence.db.repositories.reads` directly.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from convergence.core.model import DISPATCH_WINDOW, Json
from convergence.core.observation import (
    DriftPolicies,
    DriftSummary,
    KnownObject,
    Leased,
    Observation,
    ObservationSource,
    ObservationUpdate,
)
from convergence.core.rows import (
    Event,
    Node,
    ReceivedSignal,
    Resource,
    Snapshot,
    SnapshotItem,
    Stack,
    Template,
    Traversal,
)
from convergence.core.software import SoftwareRowsPort
from convergence.credentials.model import StoredCredentials
from convergence.db.records import (
    NO_LOAD,
    Drifted,
    EndedTraversal,
    FrontierNode,
    HeldRow,
    NestingRow,
    ReadyNode,
    RelayTask,
    Service,
    SweepCriteria,
    SweepTask,
    TraversalProgress,
    UnneededNested,
    UnscheduledStack,
    WatchTarget,
    WorkerTask,
)
from convergence.db.transaction import Transactions


class TraversalReaderPort(Protocol):
    """Questions about operations and the steps of their plans."""

    def traversal(self, traversal_id: str) -> Traversal | None:
        """One operation."""

    def traversals(self, stack_id: str, *, newest: int | None = None) -> list[Traversal]:
        """The operations on a stack, oldest first."""

    def nodes(self, traversal_id: str, *, limit: int | None = None) -> list[Node]:
        """The nodes of a traversal, in order."""

    def frontier(self, traversal_id: str, limit: int) -> list[FrontierNode]:
        """At most `limit` ready nodes of a traversal: those held by a worker first, then the longest ready."""


class SignalReaderPort(Protocol):
    """Questions about the signals that resources have received."""

    def signals(self, resource_ids: Sequence[str]) -> list[tuple[str, ReceivedSignal]]:
        """The signals that some rows have received, oldest first, each with the name of the resource."""

    def has_signal(self, resource_id: str, signal_id: str) -> bool:
        """Return True if a row has received a signal."""

    def count_signals(self, resource_id: str) -> int:
        """How many signals a row has received."""


class ReaderPort(TraversalReaderPort, SignalReaderPort, Protocol):
    """Reads of stacks; they return committed rows only."""

    def stack(self, stack_id: str) -> Stack | None:
        """A stack by its id, deleted or not."""

    def stack_named(self, project_id: str, name: str) -> Stack | None:
        """A living stack by its name."""

    def stack_requested(self, project_id: str, request_key: str) -> Stack | None:
        """The stack that was made for a request."""

    def template(self, template_id: str) -> Template | None:
        """A template."""

    def summary(self, template_id: str) -> Mapping[str, Json] | None:
        """Return the summary of a template, as shown with its stack; None if it is missing or unreadable."""

    def resource(self, resource_id: str) -> Resource | None:
        """One row, by its id."""

    def nesting(self, resource_ids: Sequence[str]) -> list[NestingRow]:
        """Rows that were claimed, each with its stack, and the stack that is its object; in any order."""

    def resources(self, stack_id: str) -> list[Resource]:
        """All rows of a stack: also replaced ones, and those that are being removed."""

    def busy(self, stack_id: str, limit: int) -> list[Resource]:
        """Rows of a stack that are in the middle of an action, by name."""

    def nested_at_work(self, stack_id: str) -> list[Stack]:
        """The stacks nested in one, on the next level, that have something in progress."""

    def resources_named(self, stack_id: str, names: Sequence[str]) -> list[Resource]:
        """All rows of some resources of a stack."""

    def now(self) -> float:
        """The database's clock, in seconds since the epoch."""


class RosterPort(Protocol):
    """Registers processes and tells which of them are alive."""

    def register(
        self, service_id: str, kind: str, host: str, version: str, lease_s: float, load: Mapping[str, Json] = NO_LOAD
    ) -> None:
        """A process has started."""

    def beat(self, service_id: str, load: Mapping[str, Json] = NO_LOAD) -> bool:
        """A process is still there; False: it is not known any more."""

    def leave(self, service_id: str) -> None:
        """A process has ended: what it holds, if anything, may be taken from it."""

    def services(self) -> list[Service]:
        """All registered processes."""

    def remove_dead(self) -> int:
        """Forget the processes whose lease has run out and who hold nothing any more; how many there were."""

    def held_by(self, service_id: str) -> list[Resource]:
        """The resource rows that a worker holds."""


class SweepsPort(Protocol):
    """Finds, a limited number at a time, the rows that a sweeper has to attend to."""

    def take_duty(self, name: str, holder: str, for_s: float) -> bool:
        """Become, or stay, the one process that does something for the next `for_s` seconds."""

    def duty_held_s(self, name: str, holder: str) -> float:
        """Return the seconds for which another process than `holder` still holds a duty; 0 or less if no other process
        does.
        """

    def undispatched(
        self, older_than_s: float, limit: int, window: int = DISPATCH_WINDOW, patience_s: float | None = None
    ) -> list[ReadyNode]:
        """Return ready nodes of running traversals whose row is free and awake, and mark them as dispatched now."""

    def expired_claims(self, limit: int) -> list[HeldRow]:
        """Rows whose owner's lease has run out."""

    def overdue_actions(self, limit: int, slack_s: float) -> list[HeldRow]:
        """Held rows in the middle of an action that should have ended some time ago."""

    def parked_at_rest(self, limit: int) -> list[HeldRow]:
        """Free rows in the middle of a long action, of stacks in which nothing is in progress any more."""

    def interrupted(self, limit: int, older_than_s: float = 0.0) -> list[HeldRow]:
        """Free rows in the middle of an action, of stacks in which nothing is in progress any more."""

    def unsettled(self, limit: int) -> list[EndedTraversal]:
        """Failed traversals that are still those of their stacks."""

    def overdue(self, limit: int) -> list[EndedTraversal]:
        """Running traversals whose deadline is over."""

    def left_behind(self, limit: int, again_s: float) -> list[EndedTraversal]:
        """Traversals that have left rows of theirs to a later one."""

    def unneeded_nested(self, limit: int) -> list[UnneededNested]:
        """Nested stacks that do something on behalf of a resource that does not wait for it."""

    def nested_to_cancel(self, limit: int) -> list[UnneededNested]:
        """Nested stacks at work on behalf of a stack that is being cancelled, while they are not yet."""

    def released_nested(self, limit: int) -> list[UnneededNested]:
        """Nested stacks at rest whose resource is gone while they stayed."""

    def purge_nodes(self, limit: int) -> int:
        """Remove the nodes of some traversals that are over; how many."""

    def purge_stacks(self, limit: int) -> int:
        """Remove some stacks that were deleted long ago; how many."""

    def stalled(self, limit: int, after_s: float) -> list[TraversalProgress]:
        """Traversals in which no step has begun or ended for some time."""


class PendingPort(Protocol):
    """Finds the tasks that have work, with one query for all of them.

    An implementation that cannot decide returns all tasks. A task that is not returned has no work.
    """

    def of_sweep(self, look: SweepCriteria) -> frozenset[SweepTask]:
        """Return the sweeper tasks that have work."""

    def of_worker(self, worker_id: str, older_than_s: float, window: int = DISPATCH_WINDOW) -> frozenset[WorkerTask]:
        """Return the maintenance tasks of a worker that have work.

        :param older_than_s: seconds since the node became ready.
        """

    def of_relay(self, progress_s: float | None) -> frozenset[RelayTask]:
        """Return the relay tasks that have work.

        :param progress_s: seconds between progress notifications of an operation; None: none are sent.
        """


class SnapshotsPort(Protocol):
    """Reads snapshots, and removes them when all that was kept for them is gone."""

    def of_stack(self, stack_id: str) -> list[Snapshot]:
        """The snapshots of a stack, oldest first; also those that are being deleted."""

    def count(self, stack_id: str) -> int:
        """How many snapshots a stack has that are not being deleted."""

    def one(self, snapshot_id: str) -> Snapshot | None:
        """A snapshot."""

    def items(self, snapshot_id: str) -> list[SnapshotItem]:
        """Return the data that resource types keep for a snapshot, by resource name."""

    def take_unwanted(self, limit: int) -> list[SnapshotItem]:
        """Return kept data of snapshots that are being deleted; each item is handed to one caller for a while."""

    def forget(self, item: SnapshotItem) -> None:
        """It is not kept any more."""

    def not_yet(self, item: SnapshotItem, reason: str) -> None:
        """It could not be deleted; the snapshot says so until it can."""

    def remove_empty(self) -> int:
        """Remove the snapshots that are being deleted and for which nothing is kept; how many there were."""


class ObservationSchedulePort(Protocol):
    """Schedules the observation of objects."""

    def unscheduled(self, limit: int) -> list[UnscheduledStack]:
        """Return stacks at rest whose objects are not scheduled yet; none while no observer runs."""

    def schedule(
        self, stack: UnscheduledStack, intervals: Mapping[str, float], policies: DriftPolicies, limit: int
    ) -> int:
        """Schedule the objects of a stack that are not scheduled yet, and no others; return the number of new ones."""


class RepairsPort(Protocol):
    """Finds drifted objects to repair, and counts the repairs."""

    def to_repair(self, limit: int) -> list[Drifted]:
        """Objects that are to be put right and may be now, first what might have been begun longest ago.

        They are of stacks in whose tree nothing is in progress, and of which it is known what their policy is by now.
        """

    def failed_repairs(self, pauses: Sequence[float], limit: int) -> list[str]:
        """Stacks whose last operation was a repair that failed, of which the pause is over; longest ago first.

        :param pauses: seconds after the end of the first in a row, of the second, and so on; after more none is due.
        """

    def repair_begun(self, begun: Sequence[tuple[Resource, float]]) -> None:
        """Record that a repair of the objects of some rows began; for each, the seconds until the next repair may
        begin.

        If the repair is over by now, it counts for the rows that replaced these.
        """

    def repair_put_off(self, resource_ids: Sequence[str], for_s: float) -> None:
        """No repair of some objects could be begun; it is tried again in `for_s` seconds, and others come first."""

    def give_up(self, told: Mapping[str, Event]) -> None:
        """No repair of some objects is begun any more, and the event of each is stored; see `RepairRows.give_up`."""

    def forget_repairs(self, resource_ids: Sequence[str]) -> None:
        """Reset the repair counts of some objects, and allow repairs that were given up."""


class ObservationLeasesPort(Protocol):
    """Leases due objects to observers, and stores the results."""

    def due_in_s(self) -> float | None:
        """Return the seconds until the next object is due, 0 or less if one is due now; None: no object is observed."""

    def lease(self, holder: str, limit: int, for_s: float) -> list[Leased]:
        """Return objects that are due, each leased to one caller for `for_s` seconds."""

    def write(self, holder: str, looks: Sequence[ObservationUpdate]) -> int:
        """Store the results of a lease, except for rows that were claimed since; return the number stored."""

    def put_off(self, holder: str, resource_ids: Sequence[str], for_s: float) -> None:
        """Return leased objects without a result; they are due again in `for_s` seconds."""

    def request(self, stack_ids: Sequence[str], source: ObservationSource, rows: Sequence[str] | None = None) -> float:
        """Make objects due at once; return the database's time."""

    def waiting(self, stack_ids: Sequence[str]) -> int:
        """Return the number of requested observations that are still open and possible now."""


class KnownObjectsPort(Protocol):
    """Reads of the observed state of objects."""

    def of_row(self, row: Resource) -> Observation | None:
        """Return the observation of a row's object in its present state; None if it is not observed."""

    def summary(self, stack_id: str) -> DriftSummary:
        """How many objects of a stack are observed, and how many are known to be otherwise than they were made."""

    def known(self, stack_ids: Sequence[str], *, drifted: bool = False, limit: int | None = None) -> list[KnownObject]:
        """Return the observations of some stacks in their present state, by name; with `drifted` only drifted
        objects."""


class ObservationsPort(ObservationSchedulePort, ObservationLeasesPort, KnownObjectsPort, RepairsPort, Protocol):
    """All ports of observations."""


class WatchedPort(Protocol):
    """Reads of the objects to watch, and of the rows behind a notification."""

    def objects(self, types: Sequence[str]) -> Mapping[str, Sequence[str]]:
        """Return the physical ids of observed objects of some types, by type."""

    def targets_of(self, type_: str, physical_ids: Sequence[str]) -> list[WatchTarget]:
        """The rows of a type that have one of these objects."""


class CredentialsPort(Protocol):
    """Keeps the rows of the credentials with which stacks act for their users."""

    def plan(self, planned: StoredCredentials) -> None:
        """They are about to be made."""

    def made(self, credentials_id: str, content: Mapping[str, Any]) -> bool:
        """They have been made. False: they are being removed already."""

    def refused(self, credentials_id: str, reason: str) -> None:
        """Keystone does not accept them any more."""

    def one(self, credentials_id: str) -> StoredCredentials | None:
        """One row."""

    def of_stack(self, stack_id: str) -> str | None:
        """The id of those with which a stack acts: its own, or those of the nearest stack that it is nested in."""

    def drop_unwanted(self, settles_s: float, limit: int, credentials_id: str | None = None) -> int:
        """See which are needed no more, and have them removed; how many."""

    def take_unwanted(self, limit: int) -> list[StoredCredentials]:
        """Return credentials to remove now; each is handed to one caller for a while."""

    def forget(self, credentials_id: str) -> bool:
        """They do not exist any more. False: there are none such that are being removed."""

    def not_yet(self, taken: StoredCredentials, reason: str) -> None:
        """They could not be removed; it will be tried again."""


@dataclass(frozen=True, slots=True)
class Ports:
    """All ports of one database.

    :param store: runs transactions.
    """

    store: Transactions
    reader: ReaderPort
    roster: RosterPort
    sweeps: SweepsPort
    snapshots: SnapshotsPort
    software: SoftwareRowsPort
    observations: ObservationsPort
    watched: WatchedPort
    pending: PendingPort
    credentials: CredentialsPort
