"""All ports of one SQL database, built from its store."""

from __future__ import annotations

from convergence.db.ports import Ports
from convergence.db.records import EVERYTHING, Keep
from convergence.db.repositories.credentials import CredentialRows
from convergence.db.repositories.observations.known import KnownObjects
from convergence.db.repositories.observations.leases import ObservationLeases
from convergence.db.repositories.observations.repairs import RepairRows
from convergence.db.repositories.observations.scheduling import ObservationSchedules
from convergence.db.repositories.pending import PendingTasks
from convergence.db.repositories.reads.stacks import StackReader
from convergence.db.repositories.reads.watched import WatchedObjects
from convergence.db.repositories.roster import Roster
from convergence.db.repositories.snapshots import SnapshotRows
from convergence.db.repositories.software import SoftwareRows
from convergence.db.repositories.sweeps import Sweeps
from convergence.db.statements.store import Store


class Observations(ObservationSchedules, ObservationLeases, KnownObjects, RepairRows):
    """Implements `convergence.db.ports.ObservationsPort` on a database."""


def ports_of(store: Store, keep: Keep = EVERYTHING) -> Ports:
    """Return the ports of a database.

    :param keep: how much of the past the sweeps leave.
    """
    return Ports(
        store,
        StackReader(store),
        Roster(store),
        Sweeps(store, keep),
        SnapshotRows(store),
        SoftwareRows(store),
        Observations(store),
        WatchedObjects(store),
        PendingTasks(store, keep),
        CredentialRows(store),
    )
