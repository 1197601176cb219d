"""Completion and documentation for editors. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from convergence.core.model import Json
from convergence.template.authoring.cursor import Cursor, cursor_at, declared_names
from convergence.template.authoring.index import REFERENCES, NameKind
from convergence.template.authoring.json_schema import JsonSchema, language_versions, meaning, schema
from convergence.template.authoring.types import TypeCatalog
from convergence.template.document import Map
from convergence.template.versions import VERSIONS, Version

ANY = '*'
"""The key for the items of a list or the entries of a map in schemas."""

_SECTION_WORDS: Mapping[NameKind, str] = {
    NameKind.PARAMETER: 'parameter',
    NameKind.RESOURCE: 'resource',
    NameKind.OUTPUT: 'output',
}
_KIND_OF = {
    'parameters': NameKind.PARAMETER,
    'resources': NameKind.RESOURCE,
    'outputs': NameKind.OUTPUT,
    'conditions': NameKind.CONDITION,
}
_ATTRIBUTE_CALLS = ('get_attr', 'Fn::GetAtt')


class CandidateKind(StrEnum):
    """The kind of a candidate."""

    SECTION = 'section'
    KEY = 'key'
    PROPERTY = 'property'
    FUNCTION = 'function'
    NAME = 'name'
    ATTRIBUTE = 'attribute'
    TYPE = 'type'
    VALUE = 'value'


@dataclass(frozen=True, slots=True)
class Candidate:
    """A completion at a position.

    :param label: the text to insert.
    :param detail: its kind, in a few words.
    :param documentation: its description.
    """

    label: str
    kind: CandidateKind
    detail: str = ''
    documentation: str = ''

    @property
    def is_key(self) -> bool:
        """True if a value follows."""
        return self.kind in (
            CandidateKind.SECTION,
            CandidateKind.KEY,
            CandidateKind.PROPERTY,
            CandidateKind.FUNCTION,
        )


class Vocabulary:
    """The words of the language, and of the installed resource types.

    :param types: the resource types.
    """

    def __init__(self, types: TypeCatalog) -> None:
        self._catalog = types
        definitions: JsonSchema = schema(types)['$defs']
        self._sections: JsonSchema = definitions['hot']['properties']
        self._keys: Mapping[NameKind, JsonSchema] = {
            kind: definitions[word]['properties'] for kind, word in _SECTION_WORDS.items()
        }
        self._described: dict[str, Mapping[str, Any]] = {}

    # --- completion -------------------------------------------------------------------------------------------

    def candidates(self, lines: Sequence[str], line: int, column: int) -> list[Candidate]:
        """Return the completions at a position, in order. The editor filters them by the part already written."""
        cursor = cursor_at(lines, line, column)
        path = cursor.path
        if not path:
            return _of_keys(self._sections, CandidateKind.SECTION)
        kind = _KIND_OF.get(path[0])
        if cursor.is_value and path[-1] in ('type', 'Type') and len(path) == 3:
            return self._types(kind)
        if found := self._references(lines, cursor, kind):
            return found
        if cursor.is_value:
            return self._values(lines, cursor)
        found = []
        if len(path) == 2 and kind is not None and kind in self._keys:
            return _of_keys(self._keys[kind], CandidateKind.KEY)
        if kind is NameKind.RESOURCE and path[2:3] == ('properties',):
            found = [self._property(name, about) for name, about in self._properties(lines, path).items()]
        return [*found, *self._functions(lines, path)]

    def _references(self, lines: Sequence[str], cursor: Cursor, kind: NameKind | None) -> list[Candidate]:
        """Return declared names, if the position takes a name."""
        last = cursor.path[-1]
        if last in _ATTRIBUTE_CALLS and cursor.items:
            return self._attributes(lines, cursor.items[0]) if len(cursor.items) == 1 else []
        if cursor.items and last not in ('depends_on', 'and', 'or', 'not'):
            return []
        kinds: Sequence[NameKind] = REFERENCES.get(last, ()) if cursor.is_value else ()
        if last == 'depends_on':
            kinds = (NameKind.RESOURCE,)
        elif last == 'condition' or (kind is NameKind.CONDITION and last in ('and', 'or', 'not')):
            kinds = (NameKind.CONDITION,)
        own = cursor.path[1] if len(cursor.path) > 1 and last == 'depends_on' else None
        return [
            Candidate(name, CandidateKind.NAME, f'{each} {of_type}'.strip())
            for each in kinds
            for name, of_type in declared_names(lines, each)
            if name != own
        ]

    def _attributes(self, lines: Sequence[str], resource: str) -> list[Candidate]:
        of_type = dict(declared_names(lines, NameKind.RESOURCE)).get(resource, '')
        attributes: Mapping[str, Any] = self._type(of_type).get('attributes') or {}
        return [
            Candidate(name, CandidateKind.ATTRIBUTE, str(about.get('type') or ''), str(about.get('description') or ''))
            for name, about in attributes.items()
        ]

    def _types(self, kind: NameKind | None) -> list[Candidate]:
        if kind is NameKind.PARAMETER:
            return [Candidate(name, CandidateKind.TYPE) for name in self._keys[kind]['type']['enum']]
        names = self._catalog.names() if kind is NameKind.RESOURCE else ()
        return [
            Candidate(name, CandidateKind.TYPE, '', str(self._type(name).get('description') or '')) for name in names
        ]

    def _values(self, lines: Sequence[str], cursor: Cursor) -> list[Candidate]:
        path = cursor.path
        about: Mapping[str, Any] = {}
        values: Iterable[object] = ()
        if path == ('heat_template_version',):
            values = reversed(list(VERSIONS))
        elif len(path) == 3 and path[2] == 'deletion_policy':
            values = ('Delete', 'Retain', 'Snapshot')
        elif path[0] == 'resources' and path[2:3] == ('properties',) and len(path) > 3:
            about = self._properties(lines, path[:-1]).get(path[-1]) or {}
            values = ('true', 'false') if about.get('type') == 'boolean' else _allowed(about)
        elif path[0] == 'parameters' and path[-1] in ('hidden', 'immutable'):
            values = ('true', 'false')
        return [Candidate(str(value), CandidateKind.VALUE) for value in values]

    def _functions(self, lines: Sequence[str], path: Sequence[str]) -> list[Candidate]:
        """Return functions, if the position takes a computed value."""
        version = self._version(lines)
        if path[0] == 'conditions':
            known = version.conditions
        elif (path[0] == 'resources' and len(path) > 2) or (path[0] == 'outputs' and len(path) > 2):
            known = version.functions
        else:
            return []
        return [
            Candidate(name, CandidateKind.FUNCTION, 'function', meaning(function))
            for name, function in sorted(known.items())
        ]

    def _version(self, lines: Sequence[str]) -> Version:
        for text in lines[:50]:
            key, colon, value = text.partition(':')
            if colon and key.strip() == 'heat_template_version':
                found = value.partition('#')[0].strip().strip('"\'')
                return VERSIONS.get(found) or list(VERSIONS.values())[-1]
        return list(VERSIONS.values())[-1]

    # --- properties -------------------------------------------------------------------------------------------

    def _type(self, name: str) -> Mapping[str, Any]:
        if name not in self._described:
            self._described[name] = self._catalog.describe(name) if name in self._catalog else {}
        return self._described[name]

    def _properties(self, lines: Sequence[str], path: Sequence[str]) -> Mapping[str, Any]:
        """Return the properties for a map at any depth of a resource.

        :param path: the path of the map.
        """
        of_type = dict(declared_names(lines, NameKind.RESOURCE)).get(path[1], '')
        return self._within(self._type(of_type).get('properties') or {}, path[3:])

    @staticmethod
    def _within(properties: Mapping[str, Any], path: Sequence[str]) -> Mapping[str, Any]:
        for name in path:
            about = properties.get(name) or properties.get(ANY) or {}
            inner = about.get('schema') or {}
            while set(inner) == {ANY} and inner[ANY].get('schema'):
                inner = inner[ANY]['schema']
            properties = inner if set(inner) != {ANY} else {}
        return properties

    @staticmethod
    def _property(name: str, about: Mapping[str, Any]) -> Candidate:
        detail = f'{about.get("type") or "any"}{", required" if about.get("required") else ""}'
        return Candidate(name, CandidateKind.PROPERTY, detail, str(about.get('description') or ''))

    # --- documentation ----------------------------------------------------------------------------------------

    def explain_type(self, name: str) -> str:
        """Return the documentation of a resource type as Markdown; empty for an unknown one."""
        about = self._type(name)
        if not about:
            return ''
        attributes = ', '.join(f'`{each}`' for each in about['attributes']) or 'none'
        return f'**{name}**\n\n{about.get("description") or ""}\n\nAttributes: {attributes}'

    def explain_key(self, lines: Sequence[str], line: int, path: Sequence[str | int]) -> str:
        """Return the documentation of the last key of a path as Markdown; empty for an unknown one."""
        keys = [each for each in path if isinstance(each, str)]
        name, kind = keys[-1], _KIND_OF.get(keys[0])
        if len(keys) == 1:
            return _of_schema(name, self._sections.get(name))
        described = self._keys.get(kind) if kind is not None and len(keys) == 3 else None
        if described is not None and name in described:
            return _of_schema(name, described[name])
        if kind is NameKind.RESOURCE and keys[2:3] == ['properties'] and len(keys) > 3:
            about = self._properties(lines, keys[:-1]).get(name)
            if about is not None:
                return _of_property(name, about)
        return self._of_function(name)

    def _of_function(self, name: str) -> str:
        for version in reversed(language_versions()):
            function = version.functions.get(name) or version.conditions.get(name)
            if function is not None:
                return f'**{name}**, a function\n\n{meaning(function)}'
        return ''


def explain_name(kind: NameKind, name: str, body: Json, of_type: str) -> str:
    """Return the documentation of a declared name as Markdown. Defaults of hidden parameters are left out."""
    details = [
        f'**{name}**, {"an" if kind is NameKind.OUTPUT else "a"} {kind}{f" of type `{of_type}`" if of_type else ""}'
    ]
    if isinstance(body, dict):
        if description := body.get('description') or body.get('Description'):
            details.append(str(description))
        default = body.get('default', body.get('Default'))
        is_hidden = body.get('hidden') or body.get('NoEcho')
        if kind is NameKind.PARAMETER and default is not None and not is_hidden:
            details.append(f'Default: `{default}`')
    return '\n\n'.join(details)


def key_at(node: Json, line: int, column: int) -> tuple[tuple[str | int, ...], bool] | None:
    """Return the path of the item at a position, and True for a key or False for a scalar value."""
    pending: list[tuple[Json, tuple[str | int, ...]]] = [(node, ())]
    while pending:
        value, path = pending.pop()
        if isinstance(value, Map):
            for key, (key_mark, value_mark) in value.marks.items():
                each = value[key]
                if key_mark.line == line and key_mark.column <= column <= key_mark.column + len(key):
                    return (*path, key), True
                scalar = isinstance(each, str) and value_mark.line == line
                if scalar and value_mark.column <= column <= value_mark.column + len(str(each)):
                    return (*path, key), False
                pending.append((each, (*path, key)))
        elif isinstance(value, list):
            pending += [(each, (*path, index)) for index, each in enumerate(value)]
    return None


def _of_keys(described: JsonSchema, kind: CandidateKind) -> list[Candidate]:
    return [Candidate(name, kind, '', str(about.get('description') or '')) for name, about in described.items()]


def _of_schema(name: str, about: JsonSchema | None) -> str:
    return f'**{name}**\n\n{about.get("description") or ""}'.strip() if about is not None else ''


def _of_property(name: str, about: Mapping[str, Any]) -> str:
    """Return the documentation of a property."""
    details = [f'**{name}**: {about.get("type") or "any"}{", required" if about.get("required") else ""}']
    if about.get('description'):
        details.append(str(about['description']))
    if about.get('default') is not None:
        details.append(f'Default: `{about["default"]}`')
    if values := _allowed(about):
        details.append(f'One of: {", ".join(f"`{each}`" for each in values)}')
    change = 'in place' if about.get('update_allowed') else 'never' if about.get('immutable') else 'by replacement'
    details.append(f'Update: {change}')
    return '\n\n'.join(details)


def _allowed(about: Mapping[str, Any]) -> list[Any]:
    return [value for each in about.get('constraints') or () for value in each.get('allowed_values') or ()]
