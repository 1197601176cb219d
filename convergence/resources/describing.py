"""Property schemas as JSON, for users and for manifests."""

from __future__ import annotations

import copy
from collections.abc import Callable
from dataclasses import asdict, is_dataclass
from typing import TYPE_CHECKING, Any

from convergence.core.model import Json
from convergence.resources.shapes import Kind, Shape
from convergence.resources.support import SUPPORTED, Status

if TYPE_CHECKING:
    from convergence.resources.schema import Property, PropertySchema


class SchemaWriter:
    """Writes schemas in one form.

    :param schema_of: the schema of a nested dataclass.
    :param whole: True for programs that make a schema from the JSON again: it includes everything. False for users.
    """

    def __init__(self, schema_of: Callable[[type[Any]], PropertySchema], *, whole: bool) -> None:
        self._schema_of = schema_of
        self._whole = whole

    def properties(self, schema: PropertySchema) -> dict[str, Json]:
        """The properties of a schema by name."""
        return {
            name: self._property(declared)
            for name, declared in schema.properties.items()
            if self._whole or declared.support.status is not Status.HIDDEN
        }

    def _property(self, declared: Property) -> dict[str, Json]:
        described: dict[str, Json] = {
            'type': declared.shape.kind.value,
            'required': declared.required,
            'update_allowed': declared.update_allowed,
            'immutable': declared.immutable,
        }
        if declared.declaration.description:
            described['description'] = declared.declaration.description
        if declared.default is not None:
            described['default'] = plain(declared.default)
        if declared.constraints:
            described['constraints'] = [constraint.document() for constraint in declared.constraints]
        if self._whole and declared.support != SUPPORTED:
            described['support_status'] = declared.support.document()
        if self._whole and declared.declaration.secret:
            described['secret'] = True
        return described | self._shape(declared.shape)

    def _shape(self, shape: Shape) -> dict[str, Json]:
        """Describe the inner values, and add ``nullable`` if null is a value."""
        told: dict[str, Json] = {}
        if self._whole and shape.nullable and shape.kind is not Kind.ANY:
            told['nullable'] = True
        if shape.fields is not None:
            told['schema'] = self.properties(self._schema_of(shape.fields))
        elif shape.items is not None and (self._whole or shape.items.kind is not Kind.ANY):
            item: dict[str, Json] = {'type': shape.items.kind.value, 'required': False}
            if not self._whole:
                # An item is changed with the list or map that it is in; the field says so of each.
                item |= {'update_allowed': False, 'immutable': False}
            told['schema'] = {'*': item | self._shape(shape.items)}
        return told


def plain(default: Any) -> Json:
    """Return a copy of a default as JSON."""
    if is_dataclass(default) and not isinstance(default, type):
        return asdict(default)
    copied: Json = copy.deepcopy(default)
    return copied
