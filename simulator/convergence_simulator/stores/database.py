"""Access of a simulation to a real database: setting its clock, and reading all its rows."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from sqlalchemy import event, select

from convergence.core.rows import Event, Node, Resource, Stack, Template, Traversal
from convergence.db.connections.database import Database
from convergence.db.schema.columns import OWN_CLOCK
from convergence.db.schema.models import DUTY, EVENT, METADATA, RESOURCE, STACK, SYNC_POINT, TEMPLATE, TRAVERSAL
from convergence.db.schema.row_columns import (
    NODE_COLUMNS,
    RESOURCE_COLUMNS,
    STACK_COLUMNS,
    TRAVERSAL_COLUMNS,
    columns,
)
from convergence.db.statements.store import Store
from convergence_simulator.memory.look import Tables


def set_clock(database: Database, clock: Callable[[], float]) -> None:
    """Let an SQLite database use `clock` as the current time in all statements.

    :param clock: returns seconds since the epoch.
    :raises ValueError: the database is not SQLite; a client cannot set the clock of a server.
    """
    if database.dialect.name != 'sqlite':
        raise ValueError(f'{database.dialect.name} uses its own clock, which a simulation cannot set')

    def register(connection: Any, record: Any) -> None:
        connection.create_function('simulated_now', 0, clock)

    setattr(database.dialect, OWN_CLOCK, 'simulated_now()')
    event.listen(database, 'connect', register)
    database.dispose()  # open connections do not know the function


def all_rows(store: Store) -> Tables:
    """Return every row of a database, as committed at one moment."""
    nodes: dict[str, dict[int, Node]] = defaultdict(dict)
    notified_at: dict[tuple[str, int], float] = {}
    with _at_one_moment(store) as connection:
        for *values, at in connection.execute(select(*NODE_COLUMNS, SYNC_POINT.c.notified_at)):
            node = Node(*values)
            nodes[node.traversal_id][node.number] = node
            if at is not None:
                notified_at[node.traversal_id, node.number] = at
        events = select(*columns(EVENT, Event)).order_by(EVENT.c.sequence)
        return Tables(
            stack={row.id: Stack(*row) for row in connection.execute(select(*STACK_COLUMNS).order_by(STACK.c.id))},
            template={
                row.id: Template(*row)
                for row in connection.execute(select(*columns(TEMPLATE, Template)).order_by(TEMPLATE.c.id))
            },
            traversal={
                row.id: Traversal(*row)
                for row in connection.execute(select(*TRAVERSAL_COLUMNS).order_by(TRAVERSAL.c.id))
            },
            node=dict(nodes),
            notified_at=notified_at,
            resource={
                row.id: Resource(*row) for row in connection.execute(select(*RESOURCE_COLUMNS).order_by(RESOURCE.c.id))
            },
            event=[Event(*row) for row in connection.execute(events)],
        )


@contextmanager
def _at_one_moment(store: Store) -> Iterator[Any]:
    """Open a connection whose statements all see the same state of the rows."""
    if store.engine.dialect.name == 'sqlite':
        # Each transaction of SQLite sees one state, and one that may write would block all others.
        with store.reading() as connection:
            yield connection
        return
    with store.writing() as connection:  # in a connection that only reads, each statement is a transaction of its own
        connection.execution_options(isolation_level='REPEATABLE READ')
        yield connection


def is_empty(database: Database) -> bool:
    """Return True if a database with the newest schema contains no stack and never did."""
    with database.connect() as connection:
        return connection.execute(select(STACK.c.id).limit(1)).first() is None


def clear(store: Store) -> None:
    """Remove all stacks and processes, and everything that belongs to them.

    :raises Conflict: another process kept writing.
    """

    def remove(connection: Any) -> None:
        for table in reversed(METADATA.sorted_tables):
            if table is not DUTY:
                connection.execute(table.delete())
        connection.execute(DUTY.update().values(holder=None, until=0.0))

    store.write(remove, clear)
