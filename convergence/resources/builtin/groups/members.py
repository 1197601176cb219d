"""The members of a group, as resources of the template of a nested stack. Pure.

The data of a member are literal: the template of the members repeats them word by word. Values that must be masked,
and values that look like a function, go into parameters of the nested stack.
"""

from __future__ import annotations

import itertools
import json
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from convergence.core.model import Json, Path
from convergence.resources.nesting import DesiredStack, NestingContext
from convergence.template import UNKNOWN
from convergence.template.lookalikes import function_names

VERSION = '2021-04-16'
GET = 'get_param'
NOT_KNOWN = 'unknown'
"""The parameter for values that are not known yet, in a template that is only checked."""

JsonObject = dict[str, Json]
"""A resource as a template writes it."""


@dataclass(frozen=True, slots=True)
class GroupMember:
    """One member of a group.

    :param body: the resource as a template writes it, without any function.
    :param masked_paths: places of values to mask.
    """

    body: Mapping[str, Json]
    masked_paths: tuple[Path, ...] = ()


def member(
    type_name: str,
    properties: Mapping[str, Json] | None = None,
    metadata: Mapping[str, Json] | None = None,
    *,
    depends_on: Sequence[str] = (),
    masked_paths: Iterable[Path] = (),
) -> GroupMember:
    """Return a member of a type.

    :param properties: those that are null count as not given.
    :param depends_on: names of the members that must exist first.
    :param masked_paths: places of values to mask: paths that begin with ``properties`` or ``metadata``.
    """
    body: JsonObject = {'type': type_name}
    given: JsonObject = {name: value for name, value in (properties or {}).items() if value is not None}
    if given:
        body['properties'] = given
    if metadata:
        body['metadata'] = dict(metadata)
    if depends_on:
        body['depends_on'] = [*depends_on]
    return GroupMember(body, tuple(masked_paths))


def indexed(value: Json, variable: str, index: str) -> Json:
    """A value with an index put in for a variable, wherever it occurs in a text; keys of maps stay unchanged."""
    if isinstance(value, str):
        return value.replace(variable, index)
    if isinstance(value, dict):
        return {key: indexed(item, variable, index) for key, item in value.items()}
    if isinstance(value, list):
        return [indexed(item, variable, index) for item in value]
    return value


def numbers(without: Collection[str] = ()) -> Iterator[str]:
    """Names of members: ``0``, ``1`` and so on, without some of them. No end."""
    return (name for name in map(str, itertools.count()) if name not in without)


def first_numbers(count: int, without: Collection[str] = ()) -> list[str]:
    """The first so many of `numbers`."""
    return list(itertools.islice(numbers(without), count))


def nested_template(
    members: Mapping[str, GroupMember],
    outputs: Mapping[str, Json] | None = None,
    *,
    description: str = '',
    more: bool = False,
    pause_s: float = 0.0,
) -> DesiredStack:
    """The stack that has some members. The same members make the same stack.

    :param members: by name.
    :param outputs: values by name; as a template writes them.
    :param more: see `DesiredStack`, as is `pause_s`.
    """
    parameters = _Parameters()
    resources: JsonObject = {name: parameters.body(each) for name, each in members.items()}
    template: JsonObject = {'heat_template_version': VERSION}
    if description:
        template['description'] = description
    if parameters.declared:
        template['parameters'] = parameters.declared
    template['resources'] = resources
    if outputs:
        template['outputs'] = {name: {'value': value} for name, value in outputs.items()}
    return DesiredStack(template, parameters.values, more, pause_s, frozenset(parameters.hidden))


def present_members(context: NestingContext) -> dict[str, GroupMember]:
    """The members that a nested stack is to have by now, in the order of its template: what `nested_template` made."""
    template = context.present or {}
    resources, hidden = template.get('resources'), hidden_names(template)
    found: dict[str, GroupMember] = {}
    for name, body in resources.items() if isinstance(resources, dict) else ():
        masked_paths: list[Path] = []
        plain = _plain(body, context.present_parameters, hidden, (), masked_paths)
        assert isinstance(plain, dict)
        found[name] = GroupMember(plain, tuple(masked_paths))
    return found


def hidden_names(template: Mapping[str, Json]) -> frozenset[str]:
    """The names of the hidden parameters of a template that `nested_template` made."""
    declared = template.get('parameters')
    entries = declared.items() if isinstance(declared, dict) else ()
    return frozenset(name for name, about in entries if isinstance(about, dict) and about.get('hidden'))


def output_of(context: NestingContext, name: str) -> Json:
    """Return the value of an output of the present template; null if there is none."""
    outputs = (context.present or {}).get('outputs')
    output = outputs.get(name) if isinstance(outputs, dict) else None
    return output.get('value') if isinstance(output, dict) else None


@dataclass
class _Parameters:
    """The parameters of a nested template, each value once."""

    declared: JsonObject = field(default_factory=dict)
    values: JsonObject = field(default_factory=dict)
    hidden: set[str] = field(default_factory=set)
    _known: dict[tuple[bool, str], str] = field(default_factory=dict)

    def body(self, each: GroupMember) -> JsonObject:
        """A member as the template writes it."""
        return {key: self._section(value, key, each.masked_paths) for key, value in each.body.items()}

    def _section(self, value: Json, key: str, masked_paths: Sequence[Path]) -> Json:
        below = [path[1:] for path in masked_paths if path and path[0] == key]
        if key not in ('properties', 'metadata'):
            return value
        if not isinstance(value, dict):
            return self.written(value, ())
        if () in below:
            below = [(name,) for name in value]
        return {
            name: self.written(item, [path[1:] for path in below if path[0] == name]) for name, item in value.items()
        }

    def written(self, value: Any, masked_paths: Sequence[Path]) -> Json:
        """A value as the template writes it."""
        if value is UNKNOWN:
            self.declared[NOT_KNOWN] = {'type': 'json'}
            return {GET: NOT_KNOWN}
        return self._known_value(value, masked_paths)

    def _known_value(self, value: Json, masked_paths: Sequence[Path]) -> Json:
        if () in masked_paths:
            return value if value is None else self._named(value, is_hidden=True)
        if isinstance(value, dict):
            if len(value) == 1 and not function_names().isdisjoint(value):
                return self._named(value, is_hidden=bool(masked_paths))
            return {
                key: self.written(item, [path[1:] for path in masked_paths if path[0] == key])
                for key, item in value.items()
            }
        if isinstance(value, list):
            return [
                self.written(item, [path[1:] for path in masked_paths if path[0] == index])
                for index, item in enumerate(value)
            ]
        return value

    def _named(self, value: Json, *, is_hidden: bool) -> Json:
        key = (is_hidden, json.dumps(value, sort_keys=True))
        name = self._known.get(key)
        if name is None:
            name = self._known[key] = f'{"hidden" if is_hidden else "value"}_{len(self._known)}'
            about: JsonObject = {'type': _type_of(value)}
            if is_hidden:
                about['hidden'] = True
                self.hidden.add(name)
            self.declared[name], self.values[name] = about, value
        return {GET: name}


def _type_of(value: Json) -> str:
    if isinstance(value, bool):
        return 'boolean'
    if isinstance(value, int | float):
        return 'number'
    return 'string' if isinstance(value, str) else 'json'


def _plain(
    value: Json, parameters: Mapping[str, Json], hidden: Collection[str], path: Path, masked_paths: list[Path]
) -> Json:
    """A value without the calls that `_Parameters` has written."""
    if isinstance(value, dict):
        name = value.get(GET) if len(value) == 1 else None
        if isinstance(name, str):
            if name in hidden:
                masked_paths.append(path)
            return parameters.get(name)
        return {key: _plain(item, parameters, hidden, (*path, key), masked_paths) for key, item in value.items()}
    if isinstance(value, list):
        return [_plain(item, parameters, hidden, (*path, index), masked_paths) for index, item in enumerate(value)]
    return value
