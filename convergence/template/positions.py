"""Where things begin in a text. A large document has hundreds of thousands of positions, so each is but a number."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Protocol, Self

_BITS = 32
_ONE = (1 << _BITS) - 1
_BOTH = 2 * _BITS
_POSITION = (1 << _BOTH) - 1


class Mark(Protocol):
    """A position as the parser gives it. Lines and columns count from 0."""

    @property
    def line(self) -> int:
        """How many lines are before it."""

    @property
    def column(self) -> int:
        """How many characters of the line are before it."""


class Position(int):
    """A `Mark` that takes a third of the room."""

    __slots__ = ()

    @classmethod
    def of(cls, mark: Mark) -> Self:
        """Where a mark is."""
        return cls(mark.line << _BITS | mark.column)

    @property
    def line(self) -> int:
        """See `Mark`."""
        return self >> _BITS

    @property
    def column(self) -> int:
        """See `Mark`."""
        return self & _ONE


class Positions(int):
    """The position of a key, and that of its value."""

    __slots__ = ()

    @classmethod
    def of(cls, key: Mark, value: Mark) -> Self:
        """Where two marks are."""
        return cls((key.line << _BITS | key.column) << _BOTH | value.line << _BITS | value.column)

    @property
    def key(self) -> Position:
        """Where the key is."""
        return Position(self >> _BOTH)

    @property
    def value(self) -> Position:
        """Where the value is."""
        return Position(self & _POSITION)

    def __iter__(self) -> Iterator[Position]:
        """First the key, then the value."""
        return iter((self.key, self.value))
