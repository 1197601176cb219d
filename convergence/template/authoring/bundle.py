"""A template with the environments and files that belong to it."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from convergence.core.model import Json
from convergence.errors import Place, Problem, RequestLimitExceeded, StackValidationFailed
from convergence.template.document import ParsedDocument
from convergence.template.excerpts import Excerpts
from convergence.template.limits import Limits
from convergence.template.problems import Problems
from convergence.template.sources import read

PROVIDER_ENDINGS = ('.yaml', '.yml', '.template')
UNREADABLE = 'UnreadableFile'
"""The kind of the problem that a file cannot be read."""

_DEFINES = frozenset({'type', 'properties', 'metadata', 'deletion_policy', 'update_policy', 'depends_on'})
"""The keys that the definition of a group's member may have."""

KeyPath: TypeAlias = tuple[str | int, ...]


@dataclass(frozen=True, slots=True)
class Bundle:
    """A template with its environments and files.

    :param name: the path of the template, for messages.
    :param environments: texts by path, in order.
    :param files: contents by the names in the template.
    :param problems: files that cannot be read.
    :param outside: absolute paths of the files outside the directories of the template and the environments. The
        author of the template has chosen them, not the user.
    """

    name: str
    text: str
    environments: Mapping[str, str] = field(default_factory=dict)
    files: Mapping[str, str] = field(default_factory=dict)
    problems: tuple[Problem, ...] = ()
    outside: tuple[str, ...] = ()


class BundleNames:
    """Completes problems of a bundle with the names of its files, and with excerpts."""

    def __init__(self, bundle: Bundle) -> None:
        self._bundle = bundle
        self._texts = {'template': bundle.text, **bundle.environments, **bundle.files}

    def give(self, problem: Problem) -> Problem:
        """Return the problem with file name and excerpt."""
        place = problem.place
        if place is None:
            return problem
        source, environments = place.source, tuple(self._bundle.environments)
        if source == 'environment' and environments:
            place = dataclasses.replace(place, source=environments[0]) if place.line else self._in_environments(place)
        excerpt = problem.excerpt
        if not excerpt and place.line and place.source in self._texts:
            excerpt = Excerpts(self._texts[place.source]).at(place)
        if source == 'template':
            place = dataclasses.replace(place, source=self._bundle.name)
        return dataclasses.replace(problem, place=place, excerpt=excerpt)

    def _in_environments(self, place: Place) -> Place:
        """Return the place in the last environment with a value there. Its value wins."""
        for name, text in reversed(list(self._bundle.environments.items())):
            try:
                document = read(text, name, Limits(), Problems())
            except (StackValidationFailed, RequestLimitExceeded):
                continue
            node: Json = document.root
            for key in place.path:
                node = node.get(str(key)) if isinstance(node, dict) else None
            if node is not None:
                return document.place(place.path)
        return place


def named_files(document: ParsedDocument) -> Iterator[tuple[str, KeyPath, bool]]:
    """Yield the file names in a document, each with its path, and True for templates."""
    for path, node in _maps(document.root, ()):
        wanted = node.get('get_file')
        if len(node) == 1 and isinstance(wanted, str):
            yield wanted, (*path, 'get_file'), False
    root: Any = document.root if isinstance(document.root, dict) else {}
    for section, key in (('resources', 'type'), ('Resources', 'Type')):
        resources = root.get(section)
        for name, body in resources.items() if isinstance(resources, dict) else ():
            kind = body.get(key) if isinstance(body, dict) else None
            if isinstance(kind, str) and kind.endswith(PROVIDER_ENDINGS):
                yield kind, (section, name, key), True
            if isinstance(body, dict):
                yield from _members(body.get('properties'), (section, name, 'properties'))
    for path, node in _maps(root.get('resource_registry'), ('resource_registry',)):
        for key, value in node.items():
            if isinstance(value, str) and value.endswith(PROVIDER_ENDINGS) and key != 'base_url':
                yield value, (*path, key), True


def _members(properties: Json, where: KeyPath) -> Iterator[tuple[str, KeyPath, bool]]:
    """Yield the templates in the properties of groups and chains: definitions of members, or types."""
    for path, node in _maps(properties, where):
        kind = node.get('type')
        if isinstance(kind, str) and kind.endswith(PROVIDER_ENDINGS) and node.keys() <= _DEFINES:
            yield kind, (*path, 'type'), True
    types = properties.get('resources') if isinstance(properties, dict) else None
    for index, kind in enumerate(types if isinstance(types, list) else ()):
        if isinstance(kind, str) and kind.endswith(PROVIDER_ENDINGS):
            yield kind, (*where, 'resources', index), True


def _maps(node: Json, path: KeyPath) -> Iterator[tuple[KeyPath, dict[str, Json]]]:
    """Yield every map in a value with its path."""
    if isinstance(node, dict):
        yield path, node
        for key, value in node.items():
            yield from _maps(value, (*path, key))
    elif isinstance(node, list):
        for index, item in enumerate(node):
            yield from _maps(item, (*path, index))
