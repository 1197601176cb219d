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
        """Whether a row has received a signal."""

    def count_signals(self, resource_id: str) -> int:
        """How many signals a row has received."""


class ReaderPort(TraversalReaderPort, SignalReaderPort, Protocol):
    """Answers questions about stacks, from what is committed."""

    def stack(self, stack_id: str) -> Stack | None:
        """A stack by its id, deleted or not."""

    def stack_named(self, project_id: str, name: str) -> Stack | None:
        """A living stack by its name."""

    def stack_requested(self, project_id: str, request_key: str) -> Stack | None:
        """The stack that was made for a request."""

    def template(self, template_id: str) -> Template | None:
        """A template."""

    def summary(self, template_id: str) -> Mapping[str, Json] | None:
        """What is shown of a template wherever its stack is; None where it is not there, or cannot be read."""

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
        """For how many seconds more somebody else than `holder` has a duty; 0 or less: nobody else has it."""

    def undispatched(
        self, older_than_s: float, limit: int, window: int = DISPATCH_WINDOW, patience_s: float | None = None
    ) -> list[ReadyNode]:
        """Ready nodes of running traversals whose row is free and awake; they count as told of from now on."""

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
    """Tells for which tasks there is something to do: for all of them with one question.

    Whoever cannot tell names them all. One that is not named has nothing to do.
    """

    def of_sweep(self, look: SweepCriteria) -> frozenset[SweepTask]:
        """Those of the sweeper."""

    def of_worker(self, worker_id: str, older_than_s: float, window: int = DISPATCH_WINDOW) -> frozenset[WorkerTask]:
        """Those of a worker.

        :param older_than_s: for how long a node was ready.
        """

    def of_relay(self, progress_s: float | None) -> frozenset[RelayTask]:
        """Those of a relay.

        :param progress_s: seconds for which nothing was told of an operation in progress; None: nothing ever is.
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
        """What types keep for a snapshot, by resource name."""

    def take_unwanted(self, limit: int) -> list[SnapshotItem]:
        """What is kept for snapshots that are being deleted, each handed out to one caller for a while."""

    def forget(self, item: SnapshotItem) -> None:
        """It is not kept any more."""

    def not_yet(self, item: SnapshotItem, reason: str) -> None:
        """It could not be deleted; the snapshot says so until it can."""

    def remove_empty(self) -> int:
        """Remove the snapshots that are being deleted and for which nothing is kept; how many there were."""


class ObservationSchedulePort(Protocol):
    """Enrols the objects that are to be looked at."""

    def unscheduled(self, limit: int) -> list[UnscheduledStack]:
        """Stacks at rest of which nobody has looked yet what is to be observed; none while no observer runs."""

    def schedule(
        self, stack: UnscheduledStack, intervals: Mapping[str, float], policies: DriftPolicies, limit: int
    ) -> int:
        """Have the objects of a stack observed that are to be and are not yet, and no others; how many are new.

        What is nested in it is to be enrolled again where its policy is another since. Where its operation is not seen
        to be over none is forgotten, and the stack is found again: there may be others than are seen.
        """


class RepairsPort(Protocol):
    """Tells what is to be put right, and keeps count of what was begun."""

    def to_repair(self, limit: int) -> list[Drifted]:
        """Objects that are to be put right and may be now, first what might have been begun longest ago.

        They are of stacks in whose tree nothing is in progress, and of which it is known what their policy is by now.
        """

    def failed_repairs(self, pauses: Sequence[float], limit: int) -> list[str]:
        """Stacks whose last operation was a repair that failed, of which the pause is over; longest ago first.

        :param pauses: seconds after the end of the first in a row, of the second, and so on; after more none is due.
        """

    def repair_begun(self, begun: Sequence[tuple[Resource, float]]) -> None:
        """A repair of the objects of some rows was begun; for each the seconds until another one may begin.

        It may be over by now: then it counts for what has taken their places.
        """

    def repair_put_off(self, resource_ids: Sequence[str], for_s: float) -> None:
        """No repair of some objects could be begun; it is tried again in `for_s` seconds, and others come first."""

    def give_up(self, told: Mapping[str, Event]) -> None:
        """No repair of some objects is begun any more, and the event of each is stored; see `RepairRows.give_up`."""

    def forget_repairs(self, resource_ids: Sequence[str]) -> None:
        """Earlier repairs of some objects do not count any more, and what was given up is tried again."""


class ObservationLeasesPort(Protocol):
    """Hands out what is to be looked at, and keeps what was seen."""

    def due_in_s(self) -> float | None:
        """Seconds until the next object is to be looked at, less than 0 if one is already; None: none is observed."""

    def lease(self, holder: str, limit: int, for_s: float) -> list[Leased]:
        """What is to be looked at now, each handed to one caller for `for_s` seconds."""

    def write(self, holder: str, looks: Sequence[ObservationUpdate]) -> int:
        """Keep what was seen under a lease, unless its row was claimed since; how much of it was taken."""

    def put_off(self, holder: str, resource_ids: Sequence[str], for_s: float) -> None:
        """Nobody has looked at what was leased; it is due again in `for_s` seconds."""

    def request(self, stack_ids: Sequence[str], source: ObservationSource, rows: Sequence[str] | None = None) -> float:
        """Make objects due at once; return the database's time."""

    def waiting(self, stack_ids: Sequence[str]) -> int:
        """How many objects of some stacks somebody waits to be looked at that can be compared now."""


class KnownObjectsPort(Protocol):
    """Tells what is known of the objects of stacks."""

    def of_row(self, row: Resource) -> Observation | None:
        """What is known of the object of one row as that is now; None: it is not observed."""

    def summary(self, stack_id: str) -> DriftSummary:
        """How many objects of a stack are observed, and how many are known to be otherwise than they were made."""

    def known(self, stack_ids: Sequence[str], *, drifted: bool = False, limit: int | None = None) -> list[KnownObject]:
        """What is known of the objects of some stacks as they are now, or of those that have `drifted`, by name."""


class ObservationsPort(ObservationSchedulePort, ObservationLeasesPort, KnownObjectsPort, RepairsPort, Protocol):
    """All that is asked of observations."""


class WatchedPort(Protocol):
    """Answers what is to be watched, and what an event is about."""

    def objects(self, types: Sequence[str]) -> Mapping[str, Sequence[str]]:
        """The physical ids of what is observed, by type, of some types."""

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
        """Those to be removed now, each handed out to one caller for a while."""

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
