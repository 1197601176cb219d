"""Evaluates the remaining functions of a definition, fully or as far as possible."""

from __future__ import annotations

import enum
from collections.abc import Callable, Collection, Mapping
from typing import Any, Final, TypeAlias

from typing_extensions import override

from convergence.core.model import Json, Output, Path
from convergence.template.encoding import entries_of, function_of
from convergence.template.functions import BY_CODE
from convergence.template.functions.base import (
    CONCEALED,
    Evaluating,
    EvaluationFailed,
    Function,
    NotYetKnown,
    UnresolvedReference,
    Yaql,
)
from convergence.template.functions.references import ParameterNotProvided
from convergence.template.limits import STANDARD, Budget


class Unknown(enum.Enum):
    """The type of `UNKNOWN`."""

    UNKNOWN = 'known after apply'

    @override
    def __repr__(self) -> str:
        return 'UNKNOWN'


UNKNOWN: Final = Unknown.UNKNOWN
Previewed: TypeAlias = Any
"""A JSON value in which placeholders such as `UNKNOWN` stand for unknown parts."""
"""The placeholder for a value that is not known yet, in a preview."""

TOO_DEEP = 'The value of a function is nested too deeply.'


def resolve(
    encoded: Json,
    inputs: Mapping[str, Output],
    yaql: Yaql | None = None,
    budget: Budget | None = None,
    hidden: Collection[Path] = (),
) -> Json:
    """Return the value with all functions evaluated.

    :param encoded: `properties` or `metadata` of a definition, or the value of an output.
    :param inputs: outputs by resource name, of at least the resources that the value refers to.
    :param yaql: evaluates expressions; without it a value with an expression cannot be resolved.
    :param budget: the common limits of several values; None: the standard limits for this value.
    :param hidden: paths of secret values; errors do not show them.
    :raises UnresolvedReference: an input is missing, or an attribute could not be read.
    :raises EvaluationFailed: a function does not accept its argument.
    :raises RequestLimitExceeded: the value would be too large.
    """
    try:
        scope = Evaluating(inputs, budget or Budget(STANDARD), yaql)
        value: Json = _discreetly(encoded, frozenset(hidden), lambda part: _resolve(part, scope))
        return value
    except RecursionError:
        raise EvaluationFailed(TOO_DEEP) from None


def preview(
    encoded: Json, inputs: Mapping[str, Output], yaql: Yaql | None = None, hidden: Collection[Path] = ()
) -> Previewed:
    """Return the value with `UNKNOWN` in place of each function that cannot be evaluated yet.

    :param inputs: known outputs by resource name; may be empty.
    :param yaql: evaluates expressions; without it their values count as unknown.
    :param hidden: as for `resolve`.
    :raises EvaluationFailed: a function cannot accept its argument, regardless of unknown values.
    :raises RequestLimitExceeded: the value would be too large.
    """
    try:
        scope = Evaluating(inputs, Budget(STANDARD), yaql)
        return _discreetly(encoded, frozenset(hidden), lambda part: _preview(part, scope))
    except RecursionError:
        raise EvaluationFailed(TOO_DEEP) from None


def references(encoded: Json) -> tuple[set[str], dict[str, set[str]]]:
    """Return the references of the remaining functions.

    :return: names of resources whose reference id is used, and the used attributes by resource (empty: all).
    """
    names: set[str] = set()
    attributes: dict[str, set[str]] = {}
    pending = [encoded]
    while pending:
        value = pending.pop()
        found = function_of(value)
        if found:
            code, argument = found
            reference = _function(code).reference(argument)
            if reference:
                resource, attribute = reference
                if attribute is None:
                    names.add(resource)
                else:
                    attributes.setdefault(resource, set()).add(attribute)
            pending.append(argument)
        elif isinstance(value, dict):
            pending.extend((entries_of(value) or {}).values())
        elif isinstance(value, list):
            pending.extend(value)
    return names, attributes


def _function(code: str) -> Function:
    function = BY_CODE.get(code)
    if function is None:
        raise EvaluationFailed(
            f'The function {code} is not known to this version of Convergence; it was stored by a newer one. '
            'Upgrade this process.'
        )
    return function


def _discreetly(encoded: Json, hidden: frozenset[Path], evaluate: Callable[[Json], Any], path: Path = ()) -> Previewed:
    """Return the value of a part. Errors at a secret path do not show values.

    :param path: the path of the part.
    """
    below = frozenset(place for place in hidden if place[: len(path)] == path)
    if not below:
        return evaluate(encoded)
    if path in below:
        try:
            return evaluate(encoded)
        except NotYetKnown:
            raise
        except UnresolvedReference as error:
            raise UnresolvedReference(f'{_shown(path)} {CONCEALED}', error.resource) from None
        except EvaluationFailed:
            raise EvaluationFailed(f'{_shown(path)} {CONCEALED}') from None
    if isinstance(encoded, dict) and not function_of(encoded):
        entries = entries_of(encoded) or {}
        return {key: _discreetly(value, below, evaluate, (*path, key)) for key, value in entries.items()}
    if isinstance(encoded, list):
        return [_discreetly(value, below, evaluate, (*path, index)) for index, value in enumerate(encoded)]
    return evaluate(encoded)


def _shown(path: Path) -> str:
    return '.'.join(map(str, path)) or 'The value'


def _resolve(encoded: Json, scope: Evaluating) -> Json:
    found = function_of(encoded)
    if found:
        code, argument = found
        return _evaluated(code, _resolve(argument, scope), scope)
    if isinstance(encoded, dict):
        return {key: _resolve(value, scope) for key, value in (entries_of(encoded) or {}).items()}
    if isinstance(encoded, list):
        return [_resolve(value, scope) for value in encoded]
    return encoded


def _evaluated(code: str, argument: Json, scope: Evaluating) -> Json:
    """Return the value of a call, and charge the budget."""
    function = _function(code)
    value = function.evaluate(argument, scope)
    reference = function.reference(argument)
    scope.budget.spend_value(value, f'{function.name} of {reference[0]}' if reference else function.name)
    return value


def _preview(encoded: Json, scope: Evaluating) -> Previewed:
    found = function_of(encoded)
    if found:
        code, argument = found
        known = _preview(argument, scope)
        if has_unknown(known):
            return UNKNOWN
        try:
            return _evaluated(code, known, scope)
        except (UnresolvedReference, ParameterNotProvided, NotYetKnown):
            return UNKNOWN
    if isinstance(encoded, dict):
        return {key: _preview(value, scope) for key, value in (entries_of(encoded) or {}).items()}
    if isinstance(encoded, list):
        return [_preview(value, scope) for value in encoded]
    return encoded


def has_unknown(value: Any) -> bool:
    """Return True if a value contains `UNKNOWN`."""
    if isinstance(value, dict):
        return any(has_unknown(inner) for inner in value.values())
    if isinstance(value, list):
        return any(has_unknown(inner) for inner in value)
    return value is UNKNOWN
