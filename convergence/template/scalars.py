"""The meaning of unquoted words in YAML.

As in YAML 1.1, with three differences that protect users: a time such as 12:30 stays text (YAML reads it as a number
with base 60, in quadratic time), a date stays text, and numbers that JSON cannot express are refused.
"""

from __future__ import annotations

import enum
import math
import re

from convergence.core.model import Json

WORDS: dict[str, Json] = {'': None, '~': None}
for _value, _words in ((None, 'null'), (True, 'true yes on'), (False, 'false no off')):
    for _word in _words.split():
        WORDS.update({_word: _value, _word.capitalize(): _value, _word.upper(): _value})

_INTEGER = re.compile(r'[-+]?(?:(?P<two>0b[01_]+)|(?P<sixteen>0x[0-9a-fA-F_]+)|(?P<eight>0[0-7_]+)|0|[1-9][0-9_]*)')
_FLOAT = re.compile(r'(?:[-+]?[0-9][0-9_]*\.[0-9_]*|\.[0-9][0-9_]*)(?:[eE][-+][0-9]+)?')
_JSON_FLOAT = re.compile(r'-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?[eE][-+]?[0-9]+')
_NOT_FINITE = re.compile(r'[-+]?\.(?:inf|Inf|INF)|\.(?:nan|NaN|NAN)')
_BASES = {'two': 2, 'eight': 8, 'sixteen': 16}

NUL_PROBLEM = 'the character NUL cannot be kept by every database; remove it'
TAG = 'tag:yaml.org,2002:'
"""The prefix that `!!` stands for."""

_TAGGED = {'int': (int,), 'float': (int, float), 'bool': (bool,), 'null': (type(None),)}

QUOTE_IT = 'put it in quotes if it is meant as text'


class NumberNotation(enum.Enum):
    """The notation of numbers in a document."""

    YAML = 'YAML'
    JSON = 'JSON'


class BadScalar(ValueError):
    """The word is a number that cannot be used. The text names the reason."""


def plain(text: str, max_length: int, dialect: NumberNotation) -> Json:
    """Return the value of an unquoted word.

    :param max_length: maximum number of characters of a number.
    :raises BadScalar: a number that is too long or not finite.
    """
    if text in WORDS:
        return WORDS[text]
    if text[0] not in '+-.0123456789':
        return text
    if text[0] != '0' and len(text) <= max_length and text.isascii() and text.isdigit():
        return int(text)  # Most numbers take this path.
    if match := _INTEGER.fullmatch(text):
        _check_length(text, max_length)
        base = _BASES.get(match.lastgroup or '', 10)
        digits = text.replace('_', '')
        try:
            return int(digits, base)
        except ValueError:
            return text  # "0x_" and its like
    if _FLOAT.fullmatch(text) or (dialect is NumberNotation.JSON and _JSON_FLOAT.fullmatch(text)):
        _check_length(text, max_length)
        return finite(float(text.replace('_', '')), text)
    if _NOT_FINITE.fullmatch(text):
        raise BadScalar(f'{text} is not a number that can be stored; {QUOTE_IT}')
    return text


def tagged(text: str, tag: str, max_length: int, dialect: NumberNotation) -> Json:
    """Return the value of a word with an explicit type, such as ``!!str 12``.

    :raises BadScalar: JSON lacks the type, or the word is not of that type.
    """
    name = tag.removeprefix(TAG)
    if name in ('str', '!', 'timestamp'):
        return text
    if name not in _TAGGED:
        raise BadScalar(f'the tag {tag[:80]} has no meaning here; remove it')
    value = plain(text, max_length, dialect)
    if type(value) not in _TAGGED[name]:
        raise BadScalar(f'the value is not of the type that its tag !!{name} says')
    return float(value) if name == 'float' and isinstance(value, int) else value


def finite(value: float, text: str) -> float:
    """Return the value unchanged.

    :raises BadScalar: it is infinite or not a number, which JSON cannot express.
    """
    if math.isfinite(value):
        return value
    raise BadScalar(f'{text} is not a number that can be stored; {QUOTE_IT}')


def _check_length(text: str, max_length: int) -> None:
    if len(text) > max_length:
        raise BadScalar(
            f'a number of {len(text)} characters is too long (the limit max_number_length is {max_length}); {QUOTE_IT}'
        )
