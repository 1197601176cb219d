"""Columns of an observation and its row, and the conditions under which it counts."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from sqlalchemy import and_

from convergence.core.model import Action
from convergence.core.observation import KnownObject, Observation, ObservedState
from convergence.core.rows import Resource
from convergence.db.schema.columns import UNREADABLE
from convergence.db.schema.models import OBSERVATION, RESOURCE
from convergence.db.schema.row_columns import columns
from convergence.db.statements.store import Store

NEVER_UP = (Action.INIT, Action.DELETE, Action.SUSPEND)
"""After these actions there is nothing that could be compared."""
DRIFT = tuple(each for each in ObservedState if each.is_drift)
"""The states that count as drift."""
OBSERVATION_COLUMNS = columns(OBSERVATION, Observation)
_LIVE = [column.name for column in OBSERVATION_COLUMNS].index('live')
# The columns of a row that an observation needs; other sealed columns stay closed.
NEEDED = (
    *('id', 'stack_id', 'name', 'type', 'action', 'status', 'created_at', 'physical_id', 'definition', 'properties'),
    *('data', 'requires', 'replaced_by', 'owner', 'fence', 'token', 'revocation', 'template_id'),
    'accepted',
)
NEEDED_COLUMNS = [RESOURCE.c[name] for name in NEEDED]
AT_ROW = len(OBSERVATION_COLUMNS)
WITH_ROW = OBSERVATION.join(RESOURCE, RESOURCE.c.id == OBSERVATION.c.resource_id)
IS_SEEN = and_(OBSERVATION.c.fence == RESOURCE.c.fence, OBSERVATION.c.observed_at.is_not(None))
"""The condition that the object was observed in the present state of its row."""
FRESH: dict[str, Any] = {'repairs': 0, 'repair_at': None, 'given_up': False}
"""Of an object of which no repair has been begun yet."""


class ObservationRows:
    """Base of the repositories of observations.

    An observation is valid while its row has the fence under which it was made. After a new claim the object counts as
    not
    observed.
    """

    def __init__(self, store: Store) -> None:
        self._store = store


def observation_of(values: Sequence[Any]) -> Observation:
    """Return an observation from the values of `OBSERVATION_COLUMNS`."""
    # Most objects are as they were made: nothing is sealed, and opened with each look, where there are no live values.
    values = [None if value is UNREADABLE else value for value in values]
    values[_LIVE] = values[_LIVE] or {}
    return Observation(*values)


def needed_row_of(values: Sequence[Any]) -> Resource:
    """The row of an object, from what follows those: `NEEDED_COLUMNS`. What cannot be read is absent, and named."""
    read = dict(zip(NEEDED, values[AT_ROW : AT_ROW + len(NEEDED)], strict=True))
    damaged = tuple(name for name, value in read.items() if value is UNREADABLE)
    read |= {name: None if name == 'definition' else {} for name in damaged}
    return Resource(**read, damaged=damaged)


def known_of(values: Sequence[Any]) -> KnownObject:
    """Return an observation in its present state, with its row."""
    row = needed_row_of(values)
    return KnownObject(observation_of(values[:AT_ROW]).as_of(row.fence), row)
