"""Reads of observations in their present state."""

from __future__ import annotations

from collections.abc import Sequence

from sqlalchemy import and_, case, func, select

from convergence.core.observation import DriftSummary, KnownObject, Observation
from convergence.core.rows import Resource
from convergence.db.repositories.observations.rows import (
    DRIFT,
    IS_SEEN,
    NEEDED_COLUMNS,
    OBSERVATION_COLUMNS,
    WITH_ROW,
    ObservationRows,
    known_of,
    observation_of,
)
from convergence.db.schema.models import OBSERVATION, RESOURCE
from convergence.db.schema.row_columns import chunks


class KnownObjects(ObservationRows):
    """Reads of the observed state of objects."""

    def of_row(self, row: Resource) -> Observation | None:
        """Return the observation of a row's object in its present state; None if it is not observed."""
        mine = select(*OBSERVATION_COLUMNS).where(OBSERVATION.c.resource_id == row.id)
        with self._store.reading() as connection:
            found = connection.execute(mine).first()
        return observation_of(found).as_of(row.fence) if found is not None else None

    def summary(self, stack_id: str) -> DriftSummary:
        """How many objects of a stack are observed, and how many are known to be otherwise than they were made."""
        drifted = and_(IS_SEEN, OBSERVATION.c.found.in_(DRIFT))
        figures = (
            func.count(),
            func.coalesce(func.sum(case((IS_SEEN, 1), else_=0)), 0),
            func.coalesce(func.sum(case((drifted, 1), else_=0)), 0),
            func.min(case((drifted, OBSERVATION.c.since))),
            func.max(case((IS_SEEN, OBSERVATION.c.observed_at))),
        )
        of_stack = select(*figures).select_from(WITH_ROW).where(OBSERVATION.c.stack_id == stack_id)
        with self._store.reading() as connection:
            observed, seen, drifting, since, observed_at = connection.execute(of_stack).one()
        return DriftSummary(int(observed), int(seen), int(drifting), since, observed_at)

    def known(self, stack_ids: Sequence[str], *, drifted: bool = False, limit: int | None = None) -> list[KnownObject]:
        """Return the observations of some stacks in their present state, by name; also of objects not observed yet.

        :param drifted: return drifted objects only.
        """
        found: list[KnownObject] = []
        with self._store.reading() as connection:
            for some in chunks(list(stack_ids)):
                mine = (
                    select(*OBSERVATION_COLUMNS, *NEEDED_COLUMNS)
                    .select_from(WITH_ROW)
                    .where(OBSERVATION.c.stack_id.in_(some))
                )
                if drifted:
                    mine = mine.where(IS_SEEN, OBSERVATION.c.found.in_(DRIFT))
                rows = connection.execute(mine.order_by(RESOURCE.c.name, RESOURCE.c.id).limit(limit))
                found += [known_of(row) for row in rows]
        return found[:limit]
