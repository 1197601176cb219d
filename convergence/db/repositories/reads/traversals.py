"""Read-only questions about operations and the steps of their plans: each is one statement."""

from __future__ import annotations

from sqlalchemy import func, select

from convergence.core.model import Phase
from convergence.core.rows import Node, Traversal
from convergence.db.repositories.reads.inspection import Inspector
from convergence.db.schema.models import SYNC_POINT, TRAVERSAL
from convergence.db.schema.row_columns import NODE_COLUMNS, TRAVERSAL_COLUMNS, node_of
from convergence.db.statements.loading.plans import READ_TRAVERSAL


class TraversalInspector(Inspector):
    """Answers questions about operations."""

    def traversal(self, traversal_id: str) -> Traversal | None:
        """One operation."""
        return self._one(Traversal, READ_TRAVERSAL, traversal=traversal_id)

    def traversals(self, stack_id: str, *, newest: int | None = None) -> list[Traversal]:
        """The operations on a stack, oldest first.

        :param newest: only so many of them, the newest; None for all.
        """
        of_stack = select(*TRAVERSAL_COLUMNS).where(TRAVERSAL.c.stack_id == stack_id)
        newest_first = of_stack.order_by(TRAVERSAL.c.started_at.desc(), TRAVERSAL.c.id.desc())
        return self._many(Traversal, newest_first.limit(newest))[::-1]

    def node_counts(self, traversal_id: str) -> dict[str, int]:
        """How many nodes of a traversal are in each status."""
        statement = (
            select(SYNC_POINT.c.status, func.count())
            .where(SYNC_POINT.c.traversal_id == traversal_id)
            .group_by(SYNC_POINT.c.status)
        )
        with self._store.reading() as connection:
            return {str(status): count for status, count in connection.execute(statement)}

    def nodes(self, traversal_id: str, *, limit: int | None = None) -> list[Node]:
        """The nodes of a traversal, in order."""
        statement = select(*NODE_COLUMNS).where(SYNC_POINT.c.traversal_id == traversal_id)
        return self._many(node_of, statement.order_by(SYNC_POINT.c.number).limit(limit))

    def chosen(self, traversal_id: str) -> dict[str, str]:
        """The row that is in service, or will be, for each name that a traversal visits."""
        statement = select(SYNC_POINT.c.name, SYNC_POINT.c.resource_id).where(
            SYNC_POINT.c.traversal_id == traversal_id, SYNC_POINT.c.phase == Phase.UPDATE
        )
        with self._store.reading() as connection:
            return {row.name: row.resource_id for row in connection.execute(statement)}
