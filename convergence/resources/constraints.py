"""What a property's value must satisfy beyond its type.

A constraint answers with a sentence about what is wrong, never with the value itself: it may be a secret.
"""

from __future__ import annotations

import re
from collections.abc import Sequence, Sized
from dataclasses import dataclass
from typing import Protocol

from convergence.core.model import Json


class Constraint(Protocol):
    """A condition on a value of the right type."""

    def problem(self, value: Json) -> str | None:
        """What is wrong with `value`, or None."""

    def describe(self) -> dict[str, Json]:
        """The constraint as JSON, in the field's shape, for example ``{'range': {'min': 1}}``."""


@dataclass(frozen=True, slots=True)
class Length:
    """Length of a string, list or map. A bound that is None does not bind."""

    minimum: int | None = None
    maximum: int | None = None
    description: str = ''

    def problem(self, value: Json) -> str | None:
        """See `Constraint.problem`."""
        if not isinstance(value, Sized):
            return None
        return _outside(len(value), self.minimum, self.maximum, self.description, 'its length')

    def describe(self) -> dict[str, Json]:
        """See `Constraint.describe`."""
        return _described('length', _bounds(self.minimum, self.maximum), self.description)


@dataclass(frozen=True, slots=True)
class Range:
    """Smallest and largest number allowed, both included. A bound that is None does not bind."""

    minimum: float | None = None
    maximum: float | None = None
    description: str = ''

    def problem(self, value: Json) -> str | None:
        """See `Constraint.problem`."""
        if not isinstance(value, (int, float)):
            return None
        return _outside(value, self.minimum, self.maximum, self.description, 'it')

    def describe(self) -> dict[str, Json]:
        """See `Constraint.describe`."""
        return _described('range', _bounds(self.minimum, self.maximum), self.description)


@dataclass(frozen=True, slots=True)
class AllowedValues:
    """The value, or each item of a list, must be one of these."""

    values: Sequence[Json]
    description: str = ''

    def problem(self, value: Json) -> str | None:
        """See `Constraint.problem`."""
        given = value if isinstance(value, list) else [value]
        if all(item in self.values for item in given):
            return None
        return self.description or f'it must be one of: {", ".join(str(item) for item in self.values)}'

    def describe(self) -> dict[str, Json]:
        """See `Constraint.describe`."""
        return _described('allowed_values', list(self.values), self.description)


@dataclass(frozen=True, slots=True)
class Pattern:
    """A regular expression that the whole string must match."""

    expression: str
    description: str = ''

    def problem(self, value: Json) -> str | None:
        """See `Constraint.problem`."""
        if not isinstance(value, str) or re.fullmatch(self.expression, value):
            return None
        return self.description or f'it must match the pattern {self.expression}'

    def describe(self) -> dict[str, Json]:
        """See `Constraint.describe`."""
        return _described('allowed_pattern', self.expression, self.description)


def _outside(
    number: float, minimum: float | None, maximum: float | None, description: str, subject: str
) -> str | None:
    if (minimum is None or number >= minimum) and (maximum is None or number <= maximum):
        return None
    if minimum is None:
        wanted = f'at most {maximum}'
    elif maximum is None:
        wanted = f'at least {minimum}'
    else:
        wanted = f'between {minimum} and {maximum}'
    return description or f'{subject} must be {wanted}'


def _bounds(minimum: float | None, maximum: float | None) -> dict[str, Json]:
    bounds = {'min': minimum, 'max': maximum}
    return {name: bound for name, bound in bounds.items() if bound is not None}


def _described(name: str, value: Json, description: str) -> dict[str, Json]:
    described: dict[str, Json] = {name: value}
    if description:
        described['description'] = description
    return described
