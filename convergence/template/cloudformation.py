"""Translates templates of CloudFormation into the form of HOT.

Only names and arrangement differ. Every value keeps its position in the text, so that errors show the original place.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from convergence.core.model import Json
from convergence.errors import InvalidTemplateSection
from convergence.template.document import Items, Map, ParsedDocument
from convergence.template.positions import Position, Positions
from convergence.template.versions import Version

_SECTIONS = {
    'Description': 'description',
    'Parameters': 'parameters',
    'Mappings': 'mappings',
    'Conditions': 'conditions',
    'Resources': 'resources',
    'Outputs': 'outputs',
    'Metadata': 'metadata',
}
_PARAMETER = {
    'Type': 'type',
    'Default': 'default',
    'NoEcho': 'hidden',
    'Description': 'description',
    'Label': 'label',
}
_TYPES = {
    'String': 'string',
    'Number': 'number',
    'CommaDelimitedList': 'comma_delimited_list',
    'Json': 'json',
    'Boolean': 'boolean',
}
_RESOURCE = {
    'Type': 'type',
    'Properties': 'properties',
    'Metadata': 'metadata',
    'DependsOn': 'depends_on',
    'DeletionPolicy': 'deletion_policy',
    'UpdatePolicy': 'update_policy',
    'Description': 'description',
    'Condition': 'condition',
}
_OUTPUT = {'Value': 'value', 'Description': 'description', 'Condition': 'condition', 'Export': 'export'}
_LIMITS = {
    'AllowedValues': ('allowed_values', None),
    'AllowedPattern': ('allowed_pattern', None),
    'MinLength': ('length', 'min'),
    'MaxLength': ('length', 'max'),
    'MinValue': ('range', 'min'),
    'MaxValue': ('range', 'max'),
}
_CONSTRAINT_DESCRIPTION = 'ConstraintDescription'
_ENTRIES = {'parameters': _PARAMETER, 'resources': _RESOURCE, 'outputs': _OUTPUT}
_WRITTEN_SECTIONS = {new: old for old, new in _SECTIONS.items()}
_WRITTEN_ENTRIES = {section: {new: old for old, new in names.items()} for section, names in _ENTRIES.items()}

Keys = Sequence[str | int]


def translated(document: ParsedDocument, version: Version) -> ParsedDocument:
    """Return the document in the form of HOT. Invalid keys go to its problems.

    :param document: its root is a map.
    """
    return _Translation(document, version).run()


def written(path: Keys) -> Keys:
    """Return a path of the translated document as the author wrote it."""
    result = list(path)
    if not result:
        return result
    section = str(result[0])
    result[0] = _WRITTEN_SECTIONS.get(section, section)
    if len(result) > 2 and section in _ENTRIES:
        name = _WRITTEN_ENTRIES[section].get(str(result[2]))
        result[2:3] = [] if name is None else [name]
        if name is None:
            del result[2:]  # Constraints have another arrangement.
    return result


class _Translation:
    """One call of `translated`."""

    def __init__(self, document: ParsedDocument, version: Version) -> None:
        self._document = document
        self._version = version

    def run(self) -> ParsedDocument:
        root = self._document.root
        assert isinstance(root, dict)
        offered = {name for name in _SECTIONS if name != 'Conditions' or self._version.conditions}
        sections = _like(root)
        for key, value in root.items():
            if key == self._version.key:
                _move(root, key, sections, key, value)
            elif key in offered:
                _move(root, key, sections, _SECTIONS[key], self._section(key, value))
            else:
                hint = self._document.problems.suggestion(key, offered)
                message = f'The template section is invalid: {key[:80]}{f".{hint}" if hint else ""}'
                self._document.key_problem(message, (key,), InvalidTemplateSection)
        sections.pop('metadata', None)
        return ParsedDocument(self._document.source, sections, self._document.problems, written)

    def _section(self, section: str, content: Json) -> Json:
        names = _ENTRIES.get(_SECTIONS[section])
        if names is None or not isinstance(content, dict):
            return content
        entries = _like(content)
        for name, body in content.items():
            if not isinstance(body, dict):
                new: Json = body
            elif section == 'Parameters':
                new = self._parameter(body, (section, name))
            else:
                new = self._entry(body, names, (section, name))
            _move(content, name, entries, name, new)
        return entries

    def _entry(self, body: dict[str, Json], names: Mapping[str, str], path: Keys) -> dict[str, Json]:
        result = _like(body)
        for key, value in body.items():
            if key == 'Condition' and not self._version.conditions:
                self._refuse_key(key, path, names)
            elif key not in names:
                what = 'a resource' if names is _RESOURCE else 'an output'
                hint = self._document.problems.suggestion(key, names)
                message = f'"{key}" is not a valid keyword inside {what} definition, and is ignored.{hint}'
                self._document.key_warning(message, (*path, key))
            elif key != 'Export':  # Export has no meaning: stacks do not import from each other.
                _move(body, key, result, names[key], value)
        return result

    def _parameter(self, body: dict[str, Json], path: Keys) -> dict[str, Json]:
        result = _like(body)
        constraints: dict[str, Any] = {}
        marks: dict[str, Position] = {}
        for key, value in body.items():
            if key == 'Type' and value is not None and value not in _TYPES.values():
                _move(body, key, result, 'type', self._type(value, path))
            elif key in _PARAMETER:
                _move(body, key, result, _PARAMETER[key], value)
            elif key in _LIMITS:
                kind, bound = _LIMITS[key]
                if bound is None:
                    constraints[kind] = value
                else:
                    constraints.setdefault(kind, {})[bound] = value
                if isinstance(body, Map):
                    marks[kind] = body.marks[key].value
            elif key != _CONSTRAINT_DESCRIPTION:
                self._refuse_key(key, path, (*_PARAMETER, *_LIMITS, _CONSTRAINT_DESCRIPTION))
        if constraints:
            items = Items()
            for kind, argument in constraints.items():
                items.append({kind: argument, 'description': body.get(_CONSTRAINT_DESCRIPTION)})
            items.marks = list(marks.values())
            result['constraints'] = items if marks else list(items)
            if isinstance(result, Map):
                result.marks['constraints'] = Positions.of(items.marks[0], items.marks[0])
        return result

    def _type(self, type_: Json, path: Keys) -> str:
        if isinstance(type_, str) and type_ in _TYPES:
            return _TYPES[type_]
        hint = self._document.problems.suggestion(type_, _TYPES) if isinstance(type_, str) else ''
        message = f'The type of the parameter {path[-1]} must be one of {", ".join(_TYPES)}.{hint}'
        self._document.problem(message, (*path, 'Type'))
        return 'string'

    def _refuse_key(self, key: str, path: Keys, known: Mapping[str, str] | Sequence[str]) -> None:
        what = {'Parameters': 'a parameter', 'Resources': 'a resource', 'Outputs': 'an output'}[str(path[0])]
        hint = self._document.problems.suggestion(key, known)
        message = f'"{key}" is not a valid keyword inside {what} definition.{hint}'
        self._document.key_problem(message, (*path, key), InvalidTemplateSection)


def _like(node: dict[str, Json]) -> dict[str, Json]:
    """Return an empty map that keeps positions if `node` does."""
    return Map() if isinstance(node, Map) else {}


def _move(source: dict[str, Json], key: str, target: dict[str, Json], name: str, value: Json) -> None:
    """Put a value under its new name, with the position of the old one."""
    target[name] = value
    if isinstance(source, Map) and isinstance(target, Map):
        target.marks[name] = source.marks[key]
