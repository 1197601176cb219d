"""JSON texts from outside, as values that everything behind can go through and keep. Pure."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterable
from typing import Any, NoReturn, TypeAlias

Document: TypeAlias = dict[str, Any]
"""A JSON object."""
AnyJson: TypeAlias = Any
"""A JSON value that is passed on unchanged, or whose shape the receiver knows."""
DEEPEST = 200
"""Maps and lists inside of each other: three times what a template may have, and far less than stops Python."""
MOST_DIGITS = 300
"""Of a whole number: fewer than those of the largest that a float can be."""
_NUL = re.compile(r'(?<!\\)(?:\\\\)*\\u0000')


def parse(text: str) -> AnyJson:
    """The value of a JSON text.

    :raises ValueError: it is none, is nested too deeply, or holds what cannot be kept; the text says what, for example
        ``is nested too deeply``, to stand after the name of the document.
    """
    try:
        value = json.loads(text, parse_constant=_refuse, parse_float=_fraction, parse_int=_whole)
    except RecursionError:
        raise _too_deep() from None
    except TooLarge as error:
        raise ValueError(str(error)) from None
    except ValueError as error:
        raise ValueError(f'is not JSON: {error}') from None
    _check_depth(value)
    try:
        json.dumps(value, ensure_ascii=False).encode()
    except UnicodeEncodeError:
        raise ValueError('has half a character (a lone surrogate)') from None
    if '\\u0000' in text and _NUL.search(text):
        raise ValueError('has a NUL character')
    return value


def _check_depth(value: Any) -> None:
    level = _containers([value])
    for _ in range(DEEPEST):
        level = _containers(inner for each in level for inner in (each.values() if isinstance(each, dict) else each))
        if not level:
            return
    raise _too_deep()


def _containers(values: Iterable[Any]) -> list[Any]:
    return [value for value in values if isinstance(value, dict | list)]


def _too_deep() -> ValueError:
    return ValueError(f'is nested too deeply: maps and lists may be inside of each other {DEEPEST} times')


class TooLarge(ValueError):
    """A number that nothing behind could keep, or that would take long to read."""


def _whole(digits: str) -> int:
    if len(digits) > MOST_DIGITS:
        raise TooLarge(f'has a number of {len(digits)} digits; {MOST_DIGITS} are allowed')
    return int(digits)


def _fraction(digits: str) -> float:
    number = float(digits)
    if math.isinf(number):
        raise TooLarge('has a number that is too large: 1e308 is the greatest power of ten')
    return number


def _refuse(word: str) -> NoReturn:
    raise ValueError(f'{word} is not JSON')
