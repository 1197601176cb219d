"""Reads the `resources` section."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping

from convergence.core.model import Definition, DeletionPolicy, Json
from convergence.errors import CircularDependencyException, InvalidTemplateReference, InvalidTemplateSection
from convergence.template.cycles import cycles
from convergence.template.document import Document
from convergence.template.evaluation import references
from convergence.template.folding import Folder, Path
from convergence.template.functions.base import Compiling, ReferenceFailed, is_call
from convergence.template.functions.references import require
from convergence.template.patience import read_patience
from convergence.template.versions import CONDITIONS_SINCE, LOWER_CASE_POLICIES_SINCE, Version

MAX_NAME = 255
"""Characters of a resource name."""

_KEYS = ('type', 'properties', 'metadata', 'depends_on', 'deletion_policy', 'update_policy', 'description')
_NOT_OFFERED = ('condition', 'external_id')


class Definitions:
    """The definitions of a template's resources, read one by one."""

    def __init__(self, document: Document, version: Version, folder: Folder) -> None:
        self._document = document
        self._version = version
        self._folder = folder
        self.asked: dict[str, set[str]] = {}

    def read(self, section: Mapping[str, Json], scope: Compiling) -> dict[str, Definition]:
        """The definitions, in the order of the template; `asked` collects which attributes they ask for.

        What is wrong, also a circle of dependencies, goes to the problems.
        """
        definitions = {}
        for name, body in section.items():
            own = dataclasses.replace(scope, subject=name, requires=set(), asked=set())
            definitions[name] = self._definition(name, body, own)
            self.ask(own)
        self._refuse_cycles(definitions)
        return definitions

    def ask(self, scope: Compiling) -> None:
        """Note the attributes that somebody asks for."""
        for resource, attribute in scope.asked:
            self.asked.setdefault(resource, set()).add(attribute)

    def _definition(self, name: str, body: Json, scope: Compiling) -> Definition:
        path: Path = ('resources', name)
        self._check_name(name, path)
        if not isinstance(body, dict):
            self._document.problem(f'The resource {name} must be a map with at least the key type.', path)
            return Definition(name, '')
        self._check_keys(body, path)
        type_ = body.get('type')
        if not isinstance(type_, str) or not type_:
            what = 'has no type' if type_ is None else 'has a type that is not text'
            self._document.problem(f'The resource {name} {what}.', (*path, 'type'))
            type_ = ''
        properties = self._map(body, 'properties', path, scope)
        metadata = self._map(body, 'metadata', path, scope)
        self._map(body, 'update_policy', path, dataclasses.replace(scope, requires=set(), asked=set()))
        self._depends_on(body.get('depends_on'), (*path, 'depends_on'), scope)
        time_limits, retry = read_patience(self._document, metadata, (*path, 'metadata'))
        return Definition(
            name=name,
            type=type_,
            properties=properties,
            metadata=metadata,
            requires=tuple(sorted(scope.requires)),
            deletion_policy=self._deletion_policy(body.get('deletion_policy'), (*path, 'deletion_policy'), scope),
            uses=scope.uses(),
            time_limits=time_limits,
            retry=retry,
        )

    def _check_name(self, name: str, path: Path) -> None:
        if not name or len(name) > MAX_NAME:
            message = f'The name of a resource must have between 1 and {MAX_NAME} characters.'
        elif '/' in name:
            message = f'The name of the resource {name} must not contain a slash.'
        elif not name.isprintable():
            message = 'The name of a resource must not contain characters that cannot be printed.'
        else:
            return
        self._document.key_problem(message, path)

    def _check_keys(self, body: Mapping[str, Json], path: Path) -> None:
        for key in body:
            if key in _KEYS:
                continue
            if key in _NOT_OFFERED and self._version.date >= CONDITIONS_SINCE:
                message = f'The key {key} of a resource is not offered by this installation; do without it.'
                self._document.key_problem(message, (*path, key))
                continue
            hint = self._document.problems.suggestion(key, _KEYS)
            if key in _NOT_OFFERED:
                hint = f' It came with version {CONDITIONS_SINCE}.'
            message = f'"{key}" is not a valid keyword inside a resource definition.{hint}'
            self._document.key_problem(message, (*path, key), InvalidTemplateSection)

    def _map(self, body: Mapping[str, Json], key: str, path: Path, scope: Compiling) -> Json:
        """A section of the resource, encoded. A function is fine if its value is known in advance."""
        encoded = self._folder.fold(body.get(key), (*path, key), scope)
        if encoded is None:
            return {}
        if is_call(encoded):
            if any(references(encoded)):
                self._document.problem(f'The {key} cannot depend on another resource as a whole.', (*path, key))
            return {}
        if not isinstance(encoded, dict):
            self._document.problem(f'The {key} must be a map.', (*path, key))
            return {}
        return encoded

    def _depends_on(self, names: Json, path: Path, scope: Compiling) -> None:
        if names is None:
            return
        listed = isinstance(names, list)
        for index, name in enumerate(names if isinstance(names, list) else [names]):
            place = (*path, index) if listed else path
            if not isinstance(name, str):
                self._document.problem('depends_on must be the name of a resource, or a list of names.', place)
                continue
            try:
                require(name, scope)
            except ReferenceFailed as error:
                self._document.problem(str(error), place, InvalidTemplateReference)

    def _deletion_policy(self, policy: Json, path: Path, scope: Compiling) -> DeletionPolicy:
        encoded = self._folder.fold(policy, path, dataclasses.replace(scope, requires=set(), asked=set()))
        if encoded is None or (is_call(encoded) and not any(references(encoded))):
            return DeletionPolicy.DELETE
        names = {member.value: member for member in DeletionPolicy}
        lower = {member.value.lower(): member for member in DeletionPolicy}
        if isinstance(encoded, str) and encoded in names:
            return names[encoded]
        if isinstance(encoded, str) and encoded in lower:
            if self._version.date < LOWER_CASE_POLICIES_SINCE:
                message = f'Write {encoded.capitalize()}; lower case came with version {LOWER_CASE_POLICIES_SINCE}.'
                self._document.problem(message, path)
            return lower[encoded]
        self._document.problem(f'Invalid deletion policy; it must be one of {", ".join(names)}.', path)
        return DeletionPolicy.DELETE

    def _refuse_cycles(self, definitions: Mapping[str, Definition]) -> None:
        for cycle in cycles({name: definition.requires for name, definition in definitions.items()}):
            steps = []
            for name in cycle:
                place = self._document.key_place(('resources', name))
                steps.append(f'{name} (line {place.line})' if place.line else name)
            message = f'Circular Dependency Found: {" -> ".join(steps)}'
            self._document.key_problem(message, ('resources', cycle[0]), CircularDependencyException)
