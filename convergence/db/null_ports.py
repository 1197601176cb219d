"""Null ports: stand-ins for parts that a program or an installation does not have."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from convergence.core.model import DISPATCH_WINDOW
from convergence.core.observation import DriftSummary, KnownObject, Observation
from convergence.core.rows import Resource
from convergence.credentials.model import StoredCredentials
from convergence.db.records import RelayTask, SweepCriteria, SweepTask, WorkerTask


class AllPending:
    """There may be something to do for every task."""

    def of_sweep(self, look: SweepCriteria) -> frozenset[SweepTask]:
        """All of them."""
        return frozenset(SweepTask)

    def of_worker(self, worker_id: str, older_than_s: float, window: int = DISPATCH_WINDOW) -> frozenset[WorkerTask]:
        """All of them."""
        return frozenset(WorkerTask)

    def of_relay(self, progress_s: float | None) -> frozenset[RelayTask]:
        """All of them."""
        return frozenset(RelayTask)


ALL_PENDING = AllPending()


class NothingObserved:
    """No observer runs: no object is observed."""

    def of_row(self, row: Resource) -> Observation | None:
        """Nothing is known."""
        return None

    def summary(self, stack_id: str) -> DriftSummary:
        """Nothing is known."""
        return DriftSummary()

    def known(self, stack_ids: Sequence[str], *, drifted: bool = False, limit: int | None = None) -> list[KnownObject]:
        """Nothing is known."""
        return []


NOTHING_OBSERVED = NothingObserved()


class NoCredentials:
    """The rows of an installation in which no stack has credentials: there are none."""

    def plan(self, planned: StoredCredentials) -> None:
        """There is nowhere to keep them."""
        raise RuntimeError('credentials cannot be kept here')

    def made(self, credentials_id: str, content: Mapping[str, Any]) -> bool:
        """There are none."""
        return False

    def refused(self, credentials_id: str, reason: str) -> None:
        """There are none."""

    def one(self, credentials_id: str) -> StoredCredentials | None:
        """There is none."""
        return None

    def of_stack(self, stack_id: str) -> str | None:
        """It has none."""
        return None

    def drop_unwanted(self, settles_s: float, limit: int, credentials_id: str | None = None) -> int:
        """There are none."""
        return 0

    def take_unwanted(self, limit: int) -> list[StoredCredentials]:
        """There are none."""
        return []

    def forget(self, credentials_id: str) -> bool:
        """There are none."""
        return False

    def not_yet(self, taken: StoredCredentials, reason: str) -> None:
        """There are none."""


NO_CREDENTIALS = NoCredentials()
