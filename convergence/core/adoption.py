"""Objects that were there before their rows.

What `external_id` names belongs to others: it is read, but never changed and never deleted. What a stack was adopted
with belongs to the stack from then on.
"""

from __future__ import annotations

from convergence.core.model import Action, Definition, Status
from convergence.core.rows import Resource

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
