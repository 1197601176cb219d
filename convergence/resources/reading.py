"""Reads the values of a template through a property schema and notes everything that is wrong on the way."""

from __future__ import annotations

import copy
import difflib
from collections.abc import Callable, Iterable, Mapping
from dataclasses import asdict, dataclass, is_dataclass
from enum import Enum, auto
from typing import TYPE_CHECKING, Any

from convergence.core.model import Path
from convergence.resources.shapes import DeclaredProperties, Kind, Shape, WrongType, coerce
from convergence.template import Previewed

if TYPE_CHECKING:
    from convergence.resources.schema import Property, PropertySchema


class Strictness(Enum):
    """The treatment of a value that cannot be read: an error, the default instead, or the value unchanged."""

    STRICT = auto()
    LENIENT = auto()
    VERBATIM = auto()


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing that is wrong, and the path of the property."""

    path: Path
    message: str


class PropertyReader:
    """One reading of properties. `findings` and `met_unknown` hold its results.

    :param schema_of: the schema of a nested dataclass.
    :param unknown: stands for a value that is not known yet; it stays in its place.
    """

    def __init__(
        self, *, schema_of: Callable[[type[Any]], PropertySchema], unknown: object, strictness: Strictness
    ) -> None:
        self.findings: list[Finding] = []
        self.met_unknown = False
        self._schema_of = schema_of
        self._unknown = unknown
        self._strictness = strictness

    def mapping(self, schema: PropertySchema, values: Mapping[str, Any], path: Path) -> dict[str, Any]:
        """`values` as canonical JSON, by property name, with defaults. Without the properties that must not be."""
        canonical: dict[str, Any] = {}
        for name, declared in schema.properties.items():
            is_null = name in values and values[name] is None
            if is_null and declared.declaration.takes_null:
                canonical[name] = None
            else:
                canonical[name] = self._property(declared, values.get(name), (*path, name))
        for name, value in values.items():
            if name in schema.properties:
                continue
            if schema.rest is not None or self._strictness is Strictness.VERBATIM:
                canonical[name] = self._noted(value)
            else:
                suggestion = did_you_mean(name, schema.properties)
                self._find((*path, name), f'Unknown Property {dotted((*path, name))}{suggestion}')
        return canonical

    def instance(self, schema: PropertySchema, canonical: Mapping[str, Any], path: Path) -> DeclaredProperties:
        """The dataclass made from canonical values; None when its own check refused them.

        A lenient reading goes around that check.
        """
        arguments = {
            declared.field: self._built(declared.shape, canonical[name], (*path, name))
            for name, declared in schema.properties.items()
        }
        if schema.rest is not None:
            arguments[schema.rest] = {name: value for name, value in canonical.items() if name not in schema.properties}
        try:
            return schema.declared(**arguments)
        except (ValueError, TypeError) as error:
            where = f'Property {dotted(path)}: ' if path else ''
            self._find(path, f'{where}{error}')
        if self._strictness is not Strictness.LENIENT:
            return None
        instance = object.__new__(schema.declared)
        for name, value in arguments.items():
            object.__setattr__(instance, name, value)
        return instance

    def _property(self, declared: Property, value: Any, path: Path) -> Previewed:
        if value is None:
            if declared.required:
                self._find(path, f'Property {dotted(path)} not assigned')
                return coerce(declared.shape.kind, None) if self._strictness is Strictness.LENIENT else None
            return self._default(declared)
        count = len(self.findings)
        read = self._value(declared.shape, value, path)
        if len(self.findings) == count and not self._is_unknown(read):
            for constraint in declared.constraints:
                problem = constraint.problem(read)
                if problem:
                    self._find(path, f'Property {dotted(path)}: {problem}')
        if len(self.findings) > count and self._strictness is Strictness.LENIENT:
            return coerce(declared.shape.kind, None) if declared.required else self._default(declared)
        return read

    def _default(self, declared: Property) -> Previewed:
        default = asdict(declared.default) if _is_instance(declared.default) else copy.deepcopy(declared.default)
        if default is None or declared.shape.fields is None:
            return default
        return self.mapping(self._schema_of(declared.shape.fields), default, (declared.name,))

    def _value(self, shape: Shape, value: Any, path: Path) -> Previewed:
        if value is self._unknown:
            self.met_unknown = True
            return value
        if value is None and shape.nullable:
            return None
        if shape.kind is Kind.ANY:
            return self._noted(value)
        try:
            read = coerce(shape.kind, value)
        except WrongType as error:
            self._find(path, f'Property {dotted(path)}: {error}')
            return value if self._strictness is Strictness.VERBATIM else coerce(shape.kind, None)
        if isinstance(read, dict) and not all(isinstance(key, str) for key in read):
            self._find(path, f'Property {dotted(path)}: the keys of a map must be texts')
            return {}
        return self._inner(shape, read, path)

    def _inner(self, shape: Shape, read: Any, path: Path) -> Previewed:
        if shape.fields is not None:
            return self.mapping(self._schema_of(shape.fields), read, path)
        if isinstance(read, list):
            items = shape.items or Shape(Kind.ANY, nullable=True)
            return [self._value(items, item, (*path, index)) for index, item in enumerate(read)]
        if isinstance(read, dict):
            items = shape.items or Shape(Kind.ANY, nullable=True)
            return {key: self._value(items, item, (*path, key)) for key, item in read.items()}
        return read

    def _built(self, shape: Shape, value: Any, path: Path) -> Previewed:
        if value is None:
            return None
        if shape.fields is not None:
            return self.instance(self._schema_of(shape.fields), value, path)
        if shape.items is not None and isinstance(value, list):
            return [self._built(shape.items, item, (*path, index)) for index, item in enumerate(value)]
        if shape.items is not None and isinstance(value, dict):
            return {key: self._built(shape.items, item, (*path, key)) for key, item in value.items()}
        return value

    def _noted(self, value: Any) -> Previewed:
        """Return `value`, and note if a part of it is unknown."""
        self.met_unknown = self.met_unknown or self._is_unknown(value)
        return value

    def _is_unknown(self, value: Any) -> bool:
        if isinstance(value, dict):
            return any(self._is_unknown(item) for item in value.values())
        if isinstance(value, list):
            return any(self._is_unknown(item) for item in value)
        return value is self._unknown

    def _find(self, path: Path, message: str) -> None:
        self.findings.append(Finding(path, message))


def dotted(path: Path) -> str:
    """A path as people write it: ``rules.0.port``."""
    return '.'.join(str(element) for element in path)


def did_you_mean(name: object, known: Iterable[str]) -> str:
    """``; did you mean x?`` where a known name is close to `name`, otherwise an empty text."""
    close = difflib.get_close_matches(str(name), list(known), n=1)
    return f'; did you mean {close[0]}?' if close else ''


def _is_instance(value: Any) -> bool:
    return is_dataclass(value) and not isinstance(value, type)
