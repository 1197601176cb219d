"""Functions that make text."""

from __future__ import annotations

import json
from typing import ClassVar

from convergence.core.model import Json
from convergence.template.encoding import entries_of
from convergence.template.functions.base import Evaluating, EvaluationFailed, Function, is_call, type_name
from convergence.template.limits import Budget

CHARACTERS_PER_STEP = 64
"""Searching text costs far less per character than anything else is counted in."""


class ListJoin(Function):
    """The strings of a list, joined by a delimiter."""

    name: ClassVar[str] = 'list_join'
    code: ClassVar[str] = 'list_join'
    form: ClassVar[str] = 'list_join needs a list: a delimiter, and a list of strings.'

    def check(self, argument: Json) -> None:
        """A delimiter and a list."""
        if not isinstance(argument, list) or not self._right_length(len(argument)):
            raise EvaluationFailed(self.form)
        delimiter, *lists = argument
        if not (is_call(delimiter) or delimiter is None or isinstance(delimiter, str)):
            raise EvaluationFailed(f'list_join: the delimiter must be a string, not {type_name(delimiter)}.')
        for items in lists:
            if is_call(items) or items is None:
                continue
            if not isinstance(items, list):
                raise EvaluationFailed(f'list_join: what is joined must be a list, not {type_name(items)}.')
            for item in items:
                if not is_call(item):
                    self._check_item(item)

    def _right_length(self, length: int) -> bool:
        return length == 2

    def _check_item(self, item: Json) -> None:
        if not (item is None or isinstance(item, str)):
            raise EvaluationFailed(f'list_join: the items to join must be strings, not {type_name(item)}.')

    def _text(self, item: Json, budget: Budget) -> str:
        return '' if item is None else str(item)

    def evaluate(self, argument: Json, scope: Evaluating) -> Json:
        """The joined text."""
        self.check(argument)
        assert isinstance(argument, list)
        delimiter = str(argument[0] or '')
        texts: list[str] = []
        for items in argument[1:]:
            assert items is None or isinstance(items, list)
            texts.extend(self._text(item, scope.budget) for item in items or ())
        scope.budget.spend_text(sum(map(len, texts)) + len(delimiter) * len(texts), 'list_join')
        return delimiter.join(texts)


class ListJoinMany(ListJoin):
    """The items of several lists, joined by a delimiter; maps and lists among them are written as JSON."""

    code: ClassVar[str] = 'list_join@2015-10-15'
    form: ClassVar[str] = 'list_join needs a list: a delimiter, and one or more lists.'

    def _right_length(self, length: int) -> bool:
        return length >= 2

    def _check_item(self, item: Json) -> None:
        if not (item is None or isinstance(item, str | list | dict)):
            found = type_name(item)
            raise EvaluationFailed(f'list_join: the items to join must be strings, maps or lists, not {found}.')

    def _text(self, item: Json, budget: Budget) -> str:
        return _json_text(item, budget, self.name) if isinstance(item, dict | list) else super()._text(item, budget)


class StringReplace(Function):
    """A text in which every occurrence of some keys is replaced, the longest keys first, each place only once."""

    name: ClassVar[str] = 'str_replace'
    code: ClassVar[str] = 'str_replace'

    def check(self, argument: Json) -> None:
        """A map of template and params."""
        entries = entries_of(argument)
        if entries is None or set(entries) != {'template', 'params'}:
            raise EvaluationFailed('str_replace needs a map with exactly the keys template and params.')
        template, params = entries['template'], entries['params']
        if not (is_call(template) or isinstance(template, str)):
            raise EvaluationFailed(f'str_replace: the template must be a string, not {type_name(template)}.')
        if is_call(params):
            return
        replacements = entries_of(params)
        if replacements is None:
            raise EvaluationFailed(f'str_replace: params must be a map, not {type_name(params)}.')
        if '' in replacements:
            raise EvaluationFailed('str_replace: a key of params is empty; nothing can be found by it.')
        for key, value in replacements.items():
            if not is_call(value):
                self._check_value(key, value)

    def _check_value(self, key: str, value: Json) -> None:
        if isinstance(value, dict | list):
            found = type_name(value)
            raise EvaluationFailed(f'str_replace: the value of {key} must be a string or a number, not {found}.')

    def _text(self, value: Json, budget: Budget) -> str:
        return '' if value is None else str(value)

    def evaluate(self, argument: Json, scope: Evaluating) -> Json:
        """The text with its replacements."""
        if not isinstance(argument, dict) or set(argument) != {'template', 'params'}:
            raise EvaluationFailed('str_replace needs a map with exactly the keys template and params.')
        template, params = argument['template'], argument['params']
        if not isinstance(template, str):
            raise EvaluationFailed(f'str_replace: the template must be a string, not {type_name(template)}.')
        if not isinstance(params, dict):
            raise EvaluationFailed(f'str_replace: params must be a map, not {type_name(params)}.')
        if '' in params:
            raise EvaluationFailed('str_replace: a key of params is empty; nothing can be found by it.')
        for key, value in params.items():
            self._check_value(key, value)
        return replace(template, {key: self._text(value, scope.budget) for key, value in params.items()}, scope.budget)


class StringReplaceJson(StringReplace):
    """As before; maps and lists among the values are written as JSON."""

    code: ClassVar[str] = 'str_replace@2015-10-15'

    def _check_value(self, key: str, value: Json) -> None:
        return

    def _text(self, value: Json, budget: Budget) -> str:
        return _json_text(value, budget, self.name) if isinstance(value, dict | list) else super()._text(value, budget)


def replace(template: str, replacements: dict[str, str], budget: Budget) -> str:
    """`template` with every key replaced. Longer keys go first; replaced text is not looked at again.

    :raises RequestLimitExceeded: it would take too long, or the result would be too large.
    """
    # Pieces alternate: even ones are still open to replacement, odd ones are done.
    pieces = [template]
    for key in sorted(replacements, key=len, reverse=True):
        budget.spend_steps(len(template) // CHARACTERS_PER_STEP + len(pieces), 'str_replace')
        if key not in template:
            continue
        following: list[str] = []
        for index, piece in enumerate(pieces):
            if index % 2:
                following.append(piece)
                continue
            first, *others = piece.split(key)
            following.append(first)
            for other in others:
                following += (replacements[key], other)
        pieces = following
    budget.spend_text(sum(map(len, pieces)), 'str_replace')
    return ''.join(pieces)


def _json_text(value: Json, budget: Budget, subject: str) -> str:
    """JSON with sorted keys: the same data always gives the same text, so nothing is updated without a cause."""
    text = json.dumps(value, sort_keys=True)
    budget.spend_text(len(text), subject)
    return text
