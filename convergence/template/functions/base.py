"""What a function of the language is."""

from __future__ import annotations

import difflib
import enum
import itertools
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar, Final, Protocol

from typing_extensions import override

from convergence.core.model import Json, Output, Path
from convergence.errors import ConvergenceError, InvalidTemplateReference, StackValidationFailed
from convergence.template.encoding import call, decode, encode, function_of
from convergence.template.limits import CALL_STEPS, Budget
from convergence.template.parameters import Parameter
from convergence.values import quickly_made, replace


class EvaluationFailed(ConvergenceError):
    """A function cannot work with what it was given.

    :ivar kind: what it means if it is found while a template is read.
    :ivar key: the one among those of the argument that is wrong; empty where it is none.
    :ivar is_of_form: the call is not written as the function wants it; otherwise it is the values that do not fit.
    """

    kind: type[StackValidationFailed] = StackValidationFailed
    is_of_form: bool = True
    key: str = ''


class ReferenceFailed(EvaluationFailed):
    """A function names something that does not exist."""

    kind = InvalidTemplateReference
    is_of_form = False


class UnresolvedReference(EvaluationFailed):
    """A value of another resource is needed and not known.

    :ivar resource: name of the other resource.
    :ivar attribute: name of the attribute, '' for all; None if the reference id itself is meant.
    """

    def __init__(self, message: str, resource: str, attribute: str | None = None) -> None:
        super().__init__(message)
        self.resource = resource
        self.attribute = attribute


class NotYetKnown(EvaluationFailed):
    """The call could be evaluated elsewhere or later, but not here and now."""


class AlreadyReported(Exception):
    """Something inside a call is wrong and has been told already; what follows from it is not told."""


CONCEALED = 'cannot work with what it was given, which is computed from a hidden value and not shown.'
"""The end of an error about a value that nobody may see; the name of the function, or of what is wrong, goes before."""


class _Dropped(enum.Enum):
    DROPPED = 'dropped'


DROPPED: Final[Any] = _Dropped.DROPPED
"""What a call becomes that takes the list item or the map entry it stands in with it."""


class Yaql(Protocol):
    """Evaluates expressions of the query language YAQL."""

    def evaluate(self, expression: str, data: Json, budget: Budget) -> Json:
        """The value of an expression in which ``$.data`` is `data`.

        :param budget: pays for the work.
        :raises EvaluationFailed: the expression is wrong, fails, or costs too much; the text says which.
        """


class Absence(enum.Enum):
    """What a reference means to a resource whose condition is false."""

    ERROR = 'ERROR'
    NULL = 'NULL'


class HiddenReads:
    """Counts how often a hidden parameter was read while a template is evaluated.

    Whoever finds a greater number after a piece of work than before knows that the result depends on a hidden value.

    :ivar count: how often one was read.
    :ivar left_out: how often it depended on one whether something is there at all.
    """

    def __init__(self) -> None:
        self.count = 0
        self.left_out = 0

    def note(self) -> None:
        """One more was read."""
        self.count += 1


@quickly_made
@dataclass(frozen=True, slots=True)
class Compiling:
    """What a function may use while a template is read.

    :ivar resources: names of all resources of the template.
    :ivar absent: those among them that do not exist, because their condition is false; shared by all definitions.
    :ivar absence: what a reference to one of those means in the present definition.
    :ivar mappings: the section of that name, which only some dialects have.
    :ivar yaql: None leaves expressions to be evaluated later.
    :ivar inspecting: the template is only looked at: what depends on things that are not given is left open.
    :ivar requires: names of the resources that the present definition refers to; functions add to it.
    :ivar asked: pairs of resource name and attribute that the present definition asks for; functions add to it.
    :ivar suggestion: ``Did you mean`` for a name among others.
    :ivar hidden_reads: shared by all definitions.
    :ivar hidden: where values of the present definition stand that were computed from hidden parameters.
    :ivar facade: what is known of the resource that the template stands for, by part.
    :ivar of_the_stack: names of the pseudo parameters that were read; shared by all definitions.
    :ivar keeps_failures: a call whose values cannot work makes no problem: it remains, and fails when it is asked for.
    """

    parameters: Mapping[str, Parameter]
    files: Mapping[str, str]
    resources: Mapping[str, object]
    budget: Budget
    suggestion: Callable[[str, Mapping[str, object]], str]
    subject: str
    requires: set[str] = field(default_factory=set)
    asked: set[tuple[str, str]] = field(default_factory=set)
    absent: set[str] = field(default_factory=set)
    absence: Absence = Absence.ERROR
    mappings: Mapping[str, Json] = field(default_factory=dict)
    yaql: Yaql | None = None
    inspecting: bool = False
    hidden_reads: HiddenReads = field(default_factory=HiddenReads)
    hidden: set[Path] = field(default_factory=set)
    keeps_failures: bool = False
    facade: Mapping[str, Json] = field(default_factory=dict)
    of_the_stack: set[str] = field(default_factory=set)

    def of(self, subject: str) -> Compiling:
        """The same for another definition, of which nothing is known yet."""
        return replace(self, subject=subject, requires=set(), asked=set(), hidden=set())

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
    yaql: Yaql | None = None


class Folding(Protocol):
    """What a function may do with its argument while a template is read."""

    def fold(self, node: Json, path: Path, scope: Compiling) -> Json:
        """A part of the argument, encoded, or `DROPPED`."""

    def argument(self, node: Json, path: Path, scope: Compiling) -> tuple[Json, bool]:
        """The argument, encoded, and whether it holds no function any more.

        :raises Refused: something in it is wrong.
        """

    def condition(self, node: Json, path: Path, scope: Compiling) -> Json:
        """A condition, which may be the name of one: a boolean, or a call that remains.

        :raises Refused: something in it is wrong.
        :raises EvaluationFailed: it is none.
        """


class Function:
    """A function of the language.

    :cvar name: as templates write it.
    :cvar code: as definitions store it: the name, and the version that gave it this meaning if it has several.
        A function of which no call ever remains has none.
    :cvar names: how many of the first items of its argument are names, of a resource and of an attribute. They are
        shown in graphs and lists, so they must not be computed from a hidden parameter.
    """

    name: ClassVar[str]
    code: ClassVar[str]
    names: ClassVar[int] = 0

    def read(self, argument: Json, path: Path, scope: Compiling, folding: Folding) -> Json:
        """What the call becomes, encoded: its value, a call that remains, or `DROPPED`.

        :param argument: as it stands in the template.
        :param path: where it stands.
        :raises EvaluationFailed: it cannot work with this argument, whatever other resources say.
        :raises Refused: something in the argument is wrong.
        """
        encoded, constant = folding.argument(argument, path, scope)
        return self.fold(encoded, constant, scope)

    def fold(self, argument: Json, constant: bool, scope: Compiling) -> Json:
        """What the call becomes whose argument has been folded already.

        :param argument: encoded.
        :param constant: `argument` holds no function any more.
        :raises EvaluationFailed: it cannot work with this argument, whatever other resources say.
        """
        self.check(argument)
        if not constant:
            return call(self.code, argument)
        scope.budget.spend_steps(CALL_STEPS, self.name)
        try:
            value = self.evaluate(decode(argument), Evaluating({}, scope.budget, scope.yaql))
        except NotYetKnown:
            return call(self.code, argument)
        except EvaluationFailed as error:
            error.is_of_form = False  # that was checked before
            raise
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

    def operands(self, argument: Json) -> list[Json]:
        """The parts of an argument, as it stands in the template, that are conditions themselves."""
        return []


class FailedCall(Function):
    """A call that was found out to fail. It is part of no version: it is what is stored of such a call."""

    name: ClassVar[str] = 'failure'
    code: ClassVar[str] = 'failure'

    @override
    def evaluate(self, argument: Json, scope: Evaluating) -> Json:
        """Fail with the reason.

        :raises EvaluationFailed: always.
        """
        raise EvaluationFailed(str(argument))


class Misplaced(Function):
    """A function that must not be used in a condition."""

    def __init__(self, name: str) -> None:
        self._name = name

    @override
    def read(self, argument: Json, path: Path, scope: Compiling, folding: Folding) -> Json:
        """Refuse.

        :raises EvaluationFailed: always.
        """
        raise EvaluationFailed(f'The function "{self._name}" is invalid in this context: a condition cannot use it.')


def wrong_keys(message: str, given: Iterable[str], wanted: Sequence[str]) -> EvaluationFailed:
    """The failure of a function that wants certain keys, with the name of the first that it does not know.

    :param message: what it wants, without a full stop.
    :param wanted: the keys that it knows; those that must be there first.
    """
    unknown = [key for key in given if key not in wanted]
    named = f', not {unknown[0][:80]}' if unknown else ''
    failed = EvaluationFailed(f'{message}{named}.{nearly(unknown, [key for key in wanted if key not in given])}')
    failed.key = unknown[0] if unknown else ''
    return failed


def nearly(given: Iterable[str], wanted: Iterable[str]) -> str:
    """`` Did you mean "…"?`` where a key that was given looks like a misspelt one of those that are wanted and missing.

    :param given: keys of the user; only the first few, short ones are looked at.
    """
    given = list(itertools.islice(given, 10))
    missing = [name for name in wanted if name not in given]
    for name in given:
        close = difflib.get_close_matches(name, missing, n=1) if len(name) <= 32 else []
        if close:
            return f' Did you mean "{close[0]}"?'
    return ''


def description_of(function: Function) -> str:
    """What a function gives, in a sentence."""
    return (type(function).__doc__ or '').partition('\n')[0]


def is_call(encoded: Json) -> bool:
    """Is this a function whose value is not known yet?"""
    return function_of(encoded) is not None


def type_name(value: Json) -> str:
    """What people call the type of a value."""
    if value is None:
        return 'null'
    names = {bool: 'a boolean', int: 'a number', float: 'a number', str: 'a string', list: 'a list', dict: 'a map'}
    return next(name for kind, name in names.items() if isinstance(value, kind))
