"""What a function of the language is."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import ClassVar

from convergence.core.model import Json, Output
from convergence.errors import ConvergenceError, InvalidTemplateReference, StackValidationFailed
from convergence.template.encoding import call, decode, encode, function_of
from convergence.template.limits import Budget
from convergence.template.parameters import Parameter


class EvaluationFailed(ConvergenceError):
    """A function cannot work with what it was given.

    :param kind: what it means if it is found while a template is read.
    """

    kind: type[StackValidationFailed] = StackValidationFailed


class ReferenceFailed(EvaluationFailed):
    """A function names something that does not exist."""

    kind = InvalidTemplateReference


class UnresolvedReference(EvaluationFailed):
    """A value of another resource is needed and not known.

    :ivar resource: name of the other resource.
    :ivar attribute: name of the attribute, '' for all; None if the reference id itself is meant.
    """

    def __init__(self, message: str, resource: str, attribute: str | None = None) -> None:
        super().__init__(message)
        self.resource = resource
        self.attribute = attribute


@dataclass(frozen=True, slots=True)
class Compiling:
    """What a function may use while a template is read.

    :ivar resources: names of all resources of the template.
    :ivar requires: names of the resources that the present definition refers to; functions add to it.
    :ivar asked: pairs of resource name and attribute that the present definition asks for; functions add to it.
    :ivar suggestion: ``Did you mean`` for a name among others.
    """

    parameters: Mapping[str, Parameter]
    files: Mapping[str, str]
    resources: Mapping[str, object]
    budget: Budget
    suggestion: Callable[[str, Mapping[str, object]], str]
    subject: str
    requires: set[str] = field(default_factory=set)
    asked: set[tuple[str, str]] = field(default_factory=set)

    def uses(self) -> dict[str, tuple[str, ...]]:
        """For each resource whose attributes are asked for, the attributes, sorted."""
        uses: dict[str, tuple[str, ...]] = {}
        for resource, attribute in sorted(self.asked):
            uses[resource] = (*uses.get(resource, ()), attribute)
        return uses


@dataclass(frozen=True, slots=True)
class Evaluating:
    """What a function may use when its resource's turn has come."""

    inputs: Mapping[str, Output]
    budget: Budget


class Function:
    """A function of the language.

    :cvar name: as templates write it.
    :cvar code: as definitions store it: the name, and the version that gave it this meaning if it has several.
        A function of which no call ever remains has none.
    """

    name: ClassVar[str]
    code: ClassVar[str]

    def fold(self, argument: Json, constant: bool, scope: Compiling) -> Json:
        """What the call becomes, encoded: its value, or a call that remains.

        :param argument: encoded.
        :param constant: `argument` holds no function any more.
        :raises EvaluationFailed: it cannot work with this argument, whatever other resources say.
        """
        self.check(argument)
        if not constant:
            return call(self.code, argument)
        value = self.evaluate(decode(argument), Evaluating({}, scope.budget))
        return encode(value, scope.budget, self.name)

    def check(self, argument: Json) -> None:
        """Look at the shape of an encoded argument, parts of which may still be functions.

        :raises EvaluationFailed: the shape is wrong.
        """

    def evaluate(self, argument: Json, scope: Evaluating) -> Json:
        """The value.

        :param argument: plain, without functions.
        :raises EvaluationFailed: it cannot work with this argument.
        """
        raise EvaluationFailed(f'{self.name} cannot be evaluated')

    def reference(self, argument: Json) -> tuple[str, str | None] | None:
        """Name of the resource and attribute (None: its reference id) that a remaining call refers to.

        :param argument: encoded.
        """
        return None


class NotOffered(Function):
    """A function that the version of the language has, but this installation does not offer."""

    def __init__(self, name: str) -> None:
        self._name = name

    def fold(self, argument: Json, constant: bool, scope: Compiling) -> Json:
        """Refuse.

        :raises EvaluationFailed: always.
        """
        raise EvaluationFailed(f'The function {self._name} is not offered by this installation; do without it.')


def is_call(encoded: Json) -> bool:
    """Is this a function whose value is not known yet?"""
    return function_of(encoded) is not None


def type_name(value: Json) -> str:
    """What people call the type of a value."""
    if value is None:
        return 'null'
    names = {bool: 'a boolean', int: 'a number', float: 'a number', str: 'a string', list: 'a list', dict: 'a map'}
    return next(name for kind, name in names.items() if isinstance(value, kind))
