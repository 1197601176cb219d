"""Converts the value of a parameter to its type."""

from __future__ import annotations

import enum
import re

from convergence.core.model import Json
from convergence.template.limits import Limits
from convergence.template.problems import Problems
from convergence.template.sources import Copier, parse_json


class ParameterType(enum.StrEnum):
    """The type of a parameter."""

    STRING = 'string'
    NUMBER = 'number'
    COMMA_DELIMITED_LIST = 'comma_delimited_list'
    JSON = 'json'
    BOOLEAN = 'boolean'


_TRUE = ('t', 'true', 'on', 'y', 'yes', '1')
_FALSE = ('f', 'false', 'off', 'n', 'no', '0')
_INTEGER = re.compile(r'[-+]?[0-9]+')
_FLOAT = re.compile(r'[-+]?(?:[0-9]+\.[0-9]*|\.[0-9]+|[0-9]+(?=[eE]))(?:[eE][-+]?[0-9]+)?')


class BadValue(ValueError):
    """The value does not fit the type. The text does not repeat the value, which may be secret."""


def convert(value: Json, type_: ParameterType, limits: Limits) -> Json:
    """Return the typed value.

    :raises BadValue: it does not fit the type.
    :raises RequestLimitExceeded: JSON text that is too large or too deep.
    """
    if type_ is ParameterType.STRING:
        return _string(value)
    if type_ is ParameterType.NUMBER:
        return number(value, limits)
    if type_ is ParameterType.BOOLEAN:
        return _boolean(value)
    if type_ is ParameterType.COMMA_DELIMITED_LIST:
        return _list(value)
    return _json(value, limits)


def number(value: Json, limits: Limits) -> int | float:
    """Return a number, which may be written as text.

    :raises BadValue: it is not a number.
    """
    if isinstance(value, int | float) and not isinstance(value, bool):
        return value
    if isinstance(value, str):
        text = value.strip()
        if len(text) > limits.max_number_length:
            raise BadValue(f'the number is too long (the limit max_number_length is {limits.max_number_length})')
        if _INTEGER.fullmatch(text):
            return int(text)
        if _FLOAT.fullmatch(text) and abs(found := float(text)) != float('inf'):
            return found
    raise BadValue('the value is not a number')


def _string(value: Json) -> str:
    if isinstance(value, dict | list):
        raise BadValue('the value must be a string, not a map or a list')
    return str(value)


def _boolean(value: Json) -> bool:
    if isinstance(value, bool):
        return value
    if isinstance(value, str | int | float):
        text = str(value).strip().lower()
        if text in _TRUE:
            return True
        if text in _FALSE:
            return False
    raise BadValue(f'the value is not a boolean; write one of {", ".join(_TRUE + _FALSE)}')


def _list(value: Json) -> list[Json]:
    if isinstance(value, list):
        # [80, 443] means the same as '80,443', and functions join only text.
        return [str(item) if isinstance(item, int | float) else item for item in value]
    if isinstance(value, dict):
        raise BadValue('the value must be a list, or text with commas, not a map')
    text = _string(value)
    return [*text.split(',')] if text else []


def _json(value: Json, limits: Limits) -> Json:
    if not isinstance(value, str) or not value:
        return value  # Many templates use an empty text for "no value".
    try:
        parsed = parse_json(value, limits)
    except ValueError:
        raise BadValue('the value must be a map, a list, or JSON text; this text is not JSON') from None
    problems = Problems()
    copy = Copier('JSON text', limits, problems).copy(parsed)
    if problems:
        raise BadValue('the JSON text has duplicate keys, or values that cannot be stored')
    return copy
