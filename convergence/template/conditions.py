"""Conditions: the section, and inline conditions."""

from __future__ import annotations

import dataclasses
import itertools
import weakref
from collections.abc import Iterable, Iterator, Mapping

from convergence.core.model import Json, Path
from convergence.errors import InvalidTemplateReference, StackValidationFailed
from convergence.template.cycles import cycles, in_order
from convergence.template.document import ParsedDocument
from convergence.template.folding import Folder
from convergence.template.functions.base import (
    AlreadyReported,
    Compiling,
    EvaluationFailed,
    Function,
    Misplaced,
    is_call,
    type_name,
)
from convergence.template.lookalikes import Lookalikes
from convergence.template.versions import Version

SECTION = 'conditions'

MOST_LISTED = 10
"""Maximum number of names of conditions in an error."""

LONGEST_LISTED = 60
"""Maximum number of characters of a condition name in an error."""


class InvalidCondition(EvaluationFailed):
    """The condition does not exist."""

    kind: type[StackValidationFailed] = InvalidTemplateReference


class Conditions:
    """The conditions of a template. A condition without a value depends on a parameter without a value."""

    def __init__(self, document: ParsedDocument, version: Version, lookalikes: Lookalikes) -> None:
        self._document = document
        self._functions = version.conditions
        misplaced = {name: Misplaced(name) for name in version.functions}
        known: Mapping[str, Function] = {**misplaced, **version.conditions}
        # A cycle of references would keep the whole document until the next garbage collection.
        itself = weakref.proxy(self)
        self._folder = Folder(document, known, lambda *arguments: itself.read(*arguments), lookalikes)
        self._values: dict[str, Json] = {}
        self._hidden: set[str] = set()
        self._wrong: set[str] = set()

    def declare(self, section: Mapping[str, Json], scope: Compiling) -> None:
        """Read the section. Conditions may refer to each other in any order. Errors go to the problems."""
        requires = {
            name: sorted({other for other in self._names(body) if other in section}) for name, body in section.items()
        }
        self._wrong.update(section)
        for cycle in cycles(requires):
            steps = ' -> '.join(self._step(name) for name in cycle)
            message = f'The conditions depend on each other in a circle: {steps}'
            self._document.key_problem(message, (SECTION, cycle[0]))
        for name in in_order(requires):
            path: Path = (SECTION, name)
            own = dataclasses.replace(scope, subject=f'{SECTION}.{name}')
            body, reads = section[name], scope.hidden_reads.count
            try:
                if not isinstance(body, bool | dict):
                    raise EvaluationFailed(f'The definition of condition "{name}" is invalid: {str(body)[:80]}')
                self._values[name] = self.read(body, path, own)
                self._wrong.discard(name)
                if scope.hidden_reads.count != reads:
                    self._hidden.add(name)
            except AlreadyReported:
                pass
            except EvaluationFailed as error:
                self._document.problem(str(error), path, error.kind)

    def read(self, node: Json, path: Path, scope: Compiling) -> Json:
        """Return the value of an inline condition: a boolean, or a remaining call.

        :param node: the name of a condition, a boolean, or a function.
        :raises Refused: a part of it is wrong; the problem is reported already.
        :raises EvaluationFailed: it is not a condition.
        """
        if isinstance(node, bool):
            return node
        if isinstance(node, str):
            return self._named(node, scope)
        if isinstance(node, dict):
            encoded, _ = self._folder.argument(node, path, scope)
            if isinstance(encoded, bool) or is_call(encoded):
                return encoded
            if len(node) == 1 and next(iter(node)) in self._functions:
                raise EvaluationFailed(f'Invalid condition: it is {type_name(encoded)}, neither true nor false.')
        raise EvaluationFailed(
            f'Invalid condition "{str(node)[:80]}": it must be the name of a condition, true, false, '
            f'or one of the functions {", ".join(sorted(self._functions))}.'
        )

    def holds(self, node: Json, path: Path, scope: Compiling) -> bool:
        """Return True if an item with this condition exists. Null and unknown conditions count as true.

        Errors go to the problems.
        """
        if node is None:
            return True
        try:
            condition = self.read(node, path, scope)
            if not isinstance(condition, bool) and not scope.inspecting:
                raise EvaluationFailed('Invalid condition: expressions are not evaluated here.')
            return condition is not False
        except AlreadyReported:
            return True
        except EvaluationFailed as error:
            self._document.problem(str(error), path, error.kind)
            return True

    def _named(self, name: str, scope: Compiling) -> Json:
        if name in self._wrong:
            raise AlreadyReported
        if name not in self._values:
            known = dict.fromkeys([*self._values, *sorted(self._wrong)])
            hint = scope.suggestion(name, known) or _listed(known)
            raise InvalidCondition(f'Invalid condition "{name[:255]}" (in {scope.subject}).{hint}')
        if name in self._hidden:
            scope.hidden_reads.note()
        return self._values[name]

    def _names(self, node: Json) -> Iterator[str]:
        """Return the names of conditions that a condition uses. Iterative, because chains may have any length."""
        pending = [node]
        while pending:
            node = pending.pop()
            if isinstance(node, str):
                yield node
            elif isinstance(node, dict) and len(node) == 1:
                key, argument = next(iter(node.items()))
                function = self._functions.get(key)
                if function is not None:
                    try:
                        pending.extend(function.operands(argument))
                    except EvaluationFailed:
                        continue  # Reading the condition reports the error.

    def _step(self, name: str) -> str:
        place = self._document.key_place((SECTION, name))
        return f'{name} (line {place.line})' if place else name


def _listed(names: Iterable[str]) -> str:
    """Return the names of conditions, as many as fit into an error."""
    shown = [name[:LONGEST_LISTED] for name in itertools.islice(names, MOST_LISTED + 1)]
    more = ', …' if len(shown) > MOST_LISTED else ''
    return (
        f' The conditions are: {", ".join(shown[:MOST_LISTED])}{more}.' if shown else ' The template has no conditions.'
    )
