"""Read-only questions about the stacks that are nested in a stack, however deep: each is one statement."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from sqlalchemy import select

from convergence.core.model import Definition, Phase
from convergence.core.rows import Resource, Stack, Traversal
from convergence.db.repositories.reads.inspection import Inspector
from convergence.db.repositories.reads.nested import below
from convergence.db.schema.models import RESOURCE, STACK, SYNC_POINT, TRAVERSAL
from convergence.db.schema.row_columns import (
    RESOURCE_COLUMNS,
    STACK_COLUMNS,
    TRAVERSAL_COLUMNS,
    chunks,
    resource_of,
)


class TreeInspector(Inspector):
    """Answers questions about stacks in stacks."""

    def nested_below(self, stack_id: str, depth: int) -> list[Stack]:
        """The living stacks that are nested in a stack, at most so many levels below it; those further up first."""
        tree = below(stack_id, depth)
        found = select(*STACK_COLUMNS).join(tree, tree.c.id == STACK.c.id)
        nested = found.where(tree.c.depth > 0, STACK.c.live_name.is_not(None))
        return self._many(Stack, nested.order_by(tree.c.depth, STACK.c.created_at, STACK.c.id))

    def resources_of_stacks(self, stack_ids: Sequence[str]) -> list[Resource]:
        """All rows of some stacks: also replaced ones, and those that are being removed."""
        found: list[Resource] = []
        for some in chunks(sorted(stack_ids)):
            found += self._many(resource_of, select(*RESOURCE_COLUMNS).where(RESOURCE.c.stack_id.in_(some)))
        return found

    def resource_names(self, resource_ids: Sequence[str]) -> dict[str, str]:
        """The names of some rows, by their keys."""
        found: dict[str, str] = {}
        with self._store.reading() as connection:
            for some in chunks(sorted(resource_ids)):
                statement = select(RESOURCE.c.id, RESOURCE.c.name).where(RESOURCE.c.id.in_(some))
                found.update((key, name) for key, name in connection.execute(statement))
        return found

    def names_in(self, stack_id: str) -> list[str]:
        """The names of the resources of a stack, in order: each once, however many rows it has."""
        with self._store.reading() as connection:
            found = connection.execute(select(RESOURCE.c.name).distinct().where(RESOURCE.c.stack_id == stack_id))
            return sorted(found.scalars())

    def traversals_of_stacks(self, stack_ids: Sequence[str], newest: int) -> list[Traversal]:
        """The newest operations on some stacks, all in all so many, the newest first."""
        found: list[Traversal] = []
        for some in chunks(sorted(stack_ids)):
            of_stacks = select(*TRAVERSAL_COLUMNS).where(TRAVERSAL.c.stack_id.in_(some))
            found += self._many(
                Traversal, of_stacks.order_by(TRAVERSAL.c.started_at.desc(), TRAVERSAL.c.id.desc()).limit(newest)
            )
        return sorted(found, key=lambda each: (each.started_at, each.id), reverse=True)[:newest]

    def stacks_by_id(self, stack_ids: Iterable[str]) -> list[Stack]:
        """Some stacks, deleted or not."""
        found: list[Stack] = []
        for some in chunks(sorted(stack_ids)):
            found += self._many(Stack, select(*STACK_COLUMNS).where(STACK.c.id.in_(some)))
        return found

    def stacks_of_resources(self, resource_ids: Sequence[str]) -> list[Stack]:
        """The living stacks that are the objects of some rows."""
        found: list[Stack] = []
        for some in chunks(sorted(resource_ids)):
            living = select(*STACK_COLUMNS).where(STACK.c.live_name.is_not(None))
            found += self._many(Stack, living.where(STACK.c.parent_resource_id.in_(some)))
        return found

    def planned(self, traversal_ids: Sequence[str]) -> list[tuple[str, Definition]]:
        """Return the definitions of the update nodes of some traversals, each with its traversal, while the nodes
        exist.

        Unreadable definitions are left out.
        """
        found: list[tuple[str, Definition]] = []
        wanted = select(SYNC_POINT.c.traversal_id, SYNC_POINT.c.definition).where(SYNC_POINT.c.phase == Phase.UPDATE)
        with self._store.reading() as connection:
            for some in chunks(sorted(traversal_ids)):
                rows = connection.execute(wanted.where(SYNC_POINT.c.traversal_id.in_(some)))
                found += [(key, definition) for key, definition in rows if isinstance(definition, Definition)]
        return found
