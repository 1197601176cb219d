"""The support status of a resource type or a property."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from convergence.core.model import Json


class Status(StrEnum):
    """The states of support."""

    UNKNOWN = 'UNKNOWN'
    SUPPORTED = 'SUPPORTED'
    DEPRECATED = 'DEPRECATED'
    UNSUPPORTED = 'UNSUPPORTED'
    HIDDEN = 'HIDDEN'
    """Works for existing users and is shown to no others."""


@dataclass(frozen=True, slots=True)
class SupportStatus:
    """The present state, and its history.

    :param version: since when.
    :param message: what to use instead, for example.
    :param previous: the state before.
    """

    status: Status = Status.SUPPORTED
    version: str | None = None
    message: str | None = None
    previous: SupportStatus | None = None

    def document(self) -> dict[str, Json]:
        """As JSON, in the field's shape."""
        return {
            'status': self.status.value,
            'version': self.version,
            'message': self.message,
            'previous_status': self.previous.document() if self.previous else None,
        }


SUPPORTED = SupportStatus()


def since(version: str) -> SupportStatus:
    """Supported from a version of the field on: the year and number of a release, or its number alone."""
    return SupportStatus(version=version)
