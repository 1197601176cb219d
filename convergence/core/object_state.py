"""The state of the object of a row, as far as the row shows it: created or not, foreign or own, suspended or not."""

from __future__ import annotations

from enum import StrEnum

from convergence.core.model import Action, Definition, Status
from convergence.core.rows import Resource


class Made(StrEnum):
    """The outcome of a creation.

    * `NOTHING`: the creation has not begun; or its type guarantees that it created nothing and was not called since.
    * `PERHAPS`: the creation may have created an object, or still may. Only a search or its end can show it.
    * `OBJECT`: the object is known, or the creation was complete without an id.
    """

    NOTHING = 'NOTHING'
    PERHAPS = 'PERHAPS'
    OBJECT = 'OBJECT'


def made(row: Resource) -> Made:
    """Return the known outcome of the creation of a row that no worker has claimed."""
    if row.physical_id is not None or row.output is not None:
        return Made.OBJECT
    if row.token is None or row.nothing_made or is_put_off(row):
        return Made.NOTHING
    return Made.PERHAPS


def is_put_off(row: Resource) -> bool:
    """Return True if a creation only waits for a retry, and its type guarantees that the last call created nothing."""
    if (row.action, row.status) != (Action.CREATE, Status.IN_PROGRESS) or row.progress is not None:
        return False
    return row.retry is not None and row.retry.clean


def is_going_on(row: Resource) -> bool:
    """Return True if a long action still runs in the service, so that a worker has to poll it."""
    return row.progress is not None and row.action is not Action.DELETE and not row.clearing


ADOPTED = 'adopted'
"""Key in the private data of a row for a nested stack to create: the data of the stack whose objects it adopts."""


def is_adopted(resource: Resource) -> bool:
    """Return True if the row uses a foreign object by its external id, which no stack changes."""
    return resource.definition is not None and resource.definition.external_id is not None


def refusal(resource: Resource, wanted: Definition) -> str | None:
    """Return the reason why a row with an object cannot get another external id; None if it is unchanged.

    After such a change no stack would delete the object that this stack created, and no stack may delete a foreign one.
    """
    if resource.definition is None or resource.definition.external_id == wanted.external_id:
        return None
    return (
        'external_id cannot be added, changed or removed by an update; '
        'give the resource another name to use another object'
    )


def brings_nested(resource: Resource) -> bool:
    """Return True if the object of a row will be a nested stack that adopts existing objects."""
    return resource.data.get(ADOPTED) is not None


def is_offered(resource: Resource) -> bool:
    """Return True if a row names an object that existed before its stack and is not adopted yet.

    The row has a physical id from the beginning and never gets a token, because no object is ever created for it.
    """
    if resource.token is not None or resource.physical_id is None:
        return False
    begun = resource.action is Action.ADOPT and resource.status is Status.IN_PROGRESS
    return resource.action is Action.INIT or begun


def is_asleep(row: Resource) -> bool:
    """Return True if the last action of a row was a suspend that has ended, even with a failure."""
    return row.action is Action.SUSPEND and row.status is not Status.IN_PROGRESS


def may_still_sleep(row: Resource) -> bool:
    """Return True if the last resume of a row failed: the object may still be suspended."""
    return row.action is Action.RESUME and row.status is Status.FAILED


def was_never_made(row: Resource) -> bool:
    """Return True if no object was ever created or adopted for the row."""
    return row.token is None and row.physical_id is None


def object_of(row: Resource) -> str:
    """Return the data by which a user finds the object of a row: type, physical id and token."""
    known = [row.shown_type]
    known += [f'physical id {row.physical_id}'] if row.physical_id is not None else []
    known += [f'token {row.token}'] if row.token is not None else []
    if row.physical_id is None and row.token is None:
        known.append('never created')
    return ', '.join(known)
