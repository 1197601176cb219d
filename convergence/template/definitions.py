"""Reads the `resources` section."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping

from convergence.core.model import Definition, DeletionPolicy, Json, Path
from convergence.errors import CircularDependencyException, InvalidTemplateReference, InvalidTemplateSection
from convergence.template.conditions import Conditions
from convergence.template.cycles import cycles
from convergence.template.document import ParsedDocument
from convergence.template.evaluation import references
from convergence.template.folding import Folder
from convergence.template.functions.base import Absence, Compiling, ReferenceFailed, is_call, nearly
from convergence.template.functions.references import require
from convergence.template.secrets import outermost
from convergence.template.time_limits import read_time_limits_and_retry
from convergence.template.versions import (
    CONDITIONS_SINCE,
    EXTERNAL_ID_SINCE,
    LOWER_CASE_POLICIES_SINCE,
    Version,
)

MAX_NAME = 255
"""Maximum number of characters of a resource name: the size of the column."""

_KEYS = ('type', 'properties', 'metadata', 'depends_on', 'deletion_policy', 'update_policy', 'description')


def resource_keys(version: Version) -> tuple[str, ...]:
    """Return the keys of a resource in a version of the language."""
    condition = ('condition',) if version.conditions else ()
    return (*_KEYS, *condition, *(('external_id',) if version.date >= EXTERNAL_ID_SINCE else ()))


class Definitions:
    """Reads the definitions of a template's resources.

    :ivar asked: the used attributes of each resource.
    """

    def __init__(self, document: ParsedDocument, version: Version, folder: Folder, conditions: Conditions) -> None:
        self.document = document
        self.version = version
        self.folder = folder
        self.conditions = conditions
        self.asked: dict[str, set[str]] = {}
        self._keys = resource_keys(version)

    def read(
        self, section: Mapping[str, Json], scope: Compiling, unchanged: Mapping[str, Definition]
    ) -> dict[str, Definition]:
        """Return the definitions of the existing resources, in the order of the template.

        Errors, including circular dependencies, go to the problems.

        :param unchanged: definitions of further resources of the template that were read before.
        """
        definitions = dict(unchanged)
        for each in definitions.values():
            for resource, attributes in each.uses.items():
                self.asked.setdefault(resource, set()).update(attributes)
        scope.absent.update(name for name, body in section.items() if not self._exists(name, body, scope))
        for name, body in section.items():
            own = scope.of(name)
            if name in scope.absent:
                self._check_absent(name, body)
                continue
            definitions[name] = self._definition(name, body, own)
            self.ask(own)
        definitions = {name: definitions[name] for name in scope.resources if name in definitions}
        self._refuse_cycles(definitions)
        return definitions

    def ask(self, scope: Compiling) -> None:
        """Record used attributes."""
        for resource, attribute in scope.asked:
            self.asked.setdefault(resource, set()).add(attribute)

    def _exists(self, name: str, body: Json, scope: Compiling) -> bool:
        if not isinstance(body, dict) or 'condition' not in body or not self.version.conditions:
            return True
        own = dataclasses.replace(scope, subject=name)
        return self.conditions.holds(body['condition'], ('resources', name, 'condition'), own)

    def _check_absent(self, name: str, body: Json) -> None:
        """Check the form of a resource that does not exist, without evaluating it."""
        path: Path = ('resources', name)
        self._check_name(name, path)
        if isinstance(body, dict):
            self._check_keys(body, path)
            self._type(name, body)

    def _definition(self, name: str, body: Json, scope: Compiling) -> Definition:
        path: Path = ('resources', name)
        self._check_name(name, path)
        if not isinstance(body, dict):
            self.document.problem(f'The resource {name} must be a map with at least the key type.', path)
            return Definition(name, '')
        self._check_keys(body, path)
        type_ = self._type(name, body)
        properties = self._map(body, 'properties', path, scope)
        metadata = self._map(body, 'metadata', path, scope)
        update_policy = self._map(body, 'update_policy', path, scope)
        self._depends_on(body.get('depends_on'), (*path, 'depends_on'), scope)
        time_limits, retry = read_time_limits_and_retry(self.document, metadata, (*path, 'metadata'))
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
            update_policy=update_policy,
            external_id=self._external_id(body.get('external_id'), (*path, 'external_id'), scope),
            description=self._description(body.get('description')),
            hidden=outermost(place[2:] for place in scope.hidden if place[2] in ('properties', 'metadata')),
        )

    def _description(self, text: Json) -> str:
        return '' if text is None or isinstance(text, dict | list) else str(text)

    def _type(self, name: str, body: Mapping[str, Json]) -> str:
        type_ = body.get('type')
        if isinstance(type_, str) and type_:
            return type_
        if 'type' not in body and nearly(body, ['type']):
            return ''  # The key is misspelt; that is reported already.
        what = 'has no type' if type_ is None else 'has a type that is not text'
        self.document.problem(f'The resource {name} {what}.', ('resources', name, 'type'))
        return ''

    def _external_id(self, value: Json, path: Path, scope: Compiling) -> str | None:
        if value is None:
            return None
        own = scope.of(scope.subject)
        encoded = self.folder.value(value, path, own)
        if own.hidden:
            self.document.problem(
                'The external_id must not be computed from a hidden parameter: the ids of objects are shown.', path
            )
            return None
        if encoded is None or (is_call(encoded) and not any(references(encoded))):
            return None
        if isinstance(encoded, str | int) and not isinstance(encoded, bool) and encoded != '':
            if str(encoded).isprintable():
                return str(encoded)
            self.document.problem('The external_id must not contain characters that cannot be printed.', path)
            return None
        self.document.problem('The external_id must be the id of an object, known in advance.', path)
        return None

    def _check_name(self, name: str, path: Path) -> None:
        if not name or len(name) > MAX_NAME:
            message = f'The name of a resource must have between 1 and {MAX_NAME} characters.'
        elif '/' in name:
            message = f'The name of the resource {name} must not contain a slash.'
        elif not name.isprintable():
            message = 'The name of a resource must not contain characters that cannot be printed.'
        else:
            return
        self.document.key_problem(message, path)

    def _check_keys(self, body: Mapping[str, Json], path: Path) -> None:
        for key in body:
            if key in self._keys:
                continue
            since = {'condition': CONDITIONS_SINCE, 'external_id': EXTERNAL_ID_SINCE}.get(key)
            hint = f' It came with version {since}.' if since else self.document.problems.suggestion(key, self._keys)
            message = f'"{key}" is not a valid keyword inside a resource definition.{hint}'
            self.document.key_problem(message, (*path, key), InvalidTemplateSection)

    def _map(self, body: Mapping[str, Json], key: str, path: Path, scope: Compiling) -> Json:
        """Return a section of the resource, encoded: a map, or a call that may return one later."""
        encoded = self.folder.value(body.get(key), (*path, key), scope)
        if encoded is None:
            return {}
        if not isinstance(encoded, dict):
            self.document.problem(f'The {key} must be a map.', (*path, key))
            return {}
        return encoded

    def _depends_on(self, names: Json, path: Path, scope: Compiling) -> None:
        if names is None:
            return
        listed = isinstance(names, list)
        optional = dataclasses.replace(scope, absence=Absence.NULL)  # A resource that does not exist is no dependency.
        for index, name in enumerate(names if isinstance(names, list) else [names]):
            place = (*path, index) if listed else path
            if not isinstance(name, str):
                self.document.problem('depends_on must be the name of a resource, or a list of names.', place)
                continue
            try:
                require(name, optional)
            except ReferenceFailed as error:
                self.document.problem(str(error), place, InvalidTemplateReference)

    def _deletion_policy(self, policy: Json, path: Path, scope: Compiling) -> DeletionPolicy:
        if policy is None:
            return DeletionPolicy.DELETE
        encoded = self.folder.value(policy, path, scope.of(scope.subject))
        if encoded is None or (is_call(encoded) and not any(references(encoded))):
            return DeletionPolicy.DELETE
        names = {member.value: member for member in DeletionPolicy}
        lower = {member.value.lower(): member for member in DeletionPolicy}
        if isinstance(encoded, str) and encoded in names:
            return names[encoded]
        if isinstance(encoded, str) and encoded in lower:
            if self.version.date < LOWER_CASE_POLICIES_SINCE:
                message = f'Write {encoded.capitalize()}; lower case came with version {LOWER_CASE_POLICIES_SINCE}.'
                self.document.problem(message, path)
            return lower[encoded]
        hint = self.document.problems.suggestion(encoded, names) if isinstance(encoded, str) else ''
        self.document.problem(f'Invalid deletion policy; it must be one of {", ".join(names)}.{hint}', path)
        return DeletionPolicy.DELETE

    def _refuse_cycles(self, definitions: Mapping[str, Definition]) -> None:
        for cycle in cycles({name: definition.requires for name, definition in definitions.items()}):
            steps = []
            for name in cycle:
                place = self.document.key_place(('resources', name))
                steps.append(f'{name} (line {place.line})' if place.line else name)
            message = f'Circular Dependency Found: {" -> ".join(steps)}'
            self.document.key_problem(message, ('resources', cycle[0]), CircularDependencyException)
