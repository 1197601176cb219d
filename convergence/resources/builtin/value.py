"""``OS::Heat::Value``: gives a name to a value."""

# ruff: noqa: RUF009 - prop() and attr() make dataclass fields, like field()
from __future__ import annotations

import copy
import json
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from typing_extensions import override

from convergence.core.model import Json
from convergence.resources.attributes import attr
from convergence.resources.builtin.waiting import physical_name
from convergence.resources.constraints import AllowedValues
from convergence.resources.contract import Answer, Call, Done, ResourceType
from convergence.resources.schema import or_null, prop
from convergence.resources.shapes import Kind, WrongType, coerce
from convergence.resources.support import since

TYPES = ('string', 'number', 'comma_delimited_list', 'json', 'boolean')
TRUE = ('t', 'true', 'on', 'y', 'yes', '1')
FALSE = ('f', 'false', 'off', 'n', 'no', '0')


@dataclass(frozen=True)
class ValueProperties:
    """See the descriptions of the fields."""

    value: Json = or_null(prop(update_allowed=True, description='The value.'))
    type: str | None = prop(
        None, update_allowed=True, constraints=[AllowedValues(TYPES)], description='What the value is read as.'
    )

    def __post_init__(self) -> None:
        try:
            self.typed()
        except WrongType as error:
            raise ValueError(f'value cannot be read as {self.type}: {error}') from error

    def typed(self) -> Json:
        """The value, read as its type."""
        if self.type is None:
            return self.value
        return _READERS[self.type](self.value) if self.value is not None else copy.copy(_EMPTY[self.type])


@dataclass(frozen=True)
class ValueAttributes:
    """The attributes of a value."""

    value: Json = attr('The value, read as its type.', of=('value', 'type'))


class Value(ResourceType[ValueProperties]):
    """Gives a name to a value that other resources and outputs use."""

    support = since('7.0.0')
    Properties = ValueProperties
    Attributes = ValueAttributes
    token_enforced = True  # Nothing real is made.
    create_ambiguity_s = 0.0

    @override
    def create(self, call: Call[ValueProperties]) -> Answer:
        """Nothing to do but to have a name."""
        return Done(physical_name(call))

    @override
    def attribute(self, call: Call[ValueProperties], name: str) -> Json:
        """The value, read as its type."""
        return call.properties.typed()


def _boolean(value: Any) -> Json:
    if isinstance(value, bool):
        return value
    word = str(value).lower() if isinstance(value, (str, int)) else ''
    if word in TRUE:
        return True
    if word in FALSE:
        return False
    raise WrongType(f'the value must be one of {", ".join(TRUE + FALSE)}')


def _comma_delimited_list(value: Any) -> Json:
    if isinstance(value, str):
        return list(value.split(',')) if value else []
    return [coerce(Kind.STRING, item) for item in coerce(Kind.LIST, value)]


def _json(value: Any) -> Json:
    if not isinstance(value, str):
        if isinstance(value, (dict, list)):
            return value
        raise WrongType('the value must be a map or a list')
    try:
        return _json(json.loads(value)) if value else {}
    except (ValueError, RecursionError) as error:
        raise WrongType('the text is not JSON') from error


def _string(value: Any) -> Json:
    return json.dumps(value) if isinstance(value, (dict, list)) else str(coerce(Kind.STRING, value))


def _number(value: Any) -> Json:
    number: int | float = coerce(Kind.NUMBER, value)
    return number


_EMPTY: dict[str, Json] = {'string': '', 'number': 0, 'comma_delimited_list': [], 'json': {}, 'boolean': False}
"""The value for null, by type."""
_READERS: dict[str, Callable[[Any], Json]] = {
    'string': _string,
    'number': _number,
    'comma_delimited_list': _comma_delimited_list,
    'json': _json,
    'boolean': _boolean,
}
