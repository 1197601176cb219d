"""The base class of the functions, and their context."""

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
    """A function does not accept its argument.

    :ivar kind: the class of the error while a template is read.
    :ivar key: the wrong key of the argument; empty for other errors.
    :ivar is_of_form: True if the form of the call is wrong; False if its values are.
    """

    kind: type[StackValidationFailed] = StackValidationFailed
    is_of_form: bool = True
    key: str = ''


class ReferenceFailed(EvaluationFailed):
    """A function refers to an item that does not exist."""

    kind = InvalidTemplateReference
    is_of_form = False


class UnresolvedReference(EvaluationFailed):
    """A value of another resource is not known.

    :ivar resource: name of the other resource.
    :ivar attribute: name of the attribute; empty: all; None: the reference id.
    """

    def __init__(self, message: str, resource: str, attribute: str | None = None) -> None:
        super().__init__(message)
        self.resource = resource
        self.attribute = attribute


class NotYetKnown(EvaluationFailed):
    """The call can only be evaluated later, or in another process."""


class AlreadyReported(Exception):
    """A part of a call is wrong and reported already. Consequences are not reported."""


CONCEALED = 'does not accept its argument, which is computed from a hidden value and not shown.'
"""The end of an error about a secret value. The name of the function or property comes first."""


class _Dropped(enum.Enum):
    DROPPED = 'dropped'


DROPPED: Final[Any] = _Dropped.DROPPED
"""The result of a call that removes its list item or map entry."""


class Yaql(Protocol):
    """Evaluates expressions of the query language YAQL."""

    def evaluate(self, expression: str, data: Json, budget: Budget) -> Json:
        """Return the value of an expression in which ``$.data`` is `data`.

        :param budget: charged for the work.
        :raises EvaluationFailed: the expression is wrong, fails, or takes too much; the text says which.
        """


class Absence(enum.Enum):
    """The meaning of a reference to a resource whose condition is false."""

    ERROR = 'ERROR'
    NULL = 'NULL'


class HiddenReads:
    """Counts reads of hidden parameters while a template is evaluated.

    If the number grows during an evaluation, its result depends on a hidden value.

    :ivar count: number of reads.
    :ivar left_out: number of reads that decide if an item exists.
    """

    def __init__(self) -> None:
        self.count = 0
        self.left_out = 0

    def note(self) -> None:
        """Count a read."""
        self.count += 1


@quickly_made
@dataclass(frozen=True, slots=True)
class Compiling:
    """The context of functions while a template is read.

    :ivar resources: names of all resources of the template.
    :ivar absent: names of resources whose condition is false; shared by all definitions.
    :ivar absence: the meaning of a reference to an absent resource in the current definition.
    :ivar mappings: the section of that name, which only some dialects have.
    :ivar yaql: evaluates expressions; None evaluates them later.
    :ivar inspecting: the template is inspected without all values: calls that need missing ones remain.
    :ivar requires: names of the resources to which the current definition refers; functions add to it.
    :ivar asked: pairs of resource name and attribute that the current definition uses; functions add to it.
    :ivar suggestion: returns ``Did you mean`` for a misspelt name.
    :ivar hidden_reads: shared by all definitions.
    :ivar hidden: paths of values in the current definition that are computed from hidden parameters.
    :ivar facade: the known parts of the resource that the template implements.
    :ivar of_the_stack: names of the pseudo parameters that were read; shared by all definitions.
    :ivar keeps_failures: a call with unsuitable values is no problem: it remains, and fails on evaluation.
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
        """Return the context for another definition."""
        return replace(self, subject=subject, requires=set(), asked=set(), hidden=set())

    def uses(self) -> dict[str, tuple[str, ...]]:
        """Return the used attributes of each resource, sorted."""
        uses: dict[str, tuple[str, ...]] = {}
        for resource, attribute in sorted(self.asked):
            uses[resource] = (*uses.get(resource, ()), attribute)
        return uses


@dataclass(frozen=True, slots=True)
class Evaluating:
    """The context of functions when a resource is processed."""

    inputs: Mapping[str, Output]
    budget: Budget
    yaql: Yaql | None = None


class Folding(Protocol):
    """The operations of a function on its argument while a template is read."""

    def fold(self, node: Json, path: Path, scope: Compiling) -> Json:
        """Return a part of the argument, encoded, or `DROPPED`."""

    def argument(self, node: Json, path: Path, scope: Compiling) -> tuple[Json, bool]:
        """Return the encoded argument, and True if it contains no function.

        :raises Refused: a part of it is wrong.
        """

    def condition(self, node: Json, path: Path, scope: Compiling) -> Json:
        """Return the value of a condition or of its name: a boolean, or a remaining call.

        :raises Refused: a part of it is wrong.
        :raises EvaluationFailed: it is not a condition.
        """


class Function:
    """A function of the language.

    :cvar name: its name in templates.
    :cvar code: its code in stored definitions: the name, and the version if the meaning has changed. A function whose
        calls never remain has none.
    :cvar names: number of leading items of its argument that are names of a resource and an attribute. Graphs and
        lists show them, so they must not be computed from a hidden parameter.
    """

    name: ClassVar[str]
    code: ClassVar[str]
    names: ClassVar[int] = 0

    def read(self, argument: Json, path: Path, scope: Compiling, folding: Folding) -> Json:
        """Return the encoded result of the call: its value, a remaining call, or `DROPPED`.

        :param argument: the unevaluated argument.
        :param path: its path.
        :raises EvaluationFailed: the function does not accept the argument.
        :raises Refused: a part of the argument is wrong.
        """
        encoded, constant = folding.argument(argument, path, scope)
        return self.fold(encoded, constant, scope)

    def fold(self, argument: Json, constant: bool, scope: Compiling) -> Json:
        """Return the result of a call with a folded argument.

        :param argument: the encoded argument.
        :param constant: True if the argument contains no function.
        :raises EvaluationFailed: the function does not accept the argument.
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
            error.is_of_form = False  # The form was checked before.
            raise
        return encode(value, scope.budget, self.name)

    def check(self, argument: Json) -> None:
        """Check the form of an encoded argument. Its parts may still be functions.

        :raises EvaluationFailed: the form is wrong.
        """

    def evaluate(self, argument: Json, scope: Evaluating) -> Json:
        """Return the value of the call.

        :param argument: a plain value without functions.
        :raises EvaluationFailed: the function does not accept the argument.
        """
        raise EvaluationFailed(f'{self.name} cannot be evaluated')

    def reference(self, argument: Json) -> tuple[str, str | None] | None:
        """Return the resource and attribute (None: the reference id) to which a remaining call refers.

        :param argument: the encoded argument.
        """
        return None

    def operands(self, argument: Json) -> list[Json]:
        """Return the parts of an unevaluated argument that are conditions themselves."""
        return []


class FailedCall(Function):
    """The stored form of a call that is known to fail. No version of the language offers it."""

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


def wrong_keys(message: str, given: Iterable[str], known: Sequence[str]) -> EvaluationFailed:
    """Return the error of a function that needs certain keys, with the first unknown key.

    :param message: the requirement, without a full stop.
    :param known: the known keys, required ones first.
    """
    unknown = [key for key in given if key not in known]
    named = f', not {unknown[0][:80]}' if unknown else ''
    failed = EvaluationFailed(f'{message}{named}.{nearly(unknown, [key for key in known if key not in given])}')
    failed.key = unknown[0] if unknown else ''
    return failed


def nearly(given: Iterable[str], known: Iterable[str]) -> str:
    """Return `` Did you mean "…"?`` if a given key is similar to a missing one.

    :param given: keys of the user; only the first few short ones are compared.
    """
    given = list(itertools.islice(given, 10))
    missing = [name for name in known if name not in given]
    for name in given:
        close = difflib.get_close_matches(name, missing, n=1) if len(name) <= 32 else []
        if close:
            return f' Did you mean "{close[0]}"?'
    return ''


def description_of(function: Function) -> str:
    """Return the description of a function in one sentence."""
    return (type(function).__doc__ or '').partition('\n')[0]


def is_call(encoded: Json) -> bool:
    """Return True for a function whose value is not known yet."""
    return function_of(encoded) is not None


def type_name(value: Json) -> str:
    """Return the name of a value's type for users."""
    if value is None:
        return 'null'
    names = {bool: 'a boolean', int: 'a number', float: 'a number', str: 'a string', list: 'a list', dict: 'a map'}
    return next(name for kind, name in names.items() if isinstance(value, kind))
