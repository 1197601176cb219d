"""Store events and signals: a database gives each its place in a sequence."""

from __future__ import annotations

from typing import Any

from sqlalchemy import insert
from sqlalchemy.engine import Connection

from convergence.core import effects
from convergence.db.schema.models import EVENT, SIGNAL
from convergence.db.schema.row_columns import stored_values
from convergence.db.statements.applying.changing import store_event
from convergence.db.statements.prepared.batch import StatementBatch


def insert_events(batch: StatementBatch, effect: effects.InsertEvents) -> None:
    """See the effect."""
    if len(effect.events) == 1:
        store_event(batch, effect.events[0])
        return
    batch.flush_rows()  # events are numbered in their order
    batch.send()
    batch.connection.execute(insert(EVENT), [_unnumbered(event) for event in effect.events])


def insert_signal(connection: Connection, effect: effects.InsertSignal) -> None:
    """See the effect."""
    connection.execute(insert(SIGNAL), _unnumbered(effect.signal))


def _unnumbered(row: Any) -> dict[str, Any]:
    """The columns of a row that the database gives its place in a sequence."""
    return {name: value for name, value in stored_values(row).items() if name != 'sequence'}
