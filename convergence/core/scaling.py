"""A change of how many members a group has: what is told of it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from convergence.core.model import Json


@dataclass(frozen=True, slots=True)
class Scaling:
    """A change of how many members a group has, as a policy asks for it.

    :param stack_id: of the stack that the group is in.
    :param group: what others refer to the group by.
    :param amount: what the policy says, and `type` what that means, as the policy writes it.
    :param before: how many members there are; None: nobody has counted them.
    :param after: how many there are to be.
    :param message: in words.
    """

    stack_id: str
    group: str
    amount: float
    type: str
    before: int | None = None
    after: int | None = None
    message: str = ''

    def document(self) -> dict[str, Json]:
        """As JSON, for a row. The inverse is `from_document`."""
        return {name: getattr(self, name) for name in self.__slots__}

    @classmethod
    def from_document(cls, document: Mapping[str, Json]) -> Scaling:
        """The value that `document` was made from."""
        return cls(**{name: document[name] for name in cls.__slots__ if name in document})  # type: ignore[arg-type]
