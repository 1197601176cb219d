"""Labels: how an object of a cloud carries the token of its resource, for all packages.

A token in the request that makes the object is on it from the first moment: the object never exists without its label.
"""

from __future__ import annotations

import uuid

LABEL = 'convergence'
"""The key of the token in the metadata of an object, and what it begins with in a description."""

MOST_DESCRIPTION = 255
"""Characters that a description may have, of the services that limit it most."""


def uuid_of(token: str) -> str:
    """The token as ids of services have to be, and as Heat makes names of it."""
    try:
        return str(uuid.UUID(token))
    except ValueError:
        return str(uuid.uuid5(uuid.NAMESPACE_OID, token))


def label(token: str) -> str:
    """The token as a description has it."""
    return f'{LABEL}:{token}'


def described(description: str | None, token: str) -> str:
    """A description with the token: behind what a user has written himself, until the object's id is stored."""
    if not description:
        return label(token)
    behind = f' [{label(token)}]'
    return description[: MOST_DESCRIPTION - len(behind)] + behind
