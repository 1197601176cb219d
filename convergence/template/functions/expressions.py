"""The function that evaluates expressions of a query language."""

from __future__ import annotations

from typing import ClassVar

from typing_extensions import override

from convergence.core.model import Json
from convergence.template.encoding import entries_of, escaped
from convergence.template.functions.base import (
    Evaluating,
    EvaluationFailed,
    Function,
    NotYetKnown,
    is_call,
    type_name,
    wrong_keys,
)


class YaqlExpression(Function):
    """The value of a YAQL expression, in which $.data is the data that is given."""

    name: ClassVar[str] = 'yaql'
    code: ClassVar[str] = 'yaql'

    @override
    def check(self, argument: Json) -> None:
        """Require a map of expression and data."""
        if is_call(argument):
            return
        entries = entries_of(argument)
        if entries is None or set(entries) != {'expression', 'data'}:
            what = 'yaql needs a map with exactly the keys expression and data'
            raise wrong_keys(what, entries or (), ('expression', 'data'))
        expression = entries['expression']
        if not (is_call(expression) or isinstance(expression, str)):
            raise EvaluationFailed(f'yaql: the expression must be a string, not {type_name(expression)}.')

    @override
    def evaluate(self, argument: Json, scope: Evaluating) -> Json:
        """Return the value.

        :raises NotYetKnown: this process evaluates no expressions.
        """
        self.check(escaped(argument))
        assert isinstance(argument, dict)
        if scope.yaql is None:
            raise NotYetKnown('yaql: expressions are not evaluated here.')
        return scope.yaql.evaluate(str(argument['expression']), argument['data'], scope.budget)
