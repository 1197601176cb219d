"""Properties as plain values again: what templates say, instead of the dataclass that a type gets."""

from __future__ import annotations

from dataclasses import is_dataclass
from typing import Any

from convergence.documents import AnyJson
from convergence.resources.schema import PropertySchema


def named(properties: Any, *, given: bool = False) -> dict[str, Any]:
    """Return the values of properties, by their names in templates, down to the innermost map: plain dicts and lists.

    :param given: True to leave out null, by which templates, and defaults, mean "not given". Null inside of a value of
        any form stays.
    """
    schema = PropertySchema.of(type(properties))
    values = {name: _plain(getattr(properties, declared.field), given) for name, declared in schema.properties.items()}
    values |= _plain(getattr(properties, schema.rest), given) if schema.rest is not None else {}
    return {name: value for name, value in values.items() if value is not None} if given else values


def _plain(value: Any, given: bool) -> AnyJson:
    if is_dataclass(value):
        return named(value, given=given)
    if isinstance(value, dict):
        return {key: _plain(inner, given) for key, inner in value.items()}
    if isinstance(value, list):
        return [_plain(inner, given) for inner in value]
    return value
