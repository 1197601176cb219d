"""Derives the submission of a nested stack from the submission of its parent stack. Pure."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping
from typing import Any

from convergence.core.model import Definition, Json
from convergence.core.rows import Stack
from convergence.engine.compile.submission import Submission
from convergence.resources.contract import ResourceType
from convergence.resources.nested import NestedType
from convergence.resources.nesting import DesiredStack
from convergence.template import Compiled, Limits
from convergence.template.environment import DRIFT_POLICIES, ENCRYPTED
from convergence.template.mappings import SECTION, fits
from convergence.template.problems import Problems
from convergence.template.secrets import METADATA, PROPERTIES, within
from convergence.template.sources import read
from convergence.values import replace

DEFAULTS = 'parameter_defaults'
UPDATE_POLICY = 'update_policy'
ASKED = 'asked'
LONGEST_NAME = 255
_ASKING = ('resource_facade', 'ResourceFacade')


def submission_of(
    parent: Submission,
    definition: Definition,
    wanted: DesiredStack,
    facade: Mapping[str, Json] | None = None,
    asked: Mapping[str, tuple[str, ...]] | None = None,
) -> Submission:
    """The submission for a nested stack.

    It contains the mappings and parameter defaults of the parent stack, the values that the resource gives, and the
    files that the nested templates may read. Hidden values stay hidden.

    :param parent: submission of the stack that contains the resource.
    :param facade: see `facade_of`.
    :param asked: see `Submission.asked`.
    """
    environment = inherited(parent.environment, definition)
    if wanted.types:
        registry = environment.get(SECTION)
        environment[SECTION] = {**wanted.types, **(registry if isinstance(registry, dict) else {})}
    given: dict[str, Json] = {name: value for name, value in wanted.parameters.items() if value is not None}
    if given:
        environment['parameters'] = given
    properties = {str(path[0]) for path in within(definition.masked_paths, PROPERTIES) if path}
    hidden = sorted((properties | wanted.hidden) & set(given))
    if hidden:
        names: list[Json] = [*hidden]
        environment[ENCRYPTED] = names
    template: str | dict[str, Json] = wanted.template if isinstance(wanted.template, str) else dict(wanted.template)
    files = reachable(parent.files, [_text(template), _text(environment.get(SECTION))])
    return Submission(template, environment, files, facade=facade or {}, asked=asked or {})


def facade_of(definition: Definition, files: Mapping[str, str], known: Mapping[str, Json]) -> dict[str, Json]:
    """The values that a template can read from the resource it implements; empty if the template reads none.

    :param files: files of the stack that contains the resource.
    :param known: metadata and update policy of the resource, as far as they are known.
    """
    text = files.get(definition.type, '')
    if not any(word in text for word in _ASKING):
        return {}
    hidden = bool([*within(definition.masked_paths, METADATA)])
    return {**known, 'deletion_policy': definition.deletion_policy.value, 'hidden': hidden}


def inherited(environment: Mapping[str, Json], definition: Definition) -> dict[str, Json]:
    """The sections of an environment that apply to a nested stack, too.

    The mapping that made the resource a nested stack does not apply inside: a template that implements a type may use
    that type itself.
    """
    sections: dict[str, Json] = {}
    registry = environment.get(SECTION)
    if isinstance(registry, dict):
        inner = {key: value for key, value in registry.items() if key not in ('resources', definition.written_type)}
        about = _about(registry.get('resources'), definition.name)
        sections[SECTION] = {**inner, 'resources': about} if about else inner
    defaults = environment.get(DEFAULTS)
    if isinstance(defaults, dict) and defaults:
        sections[DEFAULTS] = defaults
    policies = environment.get(DRIFT_POLICIES)
    if isinstance(policies, dict):
        sections[DRIFT_POLICIES] = policies
    return {name: section for name, section in sections.items() if section}


def _about(resources: Json, name: str) -> dict[str, Json]:
    """The registry entries of an environment that concern resources inside of a nested stack."""
    said: dict[str, Json] = {}
    for pattern, body in resources.items() if isinstance(resources, dict) else ():
        if isinstance(body, dict) and fits(name, pattern):
            said |= {key: value for key, value in body.items() if isinstance(value, dict)}
    return said


def reachable(files: Mapping[str, str], texts: Iterable[str]) -> dict[str, str]:
    """The files whose names occur in some texts, or in the text of such a file."""
    found: dict[str, str] = {}
    unread = list(texts)
    while unread and len(found) < len(files):
        text = unread.pop()
        new = [name for name in files if name not in found and name in text]
        found |= {name: files[name] for name in new}
        unread += [files[name] for name in new]
    return {name: files[name] for name in files if name in found}


def asked_inside(kind: ResourceType[Any], definition: Definition, wanted: DesiredStack) -> dict[str, tuple[str, ...]]:
    """The attributes that the parent stack reads from the resources of a nested stack, by resource name."""
    if not definition.asked or not isinstance(kind, NestedType):
        return {}
    source = wanted.template
    document = read(source, 'template', Limits(), Problems()).root if isinstance(source, str) else source
    resources = document.get('resources', document.get('Resources')) if isinstance(document, Mapping) else None
    names = [*resources] if isinstance(resources, Mapping) else []
    found: dict[str, set[str]] = {}
    for asked in definition.asked:
        for name, attribute in kind.asked_of_members(asked, names).items():
            found.setdefault(name, set()).add(attribute)
    return {name: tuple(sorted(found[name])) for name in names if name in found}


def with_asked(compiled: Compiled, submission: Submission) -> Compiled:
    """Add the attributes that the parent stack reads from the resources."""
    goal, asked = compiled.goal, submission.asked
    more = {name: {*goal.asked.get(name, ()), *asked[name]} for name in asked if name in goal.definitions}
    every = {**goal.asked, **{name: tuple(sorted(attributes)) for name, attributes in more.items()}}
    return replace(compiled, goal=replace(goal, asked=every)) if more else compiled


def digest_of(parent: Submission, definition: Definition) -> str:
    """Digest of the sources of a nested stack other than the properties of its resource; 64 hexadecimal digits."""
    environment = inherited(parent.environment, definition)
    files = reachable(parent.files, [definition.type, _text(definition.properties), _text(environment.get(SECTION))])
    said = {METADATA: definition.metadata, UPDATE_POLICY: definition.update_policy}
    asked: dict[str, Json] = {ASKED: [*definition.asked]} if definition.asked else {}
    whole = [
        environment,
        files,
        facade_of(definition, parent.files, said),
        asked,
    ]
    text = json.dumps([each for each in whole if each != {}], sort_keys=True, separators=(',', ':'))
    return hashlib.sha256(text.encode()).hexdigest()


def told_by_members(kind: ResourceType[Any], asked: Iterable[str]) -> list[str]:
    """The attributes of a resource that the resources of its nested stack provide."""
    return [name for name in asked if isinstance(kind, NestedType) and kind.is_told_by_members(name)]


def with_nested(definition: Definition, parent: Submission, asked: Iterable[str] = ()) -> Definition:
    """The stored definition of a resource that is a nested stack.

    :param asked: attributes that others read and that the resources of the nested stack provide.
    """
    asking = replace(definition, asked=tuple(sorted(asked)))
    return replace(asking, nested=digest_of(parent, asking))


def name_of(parent: Stack, resource_name: str, stack_id: str) -> str:
    """A unique name for a nested stack, made of the names of its parent stack and its resource."""
    end = stack_id.replace('-', '')[:12]
    beginning = f'{parent.name}-{resource_name}'
    return f'{beginning[: LONGEST_NAME - len(end) - 1]}-{end}'


def _text(value: Json | Mapping[str, Json]) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
