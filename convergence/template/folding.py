"""Replaces the functions in the values of a template: by their values, or by remaining calls."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from convergence.core.model import Json, Path
from convergence.template.document import ParsedDocument
from convergence.template.encoding import call, wrap
from convergence.template.functions.base import (
    CONCEALED,
    DROPPED,
    AlreadyReported,
    Compiling,
    EvaluationFailed,
    FailedCall,
    Function,
    is_call,
)
from convergence.template.lookalikes import Lookalikes

ReadCondition = Callable[[Json, Path, Compiling], Json]
"""See `convergence.template.functions.base.Folding.condition`."""


class Folder:
    """Folds the values of one document. Errors go to the problems of the document.

    :param functions: functions by name; other maps with one key are data.
    :param condition: reads conditions.
    :param lookalikes: checks those maps for misspelt functions.
    """

    def __init__(
        self,
        document: ParsedDocument,
        functions: Mapping[str, Function],
        condition: ReadCondition,
        lookalikes: Lookalikes,
    ) -> None:
        self._document = document
        self._functions = functions
        self._lookalikes = lookalikes
        self._remaining = 0
        self._refused = 0
        self._depth = 0
        self.condition = condition

    def value(self, node: Json, path: Path, scope: Compiling) -> Json:
        """Return the encoded value of a whole section; null if it was dropped.

        :param path: its path.
        :raises RequestLimitExceeded: the value is too large.
        """
        encoded = self.fold(node, path, scope)
        return None if encoded is DROPPED else encoded

    def fold(self, node: Json, path: Path, scope: Compiling) -> Json:
        """Return a part of a section, encoded, or `DROPPED`. Invalid parts become null.

        :raises RequestLimitExceeded: the value is too large.
        """
        if isinstance(node, dict):
            if len(node) == 1:
                key, argument = next(iter(node.items()))
                function = self._functions.get(key)
                if function is not None:
                    return self._call(function, argument, (*path, key), scope)
                if self._lookalikes.refuse(key, argument, (*path, key)):
                    self._refused += 1
            entries = {key: self.fold(value, (*path, key), scope) for key, value in node.items()}
            if DROPPED in entries.values():
                entries = {key: value for key, value in entries.items() if value is not DROPPED}
            return wrap(entries)
        if isinstance(node, list):
            items = [self.fold(value, (*path, index), scope) for index, value in enumerate(node)]
            if DROPPED not in items:
                return items
            if any(place[: len(path)] == path for place in scope.hidden):
                scope.hidden.add(path)  # The places after the dropped item have moved.
            return [item for item in items if item is not DROPPED]
        return node

    def argument(self, node: Json, path: Path, scope: Compiling) -> tuple[Json, bool]:
        """Return the encoded argument of a call, and True if it contains no call.

        :raises Refused: a part of it is wrong; the problem is reported already.
        """
        remaining, refused = self._remaining, self._refused
        encoded = self.value(node, path, scope)
        if self._refused != refused:
            raise AlreadyReported
        return encoded, self._remaining == remaining

    def _call(self, function: Function, argument: Json, path: Path, scope: Compiling) -> Json:
        reads, left_out = scope.hidden_reads.count, scope.hidden_reads.left_out
        self._depth += 1
        try:
            result = function.read(argument, path, scope, self)
            hidden = scope.hidden_reads.count != reads
            if hidden and not all(isinstance(name, str) for name in _names(function, argument)):
                raise EvaluationFailed(NAMED_BY_HIDDEN.format(function.name))
        except AlreadyReported:
            self._refused += 1
            return None
        except EvaluationFailed as error:
            message = str(error) if scope.hidden_reads.count == reads else concealed_failure(function.name, error)
            if scope.keeps_failures and not error.is_of_form:
                self._document.key_warning(f'This cannot succeed: {message}', path)
                self._remaining += 1
                return call(FailedCall.code, message)
            self._refused += 1
            where = self._document.key_problem if error.key else self._document.problem
            where(message, (*path, error.key) if error.key else path, error.kind)
            return None
        finally:
            self._depth -= 1
        if hidden and not self._depth:
            # The enclosing value shows that an item is missing.
            is_visible = scope.hidden_reads.left_out != left_out and len(path) > SECTION + 1
            scope.hidden.add(path[:-2] if is_visible else path[:-1])
        if is_call(result):
            self._remaining += 1
        return result


SECTION = 3
"""Number of steps in the path of a whole section, such as ``resources.web.properties``."""

NAMED_BY_HIDDEN = (
    '{}: the name of a resource or attribute must not be computed from a hidden parameter: names are shown.'
)


def concealed_failure(name: str, error: EvaluationFailed) -> str:
    """Return the error for an evaluation that failed with secret values.

    :param name: name of the function.
    """
    if str(error) == NAMED_BY_HIDDEN.format(name):
        return str(error)
    return f'{name} {CONCEALED}'


def _names(function: Function, argument: Json) -> list[Json]:
    """Return the parts of an unevaluated argument that are names."""
    if not function.names:
        return []
    return argument[: function.names] if isinstance(argument, list) else [argument]
