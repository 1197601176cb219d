"""The state of the object of a row, as far as the row shows it: created or not, foreign or own, suspended or not."""

from __future__ import annotations

from enum import StrEnum

from convergence.core.model import Action, Definition, Status
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


ADOPTED = 'adopted'
"""In the private data of a row whose object is to be a stack: what that stack is to take over, as it was given."""


def is_adopted(resource: Resource) -> bool:
    """Whether the object of a row belongs to somebody else."""
    return resource.definition is not None and resource.definition.external_id is not None


def refusal(resource: Resource, wanted: Definition) -> str | None:
    """Why a row that was begun cannot become what is wanted now; None where it can.

    Nobody would clean up an object that was made here and is then left for another one, and nobody may clean up the
    other one.
    """
    if resource.definition is None or resource.definition.external_id == wanted.external_id:
        return None
    return (
        'external_id cannot be added, changed or removed by an update; '
        'give the resource another name to use another object'
    )


def brings_nested(resource: Resource) -> bool:
    """Whether a row is to become a stack made of objects that were there before."""
    return resource.data.get(ADOPTED) is not None


def is_offered(resource: Resource) -> bool:
    """Whether a row stands for an object that was there before its stack, and that has not been taken over yet.

    It has a physical id from the beginning and never gets a token: nothing can ever be created for it.
    """
    if resource.token is not None or resource.physical_id is None:
        return False
    begun = resource.action is Action.ADOPT and resource.status is Status.IN_PROGRESS
    return resource.action is Action.INIT or begun


def is_asleep(row: Resource) -> bool:
    """Whether a row was suspended, as far as that went, and not resumed."""
    return row.action is Action.SUSPEND and row.status is not Status.IN_PROGRESS


def may_still_sleep(row: Resource) -> bool:
    """Whether a row was to be resumed and that has failed, or came to no end: perhaps it was never carried out."""
    return row.action is Action.RESUME and row.status is Status.FAILED


def was_never_made(row: Resource) -> bool:
    """Whether nothing was ever made, or taken over, for the row."""
    return row.token is None and row.physical_id is None


def object_of(row: Resource) -> str:
    """What somebody needs to know to find the object of a row: type, physical id, token."""
    known = [row.shown_type]
    known += [f'physical id {row.physical_id}'] if row.physical_id is not None else []
    known += [f'token {row.token}'] if row.token is not None else []
    if row.physical_id is None and row.token is None:
        known.append('never created')
    return ', '.join(known)
