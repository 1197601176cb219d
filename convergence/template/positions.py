"""Positions in a text. A large document has hundreds of thousands of them, so each is a single number."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Protocol, Self

_BITS = 32
_ONE = (1 << _BITS) - 1
_BOTH = 2 * _BITS
_POSITION = (1 << _BOTH) - 1


class Mark(Protocol):
    """A position of the parser. Lines and columns count from 0."""

    @property
    def line(self) -> int:
        """The number of lines before it."""

    @property
    def column(self) -> int:
        """The number of characters before it in its line."""


class Position(int):
    """A `Mark` in a third of the memory."""

    __slots__ = ()

    @classmethod
    def of(cls, mark: Mark) -> Self:
        """Return the position of a mark."""
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
        """Return the positions of two marks."""
        return cls((key.line << _BITS | key.column) << _BOTH | value.line << _BITS | value.column)

    @property
    def key(self) -> Position:
        """The position of the key."""
        return Position(self >> _BOTH)

    @property
    def value(self) -> Position:
        """The position of the value."""
        return Position(self & _POSITION)

    def __iter__(self) -> Iterator[Position]:
        """Yield the key, then the value."""
        return iter((self.key, self.value))
