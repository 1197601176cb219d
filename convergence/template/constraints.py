"""Constraints of parameters."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from decimal import Decimal
from typing import ClassVar

from convergence.core.model import Json
from convergence.template.limits import Budget
from convergence.template.patterns import Pattern

SHOWN = 100
"""Characters of a value that an error repeats."""


class Violated(ValueError):
    """A value does not satisfy a constraint. The text repeats the value; it is not for hidden parameters."""


@dataclass(frozen=True, slots=True)
class Constraint:
    """What values a parameter may have.

    :param kind: as templates write it.
    :param argument: likewise.
    :param description: the error text that the author wants, or ''.
    """

    kind: ClassVar[str]
    types: ClassVar[tuple[str, ...]]

    argument: Json
    description: str = ''

    def check(self, value: Json, budget: Budget) -> None:
        """Does the typed value satisfy the constraint?

        :raises Violated: it does not.
        """
        raise NotImplementedError

    def document(self) -> dict[str, Json]:
        """The constraint as templates write it."""
        document: dict[str, Json] = {self.kind: self.argument}
        if self.description:
            document['description'] = self.description
        return document


@dataclass(frozen=True, slots=True)
class Length(Constraint):
    """How long a text, list or map may be."""

    kind: ClassVar[str] = 'length'
    types: ClassVar[tuple[str, ...]] = ('string', 'comma_delimited_list', 'json')

    least: int | None = None
    most: int | None = None

    def check(self, value: Json, budget: Budget) -> None:
        """See `Constraint.check`."""
        assert isinstance(value, str | list | dict)
        size = len(value)
        if not _within(size, self.least, self.most):
            raise Violated(f'length ({size}) is out of range ({_bounds(self.least, self.most)})')


@dataclass(frozen=True, slots=True)
class Range(Constraint):
    """How large a number may be."""

    kind: ClassVar[str] = 'range'
    types: ClassVar[tuple[str, ...]] = ('number',)

    least: float | None = None
    most: float | None = None

    def check(self, value: Json, budget: Budget) -> None:
        """See `Constraint.check`."""
        assert isinstance(value, int | float)
        if not _within(value, self.least, self.most):
            raise Violated(f'{value} is out of range ({_bounds(self.least, self.most)})')


@dataclass(frozen=True, slots=True)
class Modulo(Constraint):
    """Which remainder a number must leave."""

    kind: ClassVar[str] = 'modulo'
    types: ClassVar[tuple[str, ...]] = ('number',)

    step: float = 1
    offset: float = 0

    def check(self, value: Json, budget: Budget) -> None:
        """See `Constraint.check`."""
        assert isinstance(value, int | float)
        # As decimals, for 0.3 is a multiple of 0.1 to everybody but the processor.
        try:
            rest = (Decimal(str(value)) - Decimal(str(self.offset))) % Decimal(str(self.step))
        except ArithmeticError:
            raise Violated(f'{value} is too large to be divided by the step {self.step}') from None
        if rest:
            raise Violated(f'{value} is not a multiple of {self.step} with an offset of {self.offset}')


@dataclass(frozen=True, slots=True)
class AllowedValues(Constraint):
    """All values that a parameter, or each item of a list, may have."""

    kind: ClassVar[str] = 'allowed_values'
    types: ClassVar[tuple[str, ...]] = ('string', 'number', 'boolean', 'comma_delimited_list')

    values: tuple[Json, ...] = ()

    def check(self, value: Json, budget: Budget) -> None:
        """See `Constraint.check`."""
        # The items of a list are compared as text, for allowed values of lists are text.
        items = [str(item) for item in value] if isinstance(value, list) else [value]
        budget.spend_steps(len(items) * len(self.values), 'comparing with allowed_values')
        for item in items:
            if item not in self.values:
                allowed = shown(', '.join(map(str, self.values)))
                raise Violated(f'"{shown(item)}" is not an allowed value ({allowed})')


@dataclass(frozen=True, slots=True)
class AllowedPattern(Constraint):
    """A regular expression that the whole text must match."""

    kind: ClassVar[str] = 'allowed_pattern'
    types: ClassVar[tuple[str, ...]] = ('string',)

    pattern: Pattern = field(kw_only=True, repr=False, compare=False)

    def check(self, value: Json, budget: Budget) -> None:
        """See `Constraint.check`."""
        assert isinstance(value, str)
        if not self.pattern.matches(value, budget):
            raise Violated(f'"{shown(value)}" does not match pattern "{shown(self.argument)}"')


KINDS: Mapping[str, type[Constraint]] = {
    kind.kind: kind for kind in (Length, Range, Modulo, AllowedValues, AllowedPattern)
}


def shown(value: Json) -> str:
    """A value as an error shows it: not longer than a line."""
    text = str(value)
    return text if len(text) <= SHOWN else text[:SHOWN] + '…'


def _within(number: float, least: float | None, most: float | None) -> bool:
    return (least is None or number >= least) and (most is None or number <= most)


def _bounds(least: float | None, most: float | None) -> str:
    return f'min: {least}, max: {most}'
