"""Counts over all projects: how the installation is."""

from __future__ import annotations

from dataclasses import dataclass

from sqlalchemy import case, func, select

from convergence.core.model import UNDER_WAY
from convergence.db.schema.columns import asked_at
from convergence.db.schema.models import TRAVERSAL
from convergence.db.statements.store import Store

LATE_S = 60.0
"""Seconds past its deadline after which an operation should have been ended by a sweep."""

_LATE = TRAVERSAL.c.deadline < asked_at() - LATE_S
_OPERATIONS = select(
    func.count(),
    func.count(case((TRAVERSAL.c.stalled_at.is_not(None), 1))),
    func.count(case((_LATE, 1))),
).where(TRAVERSAL.c.status.in_(UNDER_WAY))


@dataclass(frozen=True, slots=True)
class Operations:
    """How many operations are in progress, make no progress, and should have been ended."""

    running: int
    stalled: int
    late: int


class Overview:
    """Answers questions about the whole installation."""

    def __init__(self, store: Store) -> None:
        self._store = store

    def operations(self) -> Operations:
        """The operations that are not over."""
        with self._store.reading() as connection:
            return Operations(*(int(count) for count in connection.execute(_OPERATIONS).one()))
