"""The database as engines and workers use it: one object for each thing that is asked of it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Self

from convergence.db.queries.purges import EVERYTHING, Keep
from convergence.db.queries.roster import Roster
from convergence.db.queries.snapshots import SnapshotRows
from convergence.db.queries.stacks import StackReader
from convergence.db.queries.sweeps import Sweeps
from convergence.db.statements.store import Store
from convergence.db.transaction import Transactions


@dataclass(frozen=True, slots=True)
class Ports:
    """What engines and workers read and write rows through.

    :param store: carries decisions out.
    :param reader: answers questions about stacks.
    :param roster: knows the processes.
    :param sweeps: finds work that nobody attends to.
    :param snapshots: knows what is kept for snapshots.
    """

    store: Transactions
    reader: StackReader
    roster: Roster
    sweeps: Sweeps
    snapshots: SnapshotRows

    @classmethod
    def of(cls, store: Store, keep: Keep = EVERYTHING) -> Self:
        """Those of a database.

        :param keep: how much of the past the sweeps leave.
        """
        return cls(store, StackReader(store), Roster(store), Sweeps(store, keep), SnapshotRows(store))
