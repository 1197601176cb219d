"""Property schemas: a frozen dataclass declares the properties of a resource type.

A field is declared with `prop`; its annotation is its type. `PropertySchema.of` reads the dataclass, checks the values
in a template against it and turns the template's plain JSON into an instance.

The engine stores the template's mapping, as JSON. It reads two such mappings through the schema before it compares
them: with defaults filled in and texts turned into numbers. So ``port: 80`` and ``port: '80'`` are no change, nor is a
default that a template writes out.
"""

from __future__ import annotations

import copy
import json
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import MISSING, dataclass, field, fields, is_dataclass
from enum import Enum
from functools import cached_property
from typing import Any

from convergence import secrecy
from convergence.core.model import Json, Path
from convergence.errors import Place, Problem, StackValidationFailed
from convergence.resources.constraints import SELF_CONTAINED, Constraint
from convergence.resources.describing import SchemaWriter
from convergence.resources.reading import Finding, PropertyReader, Strictness, dotted
from convergence.resources.shapes import DeclaredProperties, FieldDeclaration, Shape, annotations_of, shape_of
from convergence.resources.support import SUPPORTED, SupportStatus
from convergence.resources.translation import Rule, translated
from convergence.template import UNKNOWN, EvaluationFailed, preview
from convergence.values import replace

_DECLARATION = 'convergence.property'
_SCHEMA = '__convergence_schema__'

HIDDEN = 'its value is not allowed; it is computed from a hidden one and not shown.'
Locate = Callable[..., Place | None]
"""Gives the place of the property whose path (names and list positions) is given; None if it is not known."""


class _Nothing(Enum):
    DEFAULT = 'no default'


@dataclass(frozen=True, slots=True)
class _PropertyDeclaration:
    """The arguments of `prop`, stored in the metadata of the dataclass field."""

    default: Any
    description: str
    update_allowed: bool
    immutable: bool
    constraints: tuple[Constraint, ...]
    name: str | None
    takes_the_rest: bool = False
    support: SupportStatus = SUPPORTED
    secret: bool = False
    takes_null: bool = False


def prop(
    default: Any = _Nothing.DEFAULT,
    *,
    description: str = '',
    update_allowed: bool = False,
    immutable: bool = False,
    constraints: Sequence[Constraint] = (),
    name: str | None = None,
    support: SupportStatus = SUPPORTED,
) -> FieldDeclaration:
    """Declare a property: the right-hand side of a field of a frozen dataclass.

    :param default: the value where the template has none. Without a default the property is required.
    :param update_allowed: a change is made in place; otherwise it replaces the resource.
    :param immutable: a change is refused.
    :param constraints: see `convergence.resources.constraints`.
    :param name: the name in templates, where that is not the field's name (``from``, ``Ref``).
    :param support: how far users may rely on it.
    """
    declaration = _PropertyDeclaration(
        default, description, update_allowed, immutable, tuple(constraints), name, support=support
    )
    return _field(declaration)


def secret(declared: Any) -> FieldDeclaration:
    """A property, made with `prop`, whose value is masked wherever it turns up in errors, events and log lines."""
    return _field(replace(declared.metadata[_DECLARATION], secret=True))


def or_null(declared: Any) -> FieldDeclaration:
    """A property, made with `prop`, that must be given, and may be null. For others null means that none is given."""
    return _field(replace(declared.metadata[_DECLARATION], takes_null=True))


def remaining(*, description: str = '') -> FieldDeclaration:
    """Declare a field of type ``dict[str, Json]`` that takes all properties which no other field declares.

    They may be changed in place.
    """
    return _field(_PropertyDeclaration({}, description, True, False, (), None, takes_the_rest=True))


def _field(declaration: _PropertyDeclaration) -> FieldDeclaration:
    metadata = {_DECLARATION: declaration}
    default = declaration.default
    if default is _Nothing.DEFAULT:
        return field(kw_only=True, metadata=metadata)
    return field(kw_only=True, default_factory=lambda: copy.deepcopy(default), metadata=metadata)


@dataclass(frozen=True, slots=True)
class Property:
    """One property as the schema knows it.

    :param name: its name in templates; `field` is its name in the dataclass.
    """

    name: str
    field: str
    shape: Shape
    default: Any
    required: bool
    declaration: _PropertyDeclaration

    @property
    def constraints(self) -> tuple[Constraint, ...]:
        """The constraints on the value besides its type."""
        return self.declaration.constraints

    @property
    def update_allowed(self) -> bool:
        """True if a change is made in place."""
        return self.declaration.update_allowed

    @property
    def immutable(self) -> bool:
        """True if a change is refused."""
        return self.declaration.immutable

    @property
    def support(self) -> SupportStatus:
        """The support status."""
        return self.declaration.support


class PropertySchema:
    """The properties of one dataclass. Made with `PropertySchema.of`.

    :param properties: by their names in templates, in the order of the dataclass.
    :param rest: the field that takes all other properties, or None: others are refused.
    :param rules: what names of the past mean.
    """

    def __init__(
        self, declared: type[Any], properties: Mapping[str, Property], rest: str | None, rules: Sequence[Rule] = ()
    ) -> None:
        self.declared = declared
        self.properties = properties
        self.rest = rest
        self.rules = rules

    @staticmethod
    def of(declared: type[Any]) -> PropertySchema:
        """The schema of a dataclass.

        :raises TypeError: it is not a frozen dataclass, or a field's annotation is no property type.
        """
        return _schema_of(declared)

    def parse(self, mapping: Mapping[str, Any], strictness: Strictness = Strictness.STRICT) -> DeclaredProperties:
        """Return an instance of the dataclass from the plain values of a template, without unresolved functions.

        :param strictness: `STRICT`, or `LENIENT`, which replaces an unreadable value by its default or an empty value;
            for the deletion of a resource whose properties were never valid.
        :raises StackValidationFailed: with all problems. Never when lenient.
        """
        reader = PropertyReader(schema_of=_schema_of, unknown=UNKNOWN, strictness=strictness)
        canonical = self._read(reader, mapping)
        instance = None
        if not reader.findings or strictness is Strictness.LENIENT:
            instance = reader.instance(self, canonical, ())
        if reader.findings and strictness is Strictness.STRICT:
            raise StackValidationFailed([Problem(finding.message) for finding in reader.findings])
        return instance

    def check(self, previewed: Any, place: Locate, hidden: Collection[Path] = ()) -> list[Problem]:
        """Return the problems of values that are partly `UNKNOWN`; unknown values count as valid.

        :param hidden: places of values to mask; problems name neither the values nor the keys inside of them.
        """
        if previewed is UNKNOWN:
            return []
        reader = PropertyReader(schema_of=_schema_of, unknown=UNKNOWN, strictness=Strictness.STRICT)
        if not isinstance(previewed, Mapping):
            reader.findings.append(Finding((), 'the properties must be a map'))
        else:
            canonical = self._read(reader, previewed)
            if not reader.findings and not reader.met_unknown:
                reader.instance(self, canonical, ())
        return [_told(finding, place, hidden) for finding in reader.findings]

    def check_encoded(self, encoded: Json, place: Locate, hidden: Collection[Path] = ()) -> list[Problem]:
        """The problems of properties as `convergence.template` encodes them, as far as they can be known.

        :param place: called with the path of a property for the place to report.
        :param hidden: as for `check`.
        """
        try:
            previewed = preview(encoded, {}, hidden=hidden)
        except EvaluationFailed as error:
            return [Problem(str(error), place())]
        return self.check(previewed, place, hidden)

    def known(self, encoded: Json) -> dict[str, Any]:
        """The properties as far as they can be known, by name. Encoded ones that have passed `check_encoded`."""
        previewed = preview(encoded, {})
        return self.canonical(previewed) if isinstance(previewed, Mapping) else {}

    def canonical(self, mapping: Mapping[str, Any]) -> dict[str, Any]:
        """Return `mapping` with coerced values and defaults filled in. An unreadable value stays unchanged."""
        reader = PropertyReader(schema_of=_schema_of, unknown=UNKNOWN, strictness=Strictness.VERBATIM)
        return self._read(reader, mapping)

    def _read(self, reader: PropertyReader, mapping: Mapping[str, Any]) -> dict[str, Any]:
        """Read the values of a template, under the current names, through the schema."""
        properties, conflicts = translated(self.rules, mapping)
        reader.findings += [Finding(path, f'Property {dotted(path)}: {message}') for path, message in conflicts]
        return reader.mapping(self, properties, ())

    def changed(self, previous: Mapping[str, Any], desired: Mapping[str, Any]) -> frozenset[str]:
        """Names of the properties whose meaning differs."""
        before, after = self.canonical(previous), self.canonical(desired)
        return frozenset(
            name for name in {*before, *after} if exact_text(before.get(name)) != exact_text(after.get(name))
        )

    @cached_property
    def declares_secrets(self) -> bool:
        """True if any property is secret, at any depth."""
        return any(
            declared.declaration.secret or (inner is not None and inner is not self and inner.declares_secrets)
            for declared in self.properties.values()
            for inner in [_schema_within(declared.shape)]
        )

    @cached_property
    def asks_nobody(self) -> bool:
        """True if only the properties themselves, at any depth, decide if they are valid, today and later.

        False if a custom constraint may query a service or the time.
        """
        inner = [_schema_within(declared.shape) for declared in self.properties.values()]
        constraints = {type(each) for declared in self.properties.values() for each in declared.constraints}
        return constraints <= SELF_CONTAINED and all(each is None or each is self or each.asks_nobody for each in inner)

    def secrets(self, mapping: Mapping[str, Any]) -> frozenset[str]:
        """The values of secret properties, at any depth, as texts in which they may turn up."""
        if not self.declares_secrets:
            return frozenset()
        return _secrets(self, mapping) | _secrets(self, self.canonical(mapping))

    def secret_places(self, mapping: Mapping[str, Any]) -> tuple[Path, ...]:
        """Return the places of the values of secret properties, at any depth, in properties that may be partly
        unknown.
        """
        return tuple(_secret_places(self, mapping, ())) if self.declares_secrets else ()

    def describe(self, *, whole: bool = False) -> dict[str, Json]:
        """Return the schema as JSON: type, required, update_allowed, immutable, default and constraints by property
        name.

        :param whole: True to include everything, hidden properties and support too; `properties_class` of
            `convergence.resources.declaring` makes a dataclass from it again. False for users.
        """
        return SchemaWriter(_schema_of, whole=whole).properties(self)


def _schema_of(declared: type[Any]) -> PropertySchema:
    """The schema of a class, read once. It lives as long as the class: some are made of templates that users send."""
    found = vars(declared).get(_SCHEMA) if isinstance(declared, type) else None
    if found is None:
        found = _read_schema(declared)
        setattr(declared, _SCHEMA, found)
    schema: PropertySchema = found
    return schema


def _read_schema(declared: type[Any]) -> PropertySchema:
    if not (isinstance(declared, type) and is_dataclass(declared)):
        raise TypeError(f'{declared!r} is not a dataclass; properties are declared as a frozen dataclass')
    if not declared.__dataclass_params__.frozen:  # type: ignore[attr-defined]
        raise TypeError(f'{declared.__qualname__} must be a frozen dataclass: @dataclass(frozen=True)')
    annotations = annotations_of(declared)
    properties: dict[str, Property] = {}
    rest = None
    for entry in fields(declared):
        declaration = entry.metadata.get(_DECLARATION) or _plain(entry)
        if declaration.takes_the_rest:
            rest = entry.name
            continue
        name = declaration.name or entry.name
        try:
            shape = shape_of(annotations[entry.name])
        except TypeError as error:
            raise TypeError(f'{declared.__qualname__}.{entry.name}: {error}') from error
        required = declaration.default is _Nothing.DEFAULT
        properties[name] = Property(
            name, entry.name, shape, None if required else declaration.default, required, declaration
        )
    return PropertySchema(declared, properties, rest, tuple(getattr(declared, 'TRANSLATIONS', ())))


def _plain(entry: Any) -> _PropertyDeclaration:
    """The declaration of a field that was written without `prop`."""
    default = entry.default
    if default is MISSING:
        default = _Nothing.DEFAULT if entry.default_factory is MISSING else entry.default_factory()
    return _PropertyDeclaration(default, '', False, False, (), None)


def _told(finding: Finding, place: Locate, hidden: Collection[Path]) -> Problem:
    """Return the problem without the contents of a hidden value."""
    for path in hidden:
        if finding.path[: len(path)] == path:
            return Problem(f'Property {dotted(path)}: {HIDDEN}', place(*path))
    return Problem(finding.message, place(*finding.path))


def _secrets(schema: PropertySchema, values: Any) -> frozenset[str]:
    if not isinstance(values, Mapping):
        return frozenset()
    found: frozenset[str] = frozenset()
    for name, declared in schema.properties.items():
        value = values.get(name)
        found |= secrecy.texts(value) if declared.declaration.secret else _inner_secrets(declared.shape, value)
    return found


def _inner_secrets(shape: Shape, value: Any) -> frozenset[str]:
    if shape.fields is not None:
        return _secrets(_schema_of(shape.fields), value)
    if shape.items is None or not isinstance(value, list | dict):
        return frozenset()
    items = value.values() if isinstance(value, dict) else value
    return frozenset().union(*(_inner_secrets(shape.items, item) for item in items))


def _secret_places(schema: PropertySchema, values: Any, path: Path) -> Iterator[Path]:
    if not isinstance(values, Mapping):
        return
    for name, declared in schema.properties.items():
        if name in values:
            if declared.declaration.secret:
                yield (*path, name)
            else:
                yield from _inner_secret_places(declared.shape, values[name], (*path, name))


def _inner_secret_places(shape: Shape, value: Any, path: Path) -> Iterator[Path]:
    if shape.fields is not None:
        yield from _secret_places(_schema_of(shape.fields), value, path)
    elif shape.items is not None and isinstance(value, list | dict):
        items = value.items() if isinstance(value, dict) else enumerate(value)
        for key, item in items:
            yield from _inner_secret_places(shape.items, item, (*path, key))


def _schema_within(shape: Shape) -> PropertySchema | None:
    """The schema of the maps that a value is, or has in it."""
    while shape.items is not None:
        shape = shape.items
    return _schema_of(shape.fields) if shape.fields is not None else None


def exact_text(value: Any) -> str:
    """The value as text: Python takes True and 1, and 1 and 1.0, for equal."""
    return json.dumps(value, sort_keys=True)
