"""Functions that return text."""

from __future__ import annotations

import hashlib
import json
from typing import ClassVar

from typing_extensions import override

from convergence.core.model import Json
from convergence.template.encoding import entries_of, escaped
from convergence.template.functions.base import Evaluating, EvaluationFailed, Function, is_call, type_name, wrong_keys
from convergence.template.limits import REPLACEMENT_STEPS, Budget

# Two algorithms have no fixed length of their digests.
ALGORITHMS = tuple(sorted(name for name in hashlib.algorithms_available if not name.lower().startswith('shake')))

CHARACTERS_PER_STEP = 64
"""Characters per step. Searching text takes far less time per character than other steps."""


class ListJoin(Function):
    """The strings of a list, joined by a delimiter."""

    name: ClassVar[str] = 'list_join'
    code: ClassVar[str] = 'list_join'
    form: ClassVar[str] = 'list_join needs a list: a delimiter, and a list of strings.'

    @override
    def check(self, argument: Json) -> None:
        """Require a delimiter and a list."""
        if is_call(argument):
            return
        if not isinstance(argument, list) or not self._right_length(len(argument)):
            raise EvaluationFailed(self.form)
        delimiter, *lists = argument
        if not (is_call(delimiter) or delimiter is None or isinstance(delimiter, str)):
            raise EvaluationFailed(f'list_join: the delimiter must be a string, not {type_name(delimiter)}.')
        for items in lists:
            if is_call(items) or items is None:
                continue
            if not isinstance(items, list):
                raise EvaluationFailed(f'list_join: the second argument must be a list, not {type_name(items)}.')
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

    @override
    def evaluate(self, argument: Json, scope: Evaluating) -> Json:
        """Return the joined text."""
        self.check(escaped(argument))
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

    @override
    def _right_length(self, length: int) -> bool:
        return length >= 2

    @override
    def _check_item(self, item: Json) -> None:
        if not (item is None or isinstance(item, str | list | dict)):
            found = type_name(item)
            raise EvaluationFailed(f'list_join: the items to join must be strings, maps or lists, not {found}.')

    @override
    def _text(self, item: Json, budget: Budget) -> str:
        return json_text(item, budget, self.name) if isinstance(item, dict | list) else super()._text(item, budget)


class StringReplace(Function):
    """A text in which every occurrence of some keys is replaced, the longest keys first, each place only once."""

    name: ClassVar[str] = 'str_replace'
    code: ClassVar[str] = 'str_replace'

    @override
    def check(self, argument: Json) -> None:
        """Require a map of template and params."""
        if is_call(argument):
            return
        entries = entries_of(argument)
        if entries is None or set(entries) != {'template', 'params'}:
            what = f'{self.name} needs a map with exactly the keys template and params'
            raise wrong_keys(what, entries or (), ('template', 'params'))
        template, params = entries['template'], entries['params']
        if not (is_call(template) or isinstance(template, str)):
            raise EvaluationFailed(f'{self.name}: the template must be a string, not {type_name(template)}.')
        if is_call(params):
            return
        replacements = entries_of(params)
        if replacements is None:
            raise EvaluationFailed(f'{self.name}: params must be a map, not {type_name(params)}.')
        if '' in replacements:
            raise EvaluationFailed(f'{self.name}: a key of params is empty; nothing can be found by it.')
        for key, value in replacements.items():
            if not is_call(value):
                self._check_value(key, value)

    def _check_value(self, key: str, value: Json) -> None:
        if isinstance(value, dict | list):
            found = type_name(value)
            raise EvaluationFailed(f'{self.name}: the value of {key} must be a string or a number, not {found}.')

    def _text(self, value: Json, budget: Budget) -> str:
        return '' if value is None else str(value)

    @override
    def evaluate(self, argument: Json, scope: Evaluating) -> Json:
        """Return the text with its replacements."""
        self.check(escaped(argument))
        assert isinstance(argument, dict)
        template, params = argument['template'], argument['params']
        assert isinstance(template, str)
        assert isinstance(params, dict)
        texts = {key: self._text(value, scope.budget) for key, value in params.items()}
        return self._replaced(template, texts, scope.budget)

    def _replaced(self, template: str, replacements: dict[str, str], budget: Budget) -> str:
        return replace(template, replacements, budget)


class StringReplaceJson(StringReplace):
    """As before; maps and lists among the values are written as JSON."""

    code: ClassVar[str] = 'str_replace@2015-10-15'

    @override
    def _check_value(self, key: str, value: Json) -> None:
        return

    @override
    def _text(self, value: Json, budget: Budget) -> str:
        return json_text(value, budget, self.name) if isinstance(value, dict | list) else super()._text(value, budget)


class StringReplaceStrict(StringReplaceJson):
    """As `str_replace`; every key must occur in the text."""

    name: ClassVar[str] = 'str_replace_strict'
    code: ClassVar[str] = 'str_replace_strict'

    @override
    def _replaced(self, template: str, replacements: dict[str, str], budget: Budget) -> str:
        pieces, found = _replace(template, replacements, budget)
        missing = sorted(set(replacements) - found)
        if missing:
            names = ', '.join(missing)
            raise EvaluationFailed(f'The following params were not found in the template: {names}')
        return ''.join(pieces)


class StringReplaceVeryStrict(StringReplaceStrict):
    """As `str_replace`; every key must occur in the text, and have a value that is not empty."""

    name: ClassVar[str] = 'str_replace_vstrict'
    code: ClassVar[str] = 'str_replace_vstrict'

    @override
    def _check_value(self, key: str, value: Json) -> None:
        # A list or a map that is empty is written as [] or {}, which is something.
        if value is None or value == '':
            raise EvaluationFailed(
                f'{self.name} has an undefined or empty value for param {key}, must be a defined non-empty value'
            )


class StringSplit(Function):
    """The parts of a text between delimiters, or one of them."""

    name: ClassVar[str] = 'str_split'
    code: ClassVar[str] = 'str_split'

    @override
    def check(self, argument: Json) -> None:
        """Delimiter, text, and maybe an index."""
        if is_call(argument):
            return
        if not isinstance(argument, list) or len(argument) not in (2, 3):
            raise EvaluationFailed(f'{self.name} needs a list: a delimiter, a string, and maybe an index.')
        delimiter, text = argument[:2]
        if not (is_call(delimiter) or (isinstance(delimiter, str) and delimiter)):
            raise EvaluationFailed(f'{self.name}: the delimiter must be a string that is not empty.')
        if not (is_call(text) or text is None or isinstance(text, str)):
            raise EvaluationFailed(f'{self.name}: only a string can be split, not {type_name(text)}.')
        if len(argument) == 3 and not is_call(argument[2]) and index_of(argument[2]) is None:
            raise EvaluationFailed(f'{self.name}: the index must be a whole number, not {type_name(argument[2])}.')

    @override
    def evaluate(self, argument: Json, scope: Evaluating) -> Json:
        """Return the parts, or the one with the index, which counts from the end if it is negative. Null has none."""
        self.check(escaped(argument))
        assert isinstance(argument, list)
        delimiter, text, *others = argument
        if text is None:
            return None
        scope.budget.spend_text(len(str(text)), self.name)
        parts = str(text).split(str(delimiter))
        if not others:
            return [*parts]
        index = index_of(others[0])
        if index is None or not -len(parts) <= index < len(parts):
            raise EvaluationFailed(f'Incorrect index to "{self.name}" should be between 0 and {len(parts) - 1}')
        return parts[index]


class Digest(Function):
    """The digest of a text, in hexadecimal digits."""

    name: ClassVar[str] = 'digest'
    code: ClassVar[str] = 'digest'

    @override
    def check(self, argument: Json) -> None:
        """Require name of an algorithm, and a text."""
        if is_call(argument):
            return
        if not isinstance(argument, list) or len(argument) != 2:
            raise EvaluationFailed('digest needs a list: the name of an algorithm, and a string.')
        algorithm, text = argument
        if not is_call(algorithm) and str(algorithm).lower() not in ALGORITHMS:
            raise EvaluationFailed(f'digest: Algorithm must be one of {", ".join(ALGORITHMS)}')
        if not (is_call(text) or isinstance(text, str)):
            raise EvaluationFailed(f'digest: only a string has a digest, not {type_name(text)}.')

    @override
    def evaluate(self, argument: Json, scope: Evaluating) -> Json:
        """Return the digest."""
        self.check(escaped(argument))
        assert isinstance(argument, list)
        algorithm, text = str(argument[0]).lower(), str(argument[1])
        scope.budget.spend_steps(len(text) // CHARACTERS_PER_STEP, self.name)
        try:
            return hashlib.new(algorithm, text.encode(), usedforsecurity=False).hexdigest()
        except (TypeError, ValueError):
            raise EvaluationFailed(f'digest: this machine does not offer {algorithm}; use another algorithm.') from None


def replace(template: str, replacements: dict[str, str], budget: Budget) -> str:
    """Return `template` with every key replaced. Longer keys come first; replaced text is not searched again.

    :raises RequestLimitExceeded: the replacement takes too many steps, or the result is too large.
    """
    return ''.join(_replace(template, replacements, budget)[0])


def _replace(template: str, replacements: dict[str, str], budget: Budget) -> tuple[list[str], set[str]]:
    """Return the pieces of the new text, and the keys that were found."""
    found: set[str] = set()
    budget.spend_steps(REPLACEMENT_STEPS, 'str_replace')
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
            if others:
                found.add(key)
            for other in others:
                following += (replacements[key], other)
        pieces = following
    budget.spend_text(sum(map(len, pieces)), 'str_replace')
    return pieces, found


def json_text(value: Json, budget: Budget, subject: str) -> str:
    """Return JSON with sorted keys: equal data gives equal text, which avoids needless updates."""
    text = json.dumps(value, sort_keys=True)
    budget.spend_text(len(text), subject)
    return text


def index_of(element: Json) -> int | None:
    """Return an index, which may be written as text; None if it is not an index."""
    if isinstance(element, int) and not isinstance(element, bool):
        return element
    if isinstance(element, str) and len(element) < 10 and element.removeprefix('-').isdecimal():
        return int(element)
    return None
