"""Reads documents of all forms (YAML text, JSON text, a parsed mapping) as `ParsedDocument`."""

from __future__ import annotations

import datetime
import json
from collections.abc import Mapping
from typing import Any

import yaml

from convergence.core.model import Json
from convergence.template.document import ParsedDocument, short
from convergence.template.limits import Limits, exceeded
from convergence.template.problems import Problems
from convergence.template.reader import read_text, syntax_problem
from convergence.template.scalars import NUL_PROBLEM, BadScalar, finite


def read(source: str | Mapping[str, Any], name: str, limits: Limits, problems: Problems) -> ParsedDocument:
    """Return the document.

    :param source: YAML or JSON text, or a parsed document.
    :param name: its name in errors.
    :raises StackValidationFailed: it cannot be read. Lesser problems are added to `problems`.
    :raises RequestLimitExceeded: too large, too deep.
    """
    if not isinstance(source, str):
        return ParsedDocument(name, Copier(name, limits, problems).copy(source), problems)
    problems.quote(name, source)
    try:
        return read_text(source, name, limits, problems)
    except yaml.YAMLError as error:
        found, value = _json(source, name, limits, problems)
        if found:
            return ParsedDocument(name, value, problems)
        problems.add(*syntax_problem(error, source, name))
        problems.raise_any()
        raise


def _json(text: str, name: str, limits: Limits, problems: Problems) -> tuple[bool, Json]:
    """Read JSON text. Some JSON (escaped surrogate pairs, very long keys) is not YAML."""
    if text.lstrip()[:1] != '{':
        return False, None
    try:
        value = parse_json(text, limits)
    except ValueError:
        return False, None
    return True, Copier(name, limits, problems).copy(value)


class _Pairs(list[tuple[str, Any]]):
    """The entries of a JSON object, duplicates included."""


def parse_json(text: str, limits: Limits) -> object:
    """Parse JSON text for `Copier`. Objects are lists of pairs, so that duplicate keys are detected.

    :raises ValueError: not JSON, nested too deeply for the parser, or a number too long.
    """

    def number(digits: str) -> int:
        if len(digits) > limits.max_number_length:
            raise ValueError(f'a number of {len(digits)} digits is too long')
        return int(digits)

    def refuse(word: str) -> float:
        raise ValueError(f'{word} is not JSON')

    try:
        return json.loads(text, object_pairs_hook=_Pairs, parse_int=number, parse_constant=refuse)
    except RecursionError:
        raise ValueError('it is nested too deeply') from None


class Copier:
    """Copies parsed values as plain JSON, with the same checks as the reader of text."""

    def __init__(self, source: str, limits: Limits, problems: Problems) -> None:
        self._source = source
        self._limits = limits
        self._problems = problems
        self._nodes = 0
        self._length = 0

    def copy(self, value: Any, path: tuple[str | int, ...] = (), depth: int = 0) -> Json:
        """Return a copy as JSON. Other values become null and a problem.

        :param path: the path of the value, for errors.
        :raises RequestLimitExceeded: too large, or too deep (a value that contains itself always is).
        """
        self._count(1)
        if value is None or isinstance(value, bool):
            return value
        if isinstance(value, str):
            return self._text(value, path)
        if isinstance(value, int | float):
            return self._number(value, path)
        if isinstance(value, datetime.date):
            return value.isoformat()
        if depth >= self._limits.max_depth:
            raise exceeded(
                'max_depth', self._limits.max_depth, f'{self._where(path)}maps and lists are nested too deeply'
            )
        if isinstance(value, _Pairs):
            return self._entries(value, path, depth)
        if isinstance(value, Mapping):
            return self._entries(list(value.items()), path, depth)
        if isinstance(value, list | tuple):
            return [self.copy(item, (*path, index), depth + 1) for index, item in enumerate(value)]
        self._problem(f'a value of type {type(value).__name__} is not JSON', path)
        return None

    def _entries(self, entries: list[tuple[Any, Any]], path: tuple[str | int, ...], depth: int) -> Json:
        result: dict[str, Json] = {}
        for key, value in entries:
            self._count(1)
            name = self._key(key, path)
            if name is None:
                continue
            if name in result:
                self._problem(f'the key "{name[:80]}" is given twice', path)
            result[name] = self.copy(value, (*path, name), depth + 1)
        return result

    def _key(self, key: Any, path: tuple[str | int, ...]) -> str | None:
        if isinstance(key, str):
            return self._text(key, path)
        if isinstance(key, bool):
            return 'true' if key else 'false'
        if isinstance(key, int | float):
            return str(self._number(key, path))
        if isinstance(key, datetime.date):
            return key.isoformat()
        self._problem(f'a key of type {type(key).__name__} is not text', path)
        return None

    def _text(self, text: str, path: tuple[str | int, ...]) -> str:
        self._length += len(text)
        if self._length > self._limits.max_bytes:
            raise exceeded('max_bytes', self._limits.max_bytes, f'the {self._source} is too large')
        if '\0' in text:
            self._problem(NUL_PROBLEM, path)
            return ''
        if not text.isascii():
            try:
                text.encode()
            except UnicodeEncodeError:
                self._problem('half of a surrogate pair is not a character', path)
                return ''
        return str(text)

    def _number(self, number: float, path: tuple[str | int, ...]) -> Json:
        try:
            if isinstance(number, float):
                return finite(number, str(number))
            # One decimal digit needs more than three bits. Printing the number to count digits could take long.
            limit = self._limits.max_number_length
            if number.bit_length() > 4 * limit:
                raise BadScalar(f'a number is too long (the limit max_number_length is {limit})')
        except BadScalar as error:
            self._problem(str(error), path)
            return None
        return number

    def _count(self, nodes: int) -> None:
        self._nodes += nodes
        if self._nodes > self._limits.max_nodes:
            raise exceeded('max_nodes', self._limits.max_nodes, f'the {self._source} has too many values')

    def _where(self, path: tuple[str | int, ...]) -> str:
        return f'{self._source}, {".".join(map(str, short(path)))}: ' if path else f'{self._source}: '

    def _problem(self, message: str, path: tuple[str | int, ...]) -> None:
        self._problems.add(self._where(path) + message)
