"""Constraints on the values of parameters and of resource properties, beyond their types.

There is one class for each kind. A constraint describes a violation in two ways: `complaint` repeats the value, for the
user who gave it; `demand` does not, because the value may be a secret.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from typing import ClassVar, Protocol, TypeAlias

from typing_extensions import override

from convergence.core.model import Json
from convergence.template.limits import STANDARD, Budget
from convergence.template.patterns import Pattern

SHOWN = 100
"""Maximum number of characters of a value that an error repeats."""

ValueCheck: TypeAlias = Callable[[Json], str | None]
"""A custom constraint. It returns a sentence about the violation that does not repeat the value, or None."""


class ConstraintChecks(Protocol):
    """The available custom constraints by name."""

    def get(self, name: str) -> ValueCheck | None:
        """Return the constraint called `name`; None if it does not exist."""

    def names(self) -> Iterable[str]:
        """Return the names of all custom constraints."""

    def unchecked(self, name: str) -> str | None:
        """Return the reason why a constraint accepts every value, as part of a sentence; None if it checks values."""


class Violated(ValueError):
    """A value violates a constraint. The text repeats the value, so it must not be used for hidden parameters."""


class Constraint:
    """A condition on a value of a certain type. Values of other types satisfy it."""

    kind: ClassVar[str]
    """The key of the constraint in templates."""

    types: ClassVar[tuple[str, ...]]
    """The types of parameters that accept it."""

    __slots__ = ()

    description: str
    """The error text of the template author; empty without one."""

    def allows(self, value: Json, budget: Budget) -> bool:
        """Return True if the value is allowed.

        :raises RequestLimitExceeded: the check takes more than the budget.
        """
        raise NotImplementedError

    def argument(self) -> Json:
        """Return the argument as templates write it."""
        raise NotImplementedError

    def complaint(self, value: Json) -> str:
        """Return the error for a value that is not allowed."""
        raise NotImplementedError

    def demand(self) -> str:
        """Return the requirement as a sentence about the value."""
        raise NotImplementedError

    def check(self, value: Json, budget: Budget) -> None:
        """Refuse a value that is not allowed.

        :raises Violated: with the author's text, or one that repeats the value.
        """
        if not self.allows(value, budget):
            raise Violated(self.description or self.complaint(value))

    def problem(self, value: Json) -> str | None:
        """Return the violation without the value; None if the value is allowed."""
        return None if self.allows(value, Budget(STANDARD)) else self.description or self.demand()

    def document(self) -> dict[str, Json]:
        """Return the constraint as templates write it."""
        document: dict[str, Json] = {self.kind: self.argument()}
        if self.description:
            document['description'] = self.description
        return document


@dataclass(frozen=True, slots=True)
class Length(Constraint):
    """Bounds for the length of a text, list or map. None is no bound."""

    kind: ClassVar[str] = 'length'
    types: ClassVar[tuple[str, ...]] = ('string', 'comma_delimited_list', 'json')

    minimum: int | None = None
    maximum: int | None = None
    description: str = ''

    @override
    def allows(self, value: Json, budget: Budget) -> bool:
        """Return True if the value is allowed."""
        return not isinstance(value, str | list | dict) or _within(len(value), self.minimum, self.maximum)

    @override
    def argument(self) -> Json:
        """Return the argument as templates write it."""
        return _bounds(self.minimum, self.maximum)

    @override
    def complaint(self, value: Json) -> str:
        """Return the error for a value that is not allowed."""
        size = len(value) if isinstance(value, str | list | dict) else 0
        return f'length ({size}) is out of range (min: {self.minimum}, max: {self.maximum})'

    @override
    def demand(self) -> str:
        """Return the requirement as a sentence about the value."""
        return f'its length must be {_between(self.minimum, self.maximum)}'


@dataclass(frozen=True, slots=True)
class Range(Constraint):
    """The smallest and the largest allowed number. None is no bound."""

    kind: ClassVar[str] = 'range'
    types: ClassVar[tuple[str, ...]] = ('number',)

    minimum: float | None = None
    maximum: float | None = None
    description: str = ''

    @override
    def allows(self, value: Json, budget: Budget) -> bool:
        """Return True if the value is allowed."""
        return not isinstance(value, int | float) or _within(value, self.minimum, self.maximum)

    @override
    def argument(self) -> Json:
        """Return the argument as templates write it."""
        return _bounds(self.minimum, self.maximum)

    @override
    def complaint(self, value: Json) -> str:
        """Return the error for a value that is not allowed."""
        return f'{shown(value)} is out of range (min: {self.minimum}, max: {self.maximum})'

    @override
    def demand(self) -> str:
        """Return the requirement as a sentence about the value."""
        return f'it must be {_between(self.minimum, self.maximum)}'


@dataclass(frozen=True, slots=True)
class Modulo(Constraint):
    """The required remainder of a number.

    :raises ValueError: no number can satisfy it.
    """

    kind: ClassVar[str] = 'modulo'
    types: ClassVar[tuple[str, ...]] = ('number',)

    step: float
    offset: float = 0
    description: str = ''

    def __post_init__(self) -> None:
        if self.step == 0:
            raise ValueError('the step of modulo cannot be 0')
        if abs(self.offset) >= abs(self.step):
            raise ValueError('the offset of modulo must be smaller than its step')
        if self.step * self.offset < 0:
            raise ValueError('step and offset of modulo must both be positive or both be negative')

    @override
    def allows(self, value: Json, budget: Budget) -> bool:
        """Return True if the value is allowed."""
        if not isinstance(value, int | float):
            return True
        # Decimals, because 0.3 is not a multiple of 0.1 in binary floating point.
        try:
            return not (Decimal(str(value)) - Decimal(str(self.offset))) % Decimal(str(self.step))
        except ArithmeticError:
            return False  # Too large for a division.

    @override
    def argument(self) -> Json:
        """Return the argument as templates write it."""
        return {'step': self.step, 'offset': self.offset}

    @override
    def complaint(self, value: Json) -> str:
        """Return the error for a value that is not allowed."""
        return f'{shown(value)} is not a multiple of {self.step} with an offset of {self.offset}'

    @override
    def demand(self) -> str:
        """Return the requirement as a sentence about the value."""
        return f'it must be a multiple of {self.step} with an offset of {self.offset}'


@dataclass(frozen=True, slots=True)
class AllowedValues(Constraint):
    """The allowed values; for a list, the allowed items."""

    kind: ClassVar[str] = 'allowed_values'
    types: ClassVar[tuple[str, ...]] = ('string', 'number', 'boolean', 'comma_delimited_list')

    values: Sequence[Json]
    description: str = ''

    @override
    def allows(self, value: Json, budget: Budget) -> bool:
        """Return True if the value is allowed."""
        items = value if isinstance(value, list) else [value]
        budget.spend_steps(len(items) * len(self.values), 'comparing with allowed_values')
        return all(self._allows(item, isinstance(value, list)) for item in items)

    @override
    def argument(self) -> Json:
        """Return the argument as templates write it."""
        return list(self.values)

    @override
    def complaint(self, value: Json) -> str:
        """Return the error for a value that is not allowed."""
        wrong = value
        if isinstance(value, list):
            wrong = next((item for item in value if not self._allows(item, True)), None)
        return f'"{shown(wrong)}" is not an allowed value ({shown(self._listed())})'

    @override
    def demand(self) -> str:
        """Return the requirement as a sentence about the value."""
        return f'it must be one of: {self._listed()}'

    def _allows(self, item: Json, is_listed: bool) -> bool:
        # Items that were split from a text are text, while the author may have written numbers, or the reverse.
        return item in self.values or (is_listed and str(item) in self.values)

    def _listed(self) -> str:
        return ', '.join(map(str, self.values))


@dataclass(frozen=True, slots=True)
class AllowedPattern(Constraint):
    """A regular expression that the whole text must match. Matching takes time proportional to the text.

    :raises BadPattern: it is not a regular expression, or cannot be matched in linear time.
    """

    kind: ClassVar[str] = 'allowed_pattern'
    types: ClassVar[tuple[str, ...]] = ('string',)

    expression: str
    description: str = ''
    _pattern: Pattern = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, '_pattern', Pattern(self.expression))

    @override
    def allows(self, value: Json, budget: Budget) -> bool:
        """Return True if the value is allowed."""
        return not isinstance(value, str) or self._pattern.matches(value, budget)

    @override
    def argument(self) -> Json:
        """Return the argument as templates write it."""
        return self.expression

    @override
    def complaint(self, value: Json) -> str:
        """Return the error for a value that is not allowed."""
        return f'"{shown(value)}" does not match pattern "{shown(self.expression)}"'

    @override
    def demand(self) -> str:
        """Return the requirement as a sentence about the value."""
        return f'it must match the pattern {shown(self.expression)}'


@dataclass(frozen=True, slots=True)
class CustomConstraint(Constraint):
    """A condition that an installed package defines. It applies to each item of a list.

    :param check_value: the check; None accepts every value, because accepted values are not checked again.
    """

    kind: ClassVar[str] = 'custom_constraint'
    types: ClassVar[tuple[str, ...]] = ('string', 'number', 'boolean', 'comma_delimited_list', 'json')

    name: str
    description: str = ''
    check_value: ValueCheck | None = field(default=None, repr=False, compare=False)

    @override
    def allows(self, value: Json, budget: Budget) -> bool:
        """Return True if the value is allowed."""
        return self._wrong(value) is None

    @override
    def argument(self) -> Json:
        """Return the argument as templates write it."""
        return self.name

    @override
    def complaint(self, value: Json) -> str:
        """Return the error for a value that is not allowed."""
        return f"Error validating value '{shown(value)}': {self._wrong(value)}"

    @override
    def demand(self) -> str:
        """Return the requirement as a sentence about the value."""
        return f'it must satisfy the custom constraint {self.name}'

    @override
    def problem(self, value: Json) -> str | None:
        """Return the error of the value, or None if it is allowed."""
        wrong = self._wrong(value)
        return None if wrong is None else self.description or wrong

    def _wrong(self, value: Json) -> str | None:
        if self.check_value is None:
            return None
        for item in value if isinstance(value, list) else [value]:
            wrong = self.check_value(item)
            if wrong is not None:
                return wrong
        return None


KINDS: Mapping[str, type[Constraint]] = {
    kind.kind: kind for kind in (Length, Range, Modulo, AllowedValues, AllowedPattern, CustomConstraint)
}


def shown(value: Json) -> str:
    """Return a value for an error, at most one line long."""
    text = str(value)
    return text if len(text) <= SHOWN else text[:SHOWN] + '…'


def _within(number: float, least: float | None, most: float | None) -> bool:
    return (least is None or number >= least) and (most is None or number <= most)


def _bounds(least: float | None, most: float | None) -> dict[str, Json]:
    return {name: bound for name, bound in (('min', least), ('max', most)) if bound is not None}


def _between(least: float | None, most: float | None) -> str:
    if least is None:
        return f'at most {most}'
    return f'at least {least}' if most is None else f'between {least} and {most}'
