"""Read-only questions about stacks, for the callers of the engine. What they see is committed."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from sqlalchemy import ColumnElement, Select, and_, bindparam, func, not_, or_, select, true

from convergence.core.model import Action, Json, Status
from convergence.core.rows import Event, Resource, Stack, Template
from convergence.db.records import NestingRow
from convergence.db.repositories.reads.inspection import in_states
from convergence.db.repositories.reads.nested import READ_NESTING, nesting_of
from convergence.db.repositories.reads.traversals import TraversalInspector
from convergence.db.repositories.reads.tree import TreeInspector
from convergence.db.schema.columns import UNREADABLE, dumps
from convergence.db.schema.models import EVENT, RESOURCE, STACK, TEMPLATE
from convergence.db.schema.row_columns import RESOURCE_COLUMNS, STACK_COLUMNS, columns, resource_of
from convergence.db.statements.prepared.statement import PreparedStatement
from convergence.errors import CannotBeRead, GoalUnreadable

READ_STACK_ALONE = PreparedStatement(select(*STACK_COLUMNS).where(STACK.c.id == bindparam('stack')))
READ_TEMPLATE = PreparedStatement(select(*columns(TEMPLATE, Template)).where(TEMPLATE.c.id == bindparam('template')))
READ_RESOURCE = PreparedStatement(select(*RESOURCE_COLUMNS).where(RESOURCE.c.id == bindparam('resource')))

STACK_SORT_KEYS = {
    'stack_name': STACK.c.name,
    'stack_status': STACK.c.status,
    'creation_time': STACK.c.created_at,
    'updated_time': STACK.c.updated_at,
}


@dataclass(frozen=True, slots=True)
class TagFilter:
    """Conditions on the tags of a stack; an empty part restricts nothing.

    :param every: the stack has all of these.
    :param some: the stack has at least one of these.
    :param not_every: the stack does not have all of these.
    :param not_some: the stack has none of these.
    """

    every: Collection[str] = ()
    some: Collection[str] = ()
    not_every: Collection[str] = ()
    not_some: Collection[str] = ()

    def conditions(self) -> list[ColumnElement[bool]]:
        """Return the SQL conditions of the filter."""
        found = [_has_tag(tag) for tag in self.every]
        if self.some:
            found.append(or_(*map(_has_tag, self.some)))
        if self.not_every:
            found.append(not_(and_(*map(_has_tag, self.not_every))))
        return [*found, *(not_(_has_tag(tag)) for tag in self.not_some)]


def _has_tag(tag: str) -> ColumnElement[bool]:
    """The condition that a row has a tag, by the JSON text of its tags.

    Exactly that tag: what begins with a bracket or a comma and an unescaped quote is the beginning of a tag, for tags
    have no commas. REPLACE tells capitals from small letters in every database, which LIKE does not.
    """
    rest: ColumnElement[str] = STACK.c.tags
    for before in '[,':
        rest = func.replace(rest, f'{before}{dumps(tag)}', '')
    return func.length(rest) < func.length(STACK.c.tags)


@dataclass(frozen=True, slots=True)
class StackFilter:
    """Filters and page of a list of stacks.

    :param filters: accepted values by column (``id``, ``name``, ``action``, ``status``); a value may be a list. The
        filter
    ``state`` has a list of pairs of action and status, of which None stands for any.
    :param show_nested: True to include nested stacks.
    :param sort_keys: names of `STACK_SORT_KEYS`.
    :param marker: id of the last stack of the page before.
    :param tags: conditions on tags.
    """

    project_id: str
    filters: dict[str, Any] = field(default_factory=dict)
    show_deleted: bool = False
    limit: int | None = None
    marker: str | None = None
    sort_keys: tuple[str, ...] = ()
    descending: bool = True
    show_nested: bool = False
    tags: TagFilter = field(default_factory=TagFilter)


class StackReader(TreeInspector, TraversalInspector):
    """Reads of stacks and their parts."""

    def stack(self, stack_id: str) -> Stack | None:
        """A stack by its id, deleted or not."""
        return self._one(Stack, READ_STACK_ALONE, stack=stack_id)

    def stack_named(self, project_id: str, name: str) -> Stack | None:
        """A living stack by its name."""
        matches = (STACK.c.project_id == project_id, STACK.c.live_name == name)
        return self._one(Stack, select(*STACK_COLUMNS).where(*matches))

    def stack_requested(self, project_id: str, request_key: str) -> Stack | None:
        """The stack, deleted or not, that was made by the request with that key."""
        matches = (STACK.c.project_id == project_id, STACK.c.request_key == request_key)
        return self._one(Stack, select(*STACK_COLUMNS).where(*matches))

    def stacks(self, query: StackFilter) -> list[Stack]:
        """Return the stacks that a query selects, newest first by default.

        A marker keeps its place in the order when it does not satisfy the filters (any more).
        """
        statement = self._filtered(select(*STACK_COLUMNS), query, also=query.marker)
        keys = [STACK_SORT_KEYS[key] for key in query.sort_keys] or [STACK.c.created_at]
        statement = statement.order_by(*(key.desc() if query.descending else key.asc() for key in [*keys, STACK.c.id]))
        found = self._many(Stack, statement)
        if query.marker is not None:
            ids = [stack.id for stack in found]
            found = found[ids.index(query.marker) + 1 :] if query.marker in ids else []
        return found[: query.limit] if query.limit is not None else found

    def count_stacks(self, query: StackFilter) -> int:
        """Return the number of stacks that a query selects, on all pages."""
        statement = self._filtered(select(func.count()).select_from(STACK), query)
        with self._store.reading() as connection:
            return int(connection.execute(statement).scalar_one())

    def template(self, template_id: str) -> Template | None:
        """A template.

        :raises GoalUnreadable: it is there, and cannot be read.
        """
        try:
            return self._one(Template, READ_TEMPLATE, template=template_id)
        except CannotBeRead:
            raise GoalUnreadable(
                'The stored template of the stack cannot be read any more. Put back the key that sealed it; '
                'or update the stack with a whole template; or delete it.'
            ) from None

    def summary(self, template_id: str) -> Mapping[str, Json] | None:
        """Return the summary of a template, as shown with its stack; None if it is missing or unreadable."""
        with self._store.reading() as connection:
            found = connection.execute(select(TEMPLATE.c.summary).where(TEMPLATE.c.id == template_id)).scalar()
        return None if found is UNREADABLE else found

    def resource(self, resource_id: str) -> Resource | None:
        """One row, by its id."""
        return self._one(resource_of, READ_RESOURCE, resource=resource_id)

    def nesting(self, resource_ids: Sequence[str]) -> list[NestingRow]:
        """Rows that were claimed, each with its stack, and the stack that is its object, deleted or not."""
        with self._store.reading() as connection:
            return [nesting_of(*row) for row in READ_NESTING.all(connection, {'resources': tuple(resource_ids)})]

    def resources(self, stack_id: str) -> list[Resource]:
        """All rows of a stack: also replaced ones, and those that are being removed."""
        by_name = (RESOURCE.c.name, RESOURCE.c.created_at, RESOURCE.c.id)
        return self._many(
            resource_of, select(*RESOURCE_COLUMNS).where(RESOURCE.c.stack_id == stack_id).order_by(*by_name)
        )

    def nested_at_work(self, stack_id: str) -> list[Stack]:
        """The stacks nested in one, on the next level, that have something in progress."""
        at_work = and_(STACK.c.live_name.is_not(None), STACK.c.status == Status.IN_PROGRESS)
        return self._many(Stack, select(*STACK_COLUMNS).where(STACK.c.parent_id == stack_id, at_work))

    def events(self, stack_id: str) -> list[Event]:
        """Return the events of a stack and its resources, oldest first."""
        statement = select(*columns(EVENT, Event)).where(EVENT.c.stack_id == stack_id).order_by(EVENT.c.sequence)
        return self._many(Event, statement)

    @staticmethod
    def _filtered(statement: Select[Any], query: StackFilter, *, also: str | None = None) -> Select[Any]:
        conditions: list[ColumnElement[bool]] = [] if query.show_deleted else [STACK.c.live_name.is_not(None)]
        if not query.show_nested:
            conditions.append(STACK.c.parent_id.is_(None))
        conditions += query.tags.conditions()
        for name, wanted in query.filters.items():
            values = list(wanted) if isinstance(wanted, (list, tuple, set)) else [wanted]
            if name == 'state':
                conditions.append(in_states(STACK.c.action, STACK.c.status, values))
            else:
                conditions.append(STACK.c[name].in_(values))
        matches = and_(true(), *conditions)
        wanted_rows = matches if also is None else or_(matches, STACK.c.id == also)
        return statement.where(STACK.c.project_id == query.project_id, wanted_rows)


def in_service(rows: Sequence[Resource], template_id: str | None) -> dict[str, Resource]:
    """For each name the row that a caller should be shown: the goal's, not replaced, not going away, newest."""
    best: dict[str, Resource] = {}

    def rank(row: Resource) -> tuple[bool, bool, bool, bool, float, str]:
        return (
            row.action is not Action.DELETE,
            row.replaced_by is None,
            row.template_id == template_id,
            row.template_id is not None,
            row.created_at,
            row.id,
        )

    for row in rows:
        if row.name not in best or rank(row) > rank(best[row.name]):
            best[row.name] = row
    return best
