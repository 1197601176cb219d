"""Changes documents: the text, character by character and line by line, and what it means, value by value.

All chance comes from one seed, so a run can be repeated.
"""

from __future__ import annotations

import copy
import json
import random
from collections.abc import Sequence
from typing import Any

import yaml

PIECES = (
    *'{}[]:,&*|>"\'#?\t\n\\-$~<%',
    '\r\n',
    '---\n',
    '...\n',
    '<<: ',
    '&x ',
    '*x',
    '!!str ',
    '!!binary ',
    '!!python/object:os.system ',
    '\ufeff',
    '\x00',
    '\x85',
    '\u2028',
    '\ud800',
    '\u202e',
    '\U0001f600',
    '0x',
    '1e999',
    '.inf',
    '.nan',
    '12:30:45',
    '2016-10-14',
    '9' * 70,
    'null',
    'yes',
    '{get_attr: [first, output]}',
    '{get_resource: first}',
    '{if: [',
    '$fn',
    '[' * 70,
    '{a: ' * 70,
)
STRANGE: tuple[Any, ...] = (
    None,
    True,
    False,
    0,
    -1,
    1,
    2**31,
    2**63,
    -(2**63) - 1,
    10**60,
    10**400,
    0.5,
    1e308,
    -0.0,
    '',
    ' ',
    '0',
    '-1',
    'null',
    'true',
    '******',
    'a' * 300,
    'a' * 70_000,
    'é☃',
    '\u202e',
    '\ud800',
    '\x00',
    '\n\x1b[31m',
    '../../etc/passwd',
    'file:///etc/passwd',
    'http://127.0.0.1/',
    '%s%n{0}{__class__}',
    '$.data',
    "'; DROP TABLE stack; --",
    [],
    {},
    [[]],
    {'': ''},
    [None],
    {'$fn': ['get_attr', ['first', 'output']]},
    {'get_param': 'secret'},
    {'get_attr': ['first', 'output']},
    {'get_resource': 'nothing'},
    {'get_file': 'x'},
    {'yaql': {'expression': '$.data', 'data': 1}},
    {'repeat': {'template': 'a', 'for_each': {'a': [1, 2]}}},
    {'str_replace': {'template': 'a', 'params': {'a': 'aa'}}},
    {'if': ['c', 1, 2]},
    {'a': {'b': {'c': [1, {'d': None}]}}},
)
PASSES = 3
"""The most changes that are made to one document."""
DEEP = (10, 70, 300, 900, 2_000)


_DEEP_MARK = '@deep {}@'


def encoded(document: Any, *, ascii_only: bool = True) -> str:
    """A document of `Mutator.document` as JSON; only now does it get values that no recursion could write."""
    text = json.dumps(document, ensure_ascii=ascii_only, default=str)
    for levels in DEEP:
        mark = _DEEP_MARK.format(levels)
        if mark in text:
            half = levels // 2
            text = text.replace(f'"{mark}"', '[{"a":' * half + '0' + '}]' * half)
    return text


class Mutator:
    """Makes new documents of old ones.

    :param seed: of all chance.
    """

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)

    def text(self, seeds: Sequence[str]) -> str:
        """A text made of one of `seeds`: with its structure changed, or its characters, or both."""
        text = self.random.choice(seeds)
        way = self.random.random()
        if way < 0.6:
            text = self._by_structure(text)
        if way > 0.5:
            for _ in range(self.random.randint(1, PASSES)):
                text = self._by_characters(text, seeds)
        return text

    def document(self, document: Any) -> Any:
        """A document in which some values or keys are others. See `encoded`."""
        result = copy.deepcopy(document)
        for _ in range(self.random.randint(1, PASSES)):
            result = self._changed(result)
        return result

    def strange(self) -> Any:
        """A value that is seldom meant."""
        if self.random.random() < 0.05:
            return _DEEP_MARK.format(self.random.choice(DEEP))
        return copy.deepcopy(self.random.choice(STRANGE))

    # --- values -----------------------------------------------------------------------------------------------

    def _by_structure(self, text: str) -> str:
        try:
            document = yaml.safe_load(text)
        except (yaml.YAMLError, RecursionError, ValueError):
            return text
        try:
            return encoded(self.document(document), ascii_only=self.random.random() < 0.5)
        except (ValueError, TypeError, RecursionError):
            return text

    def _changed(self, document: Any) -> Any:
        places = list(_places(document))
        if not places:
            return self.strange()
        container, key = self.random.choice(places)
        way = self.random.random()
        if way < 0.45:
            container[key] = self.strange()
        elif way < 0.6:
            del container[key]
        elif way < 0.8:
            # What stands somewhere else: the right kind of thing in the wrong place.
            other, theirs = self.random.choice(places)
            if theirs in other if isinstance(other, dict) else theirs < len(other):
                value = copy.deepcopy(other[theirs])
                container[key] = value
        elif isinstance(container, dict):
            name = self.strange()
            container[name if isinstance(name, str) else str(name)[:80]] = container.pop(key)
        else:
            container.extend(copy.deepcopy(container[key]) for _ in range(self.random.choice((1, 3, 50))))
        return document

    # --- characters -------------------------------------------------------------------------------------------

    def _by_characters(self, text: str, seeds: Sequence[str]) -> str:
        choose = self.random
        begin = choose.randint(0, len(text))
        end = min(len(text), begin + choose.choice((0, 1, 2, 5, 30, 200)))
        way = choose.randint(0, 5)
        if way == 0:
            return text[:begin] + text[end:]
        if way == 1:
            return text[:begin] + text[begin:end] * choose.choice((2, 3, 100)) + text[end:]
        if way == 2:
            other = choose.choice(seeds)
            start = choose.randint(0, len(other))
            return text[:begin] + other[start : start + choose.choice((5, 50, 500))] + text[end:]
        if way == 3:
            lines = text.split('\n')
            first = choose.randint(0, len(lines))
            return '\n'.join(lines[:first] + lines[first + 1 :] + lines[first : first + 1])
        if way == 4:
            return text[:begin] + chr(choose.choice((choose.randint(0, 255), choose.randint(0, 0x10FFFF)))) + text[end:]
        return text[:begin] + choose.choice(PIECES) + text[end:]


def _places(document: Any) -> Any:
    """Every container of a document with each of its keys."""
    pending = [document] if isinstance(document, dict | list) else []
    while pending:
        container = pending.pop()
        keys = list(container) if isinstance(container, dict) else range(len(container))
        for key in keys:
            yield container, key
            if isinstance(container[key], dict | list):
                pending.append(container[key])
