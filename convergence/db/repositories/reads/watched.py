"""Objects to watch, and the rows behind a notification."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence

from sqlalchemy import select

from convergence.core.model import Status
from convergence.db.records import WatchTarget
from convergence.db.schema.models import OBSERVATION, RESOURCE
from convergence.db.schema.row_columns import chunks
from convergence.db.statements.store import Store


class WatchedObjects:
    """Reads of the objects to watch, and of the rows behind a notification."""

    def __init__(self, store: Store) -> None:
        self._store = store

    def objects(self, types: Sequence[str]) -> Mapping[str, Sequence[str]]:
        """Return the physical ids of observed objects of some types, by type."""
        statement = (
            select(RESOURCE.c.type, RESOURCE.c.physical_id)
            .join(OBSERVATION, OBSERVATION.c.resource_id == RESOURCE.c.id)
            .where(RESOURCE.c.type.in_(list(types)), RESOURCE.c.physical_id.is_not(None))
        )
        found: dict[str, list[str]] = defaultdict(list)
        if types:
            with self._store.reading() as connection:
                for name, physical_id in connection.execute(statement):
                    found[name].append(physical_id)
        return found

    def targets_of(self, type_: str, physical_ids: Sequence[str]) -> list[WatchTarget]:
        """The rows of a type that have one of these objects."""
        found: list[WatchTarget] = []
        with self._store.reading() as connection:
            for some in chunks(list(physical_ids)):
                mine = select(RESOURCE.c.id, RESOURCE.c.stack_id, RESOURCE.c.status).where(
                    RESOURCE.c.physical_id.in_(some), RESOURCE.c.type == type_
                )
                rows = connection.execute(mine)
                found += [WatchTarget(row.id, row.stack_id, row.status is Status.IN_PROGRESS) for row in rows]
        return found
