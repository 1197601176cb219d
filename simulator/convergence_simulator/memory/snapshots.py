"""Snapshots in memory, with the interface of `convergence.db.repositories.snapshots.SnapshotRows`."""

from __future__ import annotations

from convergence.core.model import Action, Status
from convergence.core.rows import Snapshot, SnapshotItem
from convergence.db.records import SNAPSHOT_RETRY_S
from convergence.values import replace
from convergence_simulator.memory.store import MemoryStore


class MemorySnapshots:
    """Reads snapshots, and removes them after all their items are gone."""

    def __init__(self, store: MemoryStore) -> None:
        self._memory = store
        self._attempted: dict[tuple[str, str], float] = {}

    def of_stack(self, stack_id: str) -> list[Snapshot]:
        """Return the snapshots of a stack, oldest first, including those being deleted."""
        found = [each for each in self._memory.tables.snapshot.values() if each.stack_id == stack_id]
        return sorted(found, key=lambda each: (each.created_at, each.id))

    def count(self, stack_id: str) -> int:
        """Return the number of snapshots of a stack without those being deleted."""
        return sum(not each.deleting for each in self.of_stack(stack_id))

    def one(self, snapshot_id: str) -> Snapshot | None:
        """Return a snapshot."""
        self._memory.pause('read')
        return self._memory.tables.snapshot.get(snapshot_id)

    def items(self, snapshot_id: str) -> list[SnapshotItem]:
        """Return the items of a snapshot, by resource name."""
        found = [each for key, each in self._memory.tables.snapshot_item.items() if key[0] == snapshot_id]
        return sorted(found, key=lambda each: each.name)

    # --- deletion ---------------------------------------------------------------------------------------------

    def take_unwanted(self, limit: int) -> list[SnapshotItem]:
        """Return items of snapshots that are being deleted.

        Each is given to one caller for `SNAPSHOT_RETRY_S` seconds.
        """
        tables, now = self._memory.tables, self._memory.clock()
        taken: list[SnapshotItem] = []
        for key, item in tables.snapshot_item.items():
            snapshot = tables.snapshot.get(key[0])
            due = self._attempted.get(key, 0.0) < now - SNAPSHOT_RETRY_S
            if len(taken) < limit and snapshot is not None and snapshot.deleting and due and not self._busy(snapshot):
                self._attempted[key] = now
                taken.append(item)
        return taken

    def forget(self, item: SnapshotItem) -> None:
        """Remove an item."""
        self._memory.tables.snapshot_item.pop((item.snapshot_id, item.resource_id), None)

    def not_yet(self, item: SnapshotItem, reason: str) -> None:
        """Record in the snapshot that an item could not be deleted yet."""
        snapshot = self._memory.tables.snapshot.get(item.snapshot_id)
        if snapshot is not None:
            said = replace(snapshot, status=Status.FAILED, status_reason=reason)
            self._memory.tables.snapshot[item.snapshot_id] = said

    def remove_empty(self) -> int:
        """Remove the snapshots that are being deleted and have no items; return their number."""
        tables = self._memory.tables
        kept = {key[0] for key in tables.snapshot_item}
        empty = [
            each.id
            for each in tables.snapshot.values()
            if each.deleting and each.id not in kept and not self._busy(each)
        ]
        for key in empty:
            del tables.snapshot[key]
        return len(empty)

    def _busy(self, snapshot: Snapshot) -> bool:
        """Return True if a running action may still add items to a snapshot."""
        return any(
            row.action is Action.SNAPSHOT and row.status is Status.IN_PROGRESS
            for row in self._memory.tables.resources_of(snapshot.stack_id)
        )
