"""Checks a compiled template against the resource types, before anything is stored or made."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from types import MappingProxyType
from typing import Any

from convergence.core.model import Definition, DeletionPolicy, Json, Path
from convergence.errors import EntityNotFound, Place, Problem, ResourceTypeUnavailable, StackValidationFailed
from convergence.resources.attributes import attribute_names, has_attribute
from convergence.resources.contract import ResourceType
from convergence.resources.provider import Templates, TemplateType, facade_problems
from convergence.resources.reading import did_you_mean
from convergence.resources.registry import Registry
from convergence.resources.schema import PropertySchema
from convergence.template import Compiled, references
from convergence.template.limits import STANDARD
from convergence.template.mappings import is_template
from convergence.template.secrets import METADATA, PROPERTIES, within

UNKNOWN_PROPERTY = 'Unknown Property'
"""In the message about a property that a type does not have."""

UNKNOWN_TYPE = 'UnknownResourceType'
"""The kind of the problem that a resource type is not installed."""

UNAVAILABLE_TYPE = ResourceTypeUnavailable.__name__
"""The same where no type of its service is."""

_TEXT_OF = json.JSONEncoder(ensure_ascii=False).encode
_RAISED = {UNAVAILABLE_TYPE: ResourceTypeUnavailable}
"""The error to raise if all problems are of one kind, other than the usual error."""


def validate(
    compiled: Compiled,
    registry: Registry,
    *,
    ignore_unknown_types: bool = False,
    most_bytes: int = STANDARD.max_stored_bytes,
    defaults: Mapping[str, Json] | None = None,
    further: Iterable[Problem] = (),
    sound: Mapping[str, Definition] = MappingProxyType({}),
) -> list[Problem]:
    """Check types, properties, and the attributes that the template reads.

    A template from `convergence.template.analyse` may have errors already; then all errors are reported together,
    without consequences of others.

    :param ignore_unknown_types: True if a missing type is no error.
    :param most_bytes: maximum size of each kind of data that a resource may store.
    :param defaults: values of parameters in templates that are used as types, where a resource gives none.
    :param further: other problems that were found.
    :param sound: resources of a template that was valid before, under the same limits, by name. For those that are in
        this template too, only checks that make requests or depend on other resources are repeated.
    :returns: warnings, and the unknown types that were ignored, each with its first place.
    :raises StackValidationFailed: or a subclass, with every problem found, in the order of the document.
    """
    problems = compiled.problems.copy()
    warned = {''}  # a missing type was reported
    kinds: dict[str, ResourceType[Any]] = {}
    found: list[Problem] = []
    templates = Templates(compiled.templates, defaults or {})
    for name, definition in compiled.goal.definitions.items():
        if is_template(definition.type):
            found.extend(_of_template(compiled, definition, registry, templates, kinds))
            continue
        try:
            kinds[name] = registry.get(definition.type)
        except EntityNotFound as error:
            unknown = _unknown_type(compiled, definition, registry, str(error))
            if definition.type and not ignore_unknown_types:
                found.append(unknown)
            elif definition.type not in warned:
                problems.warn(unknown.message, unknown.place, unknown.kind)
                warned.add(definition.type)
    found += [*_snapshots(compiled, kinds), *_wrong_resources(compiled, kinds, most_bytes, sound)]
    found += [*_wrong_attributes(compiled, kinds), *further]
    for problem in found:
        if not _is_consequence(problem, compiled):
            problems.include(problem, _RAISED.get(problem.kind, StackValidationFailed))
    problems.raise_any()
    return problems.warnings()


def _unknown_type(compiled: Compiled, definition: Definition, registry: Registry, message: str) -> Problem:
    sort = UNKNOWN_TYPE if registry.missing_service(definition.type) is None else UNAVAILABLE_TYPE
    return Problem(message, compiled.place('resources', definition.name, 'type'), kind=sort)


def _is_consequence(problem: Problem, compiled: Compiled) -> bool:
    """Return True if a syntax error at the same place explains a problem. A wrong name is wrong with any value."""
    if problem.place is None or UNKNOWN_PROPERTY in problem.message:
        return False
    return compiled.problems.concerns(problem.place.source, problem.place.path)


def _of_template(
    compiled: Compiled,
    definition: Definition,
    registry: Registry,
    templates: Templates,
    kinds: dict[str, ResourceType[Any]],
) -> Iterator[Problem]:
    """Add the type that a template is to `kinds`, and yield its problems. A missing template was reported before."""

    def place() -> Place:
        return compiled.place('resources', definition.name, 'type')

    kind = templates.get(definition.type)
    if kind is None:
        message = templates.problem(definition.type)
        if message:
            yield Problem(message, place())
        return
    kinds[definition.name] = kind
    if definition.written_type in registry:
        for problem in facade_problems(definition.written_type, registry.get(definition.written_type), kind):
            yield Problem(problem.message, place())


def _snapshots(compiled: Compiled, kinds: Mapping[str, ResourceType[Any]]) -> Iterator[Problem]:
    """Refuse the deletion policy Snapshot for types that cannot follow it: the data that it promises to save would be
    lost.
    """
    for name, definition in compiled.goal.definitions.items():
        if (
            name in kinds
            and definition.deletion_policy is DeletionPolicy.SNAPSHOT
            and not kinds[name].keeps_snapshots_of_deleted()
        ):
            yield Problem(
                f'resources.{name} ({definition.type}): deletion_policy Snapshot is not supported by this type; '
                'use Delete or Retain',
                compiled.place('resources', name, 'deletion_policy'),
            )


def _wrong_resources(
    compiled: Compiled, kinds: Mapping[str, ResourceType[Any]], most_bytes: int, sound: Mapping[str, Definition]
) -> Iterator[Problem]:
    """Yield the problems of the resources one by one; see `validate`."""
    fresh = {name: each for name, each in compiled.goal.definitions.items() if sound.get(name) is not each}
    for name, kind in kinds.items():
        if name in fresh or not _is_known_by_itself(kind):
            yield from _wrong_properties(compiled, compiled.goal.definitions[name], kind)
    yield from _large(compiled, fresh, most_bytes)


def _is_known_by_itself(kind: ResourceType[Any]) -> bool:
    """Return True if the properties of a resource of a type can be checked without other resources."""
    if type(kind).cross_check is not ResourceType.cross_check or isinstance(kind, TemplateType):
        return False
    return all(each is None or PropertySchema.of(each).asks_nobody for each in (kind.Properties, kind.UpdatePolicy))


def _large(compiled: Compiled, definitions: Mapping[str, Definition], most: int) -> Iterator[Problem]:
    """Yield the resources that are too large for a worker to store."""
    for name, definition in definitions.items():
        for section, encoded in ((PROPERTIES, definition.properties), (METADATA, definition.metadata)):
            size = len(_TEXT_OF(encoded).encode()) if encoded else 0
            if size > most:
                told = f'the {section} have {size} bytes; the limit [limits] max_stored_bytes is {most}'
                yield Problem(f'resources.{name}: {told}', compiled.place('resources', name, section))


def _wrong_properties(compiled: Compiled, definition: Definition, kind: ResourceType[Any]) -> list[Problem]:
    located: list[tuple[Place, Path]] = []

    def place(*path: str | int) -> Place | None:
        found = compiled.place('resources', definition.name, 'properties', *path)
        located.append((found, ('resources', definition.name, 'properties', *path)))
        return found

    def told(problem: Problem) -> Place | None:
        """The place of a problem: that of the key where it is the name which is wrong."""
        if UNKNOWN_PROPERTY not in problem.message:
            return problem.place
        return next((compiled.key_place(*path) for found, path in located if found is problem.place), problem.place)

    if definition.external_id is not None:
        return []  # the object exists outside of the stack; its properties do not count
    schema = PropertySchema.of(kind.Properties)
    problems = schema.check_encoded(definition.properties, place, within(definition.hidden, PROPERTIES))
    if (
        not problems and type(kind).cross_check is not ResourceType.cross_check
    ):  # evaluate the known values only if a hook uses them
        known = schema.known(definition.properties)
        problems = [Problem(message, place()) for message in kind.cross_check(known, compiled.goal.definitions.keys())]
    problems += _wrong_policy(compiled, definition, kind)
    about = f'resources.{definition.name} ({definition.type}): '
    return [Problem(about + problem.message, told(problem)) for problem in problems]


def _wrong_policy(compiled: Compiled, definition: Definition, kind: ResourceType[Any]) -> list[Problem]:
    if kind.UpdatePolicy is None:
        return []

    def place(*path: str | int) -> Place | None:
        return compiled.place('resources', definition.name, 'update_policy', *path)

    return PropertySchema.of(kind.UpdatePolicy).check_encoded(definition.update_policy, place)


def _wrong_attributes(compiled: Compiled, kinds: dict[str, ResourceType[Any]]) -> Iterator[Problem]:
    for encoded, path in _askers(compiled):
        for name, keys in references(encoded)[1].items():
            if name not in kinds:
                continue
            for key in sorted(keys):
                if has_attribute(kinds[name], key):
                    continue
                suggestion = did_you_mean(key, attribute_names(kinds[name]))
                yield Problem(
                    f'The Referenced Attribute ({name} {key}) does not exist: '
                    f'{compiled.goal.definitions[name].type} has no attribute {key}{suggestion}',
                    compiled.place(*path),
                )


def _askers(compiled: Compiled) -> Iterator[tuple[Json, Path]]:
    """Encoded values small enough to be found in the document, with their paths."""
    for name, definition in compiled.goal.definitions.items():
        if definition.uses:
            yield from _parts(definition.properties, ('resources', name, 'properties'))
            yield from _parts(definition.metadata, ('resources', name, 'metadata'))
    for name, output in compiled.outputs.items():
        yield from _parts(output.value, ('outputs', name, 'value'))


def _parts(encoded: Json, path: Path) -> Iterator[tuple[Json, Path]]:
    # A key with a dollar sign belongs to the encoding, not to the document: there the descent ends.
    if isinstance(encoded, dict) and not any(key.startswith('$') for key in encoded):
        for key, value in encoded.items():
            yield from _parts(value, (*path, key))
    elif isinstance(encoded, list):
        for index, item in enumerate(encoded):
            yield from _parts(item, (*path, index))
    else:
        yield encoded, path
