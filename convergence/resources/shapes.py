"""Types of property values: derived from annotations, with the field's coercions.

A template's author writes ``port: '8080'`` or ``enabled: 'true'``; that is accepted where the meaning is beyond
doubt. Messages never contain the value: it may be a secret.
"""

from __future__ import annotations

import inspect
import math
import re
import sys
import types
import typing
from collections.abc import Mapping
from dataclasses import dataclass, is_dataclass
from enum import StrEnum
from typing import Any, TypeAlias, Union

from convergence.core.model import Json
from convergence.documents import AnyJson
from convergence.values import quickly_made

Annotation: TypeAlias = Any
"""The annotation of a field: the type of a property or of an attribute."""
FieldDeclaration: TypeAlias = Any
"""A dataclass field, typed so that it may stand behind any annotation."""
DeclaredProperties: TypeAlias = Any
"""An instance of the dataclass that a type declares, the `Properties` of its class."""


class Kind(StrEnum):
    """The kind of a value, in the field's words."""

    STRING = 'string'
    INTEGER = 'integer'
    NUMBER = 'number'
    BOOLEAN = 'boolean'
    LIST = 'list'
    MAP = 'map'
    ANY = 'any'


class WrongType(Exception):
    """A value cannot be read as the required kind. The text is a sentence without the value."""


@quickly_made
@dataclass(frozen=True, slots=True)
class Shape:
    """The type of a value.

    :param items: for lists and for maps with free keys: what each item is.
    :param fields: for maps with known keys: the dataclass that declares them.
    :param nullable: whether the annotation admits None.
    """

    kind: Kind
    items: Shape | None = None
    fields: type[Any] | None = None
    nullable: bool = False


_SIMPLE: dict[Any, Kind] = {
    str: Kind.STRING,
    int: Kind.INTEGER,
    float: Kind.NUMBER,
    bool: Kind.BOOLEAN,
    list: Kind.LIST,
    dict: Kind.MAP,
    Any: Kind.ANY,
    object: Kind.ANY,
    Json: Kind.ANY,
}


def annotations_of(declared: type[Any]) -> dict[str, Any]:
    """Return the evaluated annotations of a dataclass, those of its bases included.

    :raises TypeError: an annotation uses a name that its module does not have.
    """
    found: dict[str, Any] = {}
    for base in reversed(declared.__mro__):
        module = sys.modules.get(base.__module__)
        for name, annotation in inspect.get_annotations(base).items():
            try:
                found[name] = _evaluated(annotation, vars(module) if module else {}, dict(vars(base)))
            except NameError as error:
                raise TypeError(
                    f'{declared.__qualname__}: {error}; types used in annotations must stand at the top of a module'
                ) from error
    return found


def _evaluated(annotation: Any, module: dict[str, Any], declared: dict[str, Any]) -> Annotation:
    # The source text of an imported module. `Json` is itself a text, because it contains itself: it stands for
    # itself and its contents are not checked.
    if not isinstance(annotation, str) or annotation == Json:
        return annotation
    return eval(annotation, module, declared)


def shape_of(annotation: Any) -> Shape:
    """The shape that an annotation means.

    :raises TypeError: the annotation is none of str, int, float, bool, list[T], dict[str, T], a dataclass,
        `Json`, or one of these with None.
    """
    if typing.get_origin(annotation) in (Union, types.UnionType):
        return _shape_of_union(annotation)
    if (isinstance(annotation, (str, type)) or annotation is Any) and annotation in _SIMPLE:
        return Shape(_SIMPLE[annotation], nullable=_SIMPLE[annotation] is Kind.ANY)
    if isinstance(annotation, type) and is_dataclass(annotation):
        return Shape(Kind.MAP, fields=annotation)
    origin, arguments = typing.get_origin(annotation), typing.get_args(annotation)
    if origin is list and len(arguments) == 1:
        return Shape(Kind.LIST, items=shape_of(arguments[0]))
    if origin is dict and len(arguments) == 2 and arguments[0] is str:
        return Shape(Kind.MAP, items=shape_of(arguments[1]))
    raise TypeError(
        f'{annotation!r} is no type of a property; use str, int, float, bool, list[T], dict[str, T], '
        'a dataclass, Json, or one of these | None'
    )


def _shape_of_union(annotation: Any) -> Shape:
    members = [member for member in typing.get_args(annotation) if member is not type(None)]
    nullable = len(members) < len(typing.get_args(annotation))
    if set(members) == {int, float}:
        return Shape(Kind.NUMBER, nullable=nullable)
    if len(members) != 1:
        raise TypeError(f'{annotation!r}: a property has one type, or one type and None')
    inner = shape_of(members[0])
    return Shape(inner.kind, inner.items, inner.fields, nullable=nullable)


def coerce(kind: Kind, value: Any) -> AnyJson:
    """Return `value` as the required kind. Items of lists and maps are not checked.

    :raises WrongType: the value cannot be read as that kind.
    """
    if value is None and kind is not Kind.ANY:
        return _EMPTY[kind]()
    return _READERS[kind](value)


_EMPTY: dict[Kind, Any] = {
    Kind.STRING: str,
    Kind.INTEGER: int,
    Kind.NUMBER: int,
    Kind.BOOLEAN: bool,
    Kind.LIST: list,
    Kind.MAP: dict,
}


def _string(value: Any) -> str:
    if isinstance(value, str):
        return value
    if isinstance(value, (bool, int, float)):
        return str(value)
    raise WrongType(f'the value must be a string, not {named(value)}')


def _integer(value: Any) -> int:
    number = _number(value, wanted='an integer')
    if isinstance(number, float):
        if not number.is_integer():
            raise WrongType('the value must be an integer, not a fraction')
        return int(number)
    return number


def _number(value: Any, wanted: str = 'a number') -> int | float:
    if isinstance(value, bool) or not isinstance(value, (int, float, str)):
        raise WrongType(f'the value must be {wanted}, not {named(value)}')
    number = _number_in(value.strip(), wanted) if isinstance(value, str) else value
    if isinstance(number, float) and not math.isfinite(number):
        raise WrongType(f'the value must be {wanted} and finite')
    return number


def _number_in(text: str, wanted: str) -> int | float:
    # Bounded, because the time to read a decimal integer grows with the square of its length.
    if re.fullmatch(r'[+-]?[0-9]{1,400}', text):
        return int(text)
    if re.fullmatch(r'[+-]?([0-9]{1,400}\.?[0-9]{0,400}|\.[0-9]{1,400})([eE][+-]?[0-9]{1,4})?', text):
        return float(text)
    raise WrongType(f'the value must be {wanted}, not a text')


def _boolean(value: Any) -> bool:
    if isinstance(value, bool):
        return value
    if isinstance(value, str) and value.lower() in ('true', 'false'):
        return value.lower() == 'true'
    raise WrongType(f'the value must be true or false, not {named(value)}')


def _list(value: Any) -> list[Any]:
    if isinstance(value, (list, tuple)):
        return list(value)
    raise WrongType(f'the value must be a list, not {named(value)}')


def _map(value: Any) -> dict[str, Any]:
    if isinstance(value, Mapping):
        return dict(value)
    raise WrongType(f'the value must be a map, not {named(value)}')


def _any(value: Any) -> AnyJson:
    return value


_READERS: dict[Kind, Any] = {
    Kind.STRING: _string,
    Kind.INTEGER: _integer,
    Kind.NUMBER: _number,
    Kind.BOOLEAN: _boolean,
    Kind.LIST: _list,
    Kind.MAP: _map,
    Kind.ANY: _any,
}


def named(value: Any) -> str:
    """Return the kind of a value in words, without the value."""
    names: list[tuple[Any, str]] = [
        (bool, 'a boolean'),
        ((int, float), 'a number'),
        (str, 'a text'),
        ((list, tuple), 'a list'),
        (Mapping, 'a map'),
    ]
    return next((name for type_, name in names if isinstance(value, type_)), type(value).__name__)
