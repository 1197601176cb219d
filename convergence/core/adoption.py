"""Resources whose object others have made: `external_id` names it. It is read, but never changed and never deleted."""

from __future__ import annotations

from convergence.core.model import Definition
from convergence.core.rows import Resource


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
