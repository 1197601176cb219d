"""Determines the version of a template, and splits it into sections."""

from __future__ import annotations

import difflib
from collections.abc import Collection, Mapping
from dataclasses import dataclass

from convergence.core.model import Json
from convergence.errors import InvalidTemplateSection, InvalidTemplateVersion
from convergence.template.cloudformation import translated
from convergence.template.declarations import PARAMETER_KEYS
from convergence.template.definitions import resource_keys
from convergence.template.document import ParsedDocument
from convergence.template.indentation import indented
from convergence.template.outputs import OUTPUT_KEYS
from convergence.template.versions import DIALECTS, KEY, VERSIONS, Version

_SECTIONS = ('description', 'parameter_groups', 'parameters', 'resources', 'outputs')
_MAPS = ('parameters', 'resources', 'outputs', 'conditions', 'mappings')


@dataclass(frozen=True, slots=True)
class Opened:
    """A template split into sections.

    :param document: the document in the form of HOT.
    :param root: its root.
    :param maps: the content of each section that is a map; empty without one.
    """

    document: ParsedDocument
    version: Version
    root: Mapping[str, Json]
    maps: Mapping[str, dict[str, Json]]

    def description(self) -> str:
        """Return the description, or an empty text. Errors go to the problems."""
        description = self.root.get('description')
        if isinstance(description, dict | list):
            self.document.problem('The description must be a string.', ('description',))
            return ''
        return '' if description is None else str(description)


def open_template(document: ParsedDocument) -> Opened:
    """Determine the version and the sections.

    :raises StackValidationFailed: the version cannot be determined. Lesser problems go to those of the document.
    """
    root = document.root
    if not isinstance(root, dict):
        what = 'is empty' if root is None else 'is not a map'
        document.problem(f'The template {what}; it must begin with {KEY}.', ())
        document.problems.raise_any()
        root = {}
    version = _version(root, document)
    if version.is_cloud:
        document = translated(document, version)
        root = document.root if isinstance(document.root, dict) else {}
    else:
        document = indented(document, _offered(version), _entry_keys(version))
        root = document.root if isinstance(document.root, dict) else {}
        _check_sections(root, version, document)
    offered = _MAPS if version.is_cloud else [name for name in _MAPS if name in _offered(version)]
    maps = {name: _map(root, name, document) if name in offered else {} for name in _MAPS}
    return Opened(document, version, root, maps)


def _version(root: Mapping[str, Json], document: ParsedDocument) -> Version:
    keys = [key for key in DIALECTS if key in root]
    if len(keys) > 1:
        document.key_problem(f'Ambiguous versions ({", ".join(keys)})', (keys[1],), InvalidTemplateVersion)
        document.problems.raise_any()
    key = keys[0] if keys else KEY
    found = root.get(key)
    version = DIALECTS[key].get(found) if isinstance(found, str) else None
    if version is None:
        what = f'{key}: {str(found)[:80]}' if keys else f'there is no {KEY}'
        known = ', '.join(DIALECTS[key])
        message = f'The template version is invalid: "{what}". "{key}" should be one of: {known}'
        misspelt = (
            [] if keys else difflib.get_close_matches(KEY, [name for name in root if len(name) <= 2 * len(KEY)], 1)
        )
        if misspelt:
            document.key_problem(f'{message}. Did you mean "{KEY}"?', (misspelt[0],), InvalidTemplateVersion)
        else:
            document.problem(message, (key,), InvalidTemplateVersion)
        document.problems.raise_any()
        version = next(iter(VERSIONS.values()))
    return version


def _check_sections(root: Mapping[str, Json], version: Version, document: ParsedDocument) -> None:
    offered = _offered(version)
    for section in root:
        if section not in offered:
            hint = document.problems.suggestion(section, offered)
            message = f'The template section is invalid: {section[:80]}{f".{hint}" if hint else ""}'
            document.key_problem(message, (section,), InvalidTemplateSection)


def _offered(version: Version) -> tuple[str, ...]:
    return version.key, *_SECTIONS, *(('conditions',) if version.conditions else ())


def _entry_keys(version: Version) -> dict[str, Collection[str]]:
    """Return the keys of an entry for each section."""
    return {
        'parameters': PARAMETER_KEYS,
        'resources': resource_keys(version),
        'outputs': (*OUTPUT_KEYS, *(('condition',) if version.conditions else ())),
    }


def _map(root: Mapping[str, Json], name: str, document: ParsedDocument) -> dict[str, Json]:
    section = root.get(name)
    if section is None:
        return {}
    if isinstance(section, dict):
        return section
    document.problem(f'The section {name} must be a map.', (name,))
    return {}
