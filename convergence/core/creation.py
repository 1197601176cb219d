"""What is known of the creation of a row. Whoever deletes, repeats or replaces one asks here, and nowhere else."""

from __future__ import annotations

from enum import StrEnum

from convergence.core.model import Action, Status
from convergence.core.rows import Resource


class Made(StrEnum):
    """What a creation has led to.

    * `NOTHING`: it was never begun; or its type has promised that it made nothing, and nobody has called it since.
    * `PERHAPS`: it may have made something, or may still do so. Only a search, or its end, tells.
    * `OBJECT`: the object is known, or the creation was complete without an id.
    """

    NOTHING = 'NOTHING'
    PERHAPS = 'PERHAPS'
    OBJECT = 'OBJECT'


def made(row: Resource) -> Made:
    """What is known of the creation of a row that nobody holds."""
    if row.physical_id is not None or row.output is not None:
        return Made.OBJECT
    if row.token is None or row.nothing_made or is_put_off(row):
        return Made.NOTHING
    return Made.PERHAPS


def is_put_off(row: Resource) -> bool:
    """Whether a creation only waits to be called again: its type has promised that the last call made nothing."""
    if (row.action, row.status) != (Action.CREATE, Status.IN_PROGRESS) or row.progress is not None:
        return False
    return row.retry is not None and row.retry.clean


def is_going_on(row: Resource) -> bool:
    """Whether something still goes on in the service by itself, which somebody has to poll."""
    return row.progress is not None and row.action is not Action.DELETE and not row.clearing
