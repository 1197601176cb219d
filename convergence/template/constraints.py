"""Constraints: what the value of a parameter, or of a property of a resource, must satisfy beyond its type.

There is one class for each kind, for parameters and properties alike. A constraint tells what is wrong in two ways:
`complaint` repeats the value, for somebody who gave it; `demand` does not, for the value may be a secret.
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
"""Characters of a value that an error repeats."""

ValueCheck: TypeAlias = Callable[[Json], str | None]
"""What a custom constraint does: what is wrong with a value, as a sentence that does not repeat it, or None."""


class ConstraintChecks(Protocol):
    """The custom constraints that there are, by name."""

    def get(self, name: str) -> ValueCheck | None:
        """The constraint called `name`; None if there is none."""

    def names(self) -> Iterable[str]:
        """The names of those that there are."""

    def unchecked(self, name: str) -> str | None:
        """Why a constraint accepts every value, as the part of a sentence; None: it does not."""


class Violated(ValueError):
    """A value does not satisfy a constraint. The text repeats the value; it is not for hidden parameters."""


class Constraint:
    """A condition on a value of the right type. A value of another type than the condition is about satisfies it."""

    kind: ClassVar[str]
    """The key under which templates write it."""

    types: ClassVar[tuple[str, ...]]
    """The types of parameters that may have it."""

    __slots__ = ()

    description: str
    """The error text that the author wants, or ''."""

    def allows(self, value: Json, budget: Budget) -> bool:
        """Is the value allowed?

        :raises RequestLimitExceeded: finding out takes more than the budget.
        """
        raise NotImplementedError

    def argument(self) -> Json:
        """What templates write under the key."""
        raise NotImplementedError

    def complaint(self, value: Json) -> str:
        """What is wrong with a value that is not allowed."""
        raise NotImplementedError

    def demand(self) -> str:
        """What a value must be, as a sentence about it."""
        raise NotImplementedError

    def check(self, value: Json, budget: Budget) -> None:
        """Refuse a value that is not allowed.

        :raises Violated: with the author's text, or one that repeats the value.
        """
        if not self.allows(value, budget):
            raise Violated(self.description or self.complaint(value))

    def problem(self, value: Json) -> str | None:
        """What is wrong with the value, without repeating it; None if nothing is."""
        return None if self.allows(value, Budget(STANDARD)) else self.description or self.demand()

    def document(self) -> dict[str, Json]:
        """The constraint as templates write it."""
        document: dict[str, Json] = {self.kind: self.argument()}
        if self.description:
            document['description'] = self.description
        return document


@dataclass(frozen=True, slots=True)
class Length(Constraint):
    """How long a text, list or map may be. A bound that is None does not bind."""

    kind: ClassVar[str] = 'length'
    types: ClassVar[tuple[str, ...]] = ('string', 'comma_delimited_list', 'json')

    minimum: int | None = None
    maximum: int | None = None
    description: str = ''

    @override
    def allows(self, value: Json, budget: Budget) -> bool:
        """See `Constraint.allows`."""
        return not isinstance(value, str | list | dict) or _within(len(value), self.minimum, self.maximum)

    @override
    def argument(self) -> Json:
        """See `Constraint.argument`."""
        return _bounds(self.minimum, self.maximum)

    @override
    def complaint(self, value: Json) -> str:
        """See `Constraint.complaint`."""
        size = len(value) if isinstance(value, str | list | dict) else 0
        return f'length ({size}) is out of range (min: {self.minimum}, max: {self.maximum})'

    @override
    def demand(self) -> str:
        """See `Constraint.demand`."""
        return f'its length must be {_between(self.minimum, self.maximum)}'


@dataclass(frozen=True, slots=True)
class Range(Constraint):
    """Smallest and largest number allowed, both included. A bound that is None does not bind."""

    kind: ClassVar[str] = 'range'
    types: ClassVar[tuple[str, ...]] = ('number',)

    minimum: float | None = None
    maximum: float | None = None
    description: str = ''

    @override
    def allows(self, value: Json, budget: Budget) -> bool:
        """See `Constraint.allows`."""
        return not isinstance(value, int | float) or _within(value, self.minimum, self.maximum)

    @override
    def argument(self) -> Json:
        """See `Constraint.argument`."""
        return _bounds(self.minimum, self.maximum)

    @override
    def complaint(self, value: Json) -> str:
        """See `Constraint.complaint`."""
        return f'{shown(value)} is out of range (min: {self.minimum}, max: {self.maximum})'

    @override
    def demand(self) -> str:
        """See `Constraint.demand`."""
        return f'it must be {_between(self.minimum, self.maximum)}'


@dataclass(frozen=True, slots=True)
class Modulo(Constraint):
    """Which remainder a number must leave.

    :raises ValueError: no number could satisfy it.
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
        """See `Constraint.allows`."""
        if not isinstance(value, int | float):
            return True
        # As decimals, for 0.3 is a multiple of 0.1 to everybody but the processor.
        try:
            return not (Decimal(str(value)) - Decimal(str(self.offset))) % Decimal(str(self.step))
        except ArithmeticError:
            return False  # too large to be divided

    @override
    def argument(self) -> Json:
        """See `Constraint.argument`."""
        return {'step': self.step, 'offset': self.offset}

    @override
    def complaint(self, value: Json) -> str:
        """See `Constraint.complaint`."""
        return f'{shown(value)} is not a multiple of {self.step} with an offset of {self.offset}'

    @override
    def demand(self) -> str:
        """See `Constraint.demand`."""
        return f'it must be a multiple of {self.step} with an offset of {self.offset}'


@dataclass(frozen=True, slots=True)
class AllowedValues(Constraint):
    """All values that there may be; of a list, all that its items may be."""

    kind: ClassVar[str] = 'allowed_values'
    types: ClassVar[tuple[str, ...]] = ('string', 'number', 'boolean', 'comma_delimited_list')

    values: Sequence[Json]
    description: str = ''

    @override
    def allows(self, value: Json, budget: Budget) -> bool:
        """See `Constraint.allows`."""
        items = value if isinstance(value, list) else [value]
        budget.spend_steps(len(items) * len(self.values), 'comparing with allowed_values')
        return all(self._allows(item, isinstance(value, list)) for item in items)

    @override
    def argument(self) -> Json:
        """See `Constraint.argument`."""
        return list(self.values)

    @override
    def complaint(self, value: Json) -> str:
        """See `Constraint.complaint`."""
        wrong = value
        if isinstance(value, list):
            wrong = next((item for item in value if not self._allows(item, True)), None)
        return f'"{shown(wrong)}" is not an allowed value ({shown(self._listed())})'

    @override
    def demand(self) -> str:
        """See `Constraint.demand`."""
        return f'it must be one of: {self._listed()}'

    def _allows(self, item: Json, is_listed: bool) -> bool:
        # What a text was split into is text, and the author may have written numbers; or the other way round.
        return item in self.values or (is_listed and str(item) in self.values)

    def _listed(self) -> str:
        return ', '.join(map(str, self.values))


@dataclass(frozen=True, slots=True)
class AllowedPattern(Constraint):
    """A regular expression that the whole text must match, in time proportional to the text.

    :raises BadPattern: it is none, or one that cannot be matched so.
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
        """See `Constraint.allows`."""
        return not isinstance(value, str) or self._pattern.matches(value, budget)

    @override
    def argument(self) -> Json:
        """See `Constraint.argument`."""
        return self.expression

    @override
    def complaint(self, value: Json) -> str:
        """See `Constraint.complaint`."""
        return f'"{shown(value)}" does not match pattern "{shown(self.expression)}"'

    @override
    def demand(self) -> str:
        """See `Constraint.demand`."""
        return f'it must match the pattern {shown(self.expression)}'


@dataclass(frozen=True, slots=True)
class CustomConstraint(Constraint):
    """A condition that an installed package knows by name. It holds for each item of a list.

    :param check: finds out; None where nobody is asked, for what was accepted once is not questioned again.
    """

    kind: ClassVar[str] = 'custom_constraint'
    types: ClassVar[tuple[str, ...]] = ('string', 'number', 'boolean', 'comma_delimited_list', 'json')

    name: str
    description: str = ''
    check_value: ValueCheck | None = field(default=None, repr=False, compare=False)

    @override
    def allows(self, value: Json, budget: Budget) -> bool:
        """See `Constraint.allows`."""
        return self._wrong(value) is None

    @override
    def argument(self) -> Json:
        """See `Constraint.argument`."""
        return self.name

    @override
    def complaint(self, value: Json) -> str:
        """See `Constraint.complaint`."""
        return f"Error validating value '{shown(value)}': {self._wrong(value)}"

    @override
    def demand(self) -> str:
        """See `Constraint.demand`."""
        return f'it must satisfy the custom constraint {self.name}'

    @override
    def problem(self, value: Json) -> str | None:
        """See `Constraint.problem`."""
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
    """A value as an error shows it: not longer than a line."""
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
