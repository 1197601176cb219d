"""A change of the number of members of a group, as stored and as reported in notices."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from convergence.core.model import Json


@dataclass(frozen=True, slots=True)
class Scaling:
    """A change of the number of members of a group that a scaling policy requests.

    :param stack_id: id of the stack that contains the group.
    :param group: reference of the group.
    :param amount: amount in the policy; `type` is the policy's name for the meaning of the amount.
    :param before: number of members before the change; None: not counted.
    :param after: number of members after the change.
    :param message: description of the change for users.
    """

    stack_id: str
    group: str
    amount: float
    type: str
    before: int | None = None
    after: int | None = None
    message: str = ''

    def document(self) -> dict[str, Json]:
        """Return the value as JSON, for a row. The inverse is `from_document`."""
        return {name: getattr(self, name) for name in self.__slots__}

    @classmethod
    def from_document(cls, document: Mapping[str, Json]) -> Scaling:
        """Restore the value from `document`."""
        return cls(**{name: document[name] for name in cls.__slots__ if name in document})  # type: ignore[arg-type]
