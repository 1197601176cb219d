"""Dependencies that a template leaves out and that resource types add."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import Any

from convergence.core.model import Definition, Goal, Json
from convergence.resources.contract import FutureValue, Outline, ResourceType
from convergence.resources.registry import Registry
from convergence.resources.schema import PropertySchema
from convergence.resources.translation import translated
from convergence.template import Compiled, Previewed
from convergence.template.encoding import entries_of, function_of
from convergence.template.functions import BY_CODE
from convergence.values import replace

Implied = Mapping[str, tuple[str, ...]]
"""The dependencies of resources by name. Resources without any are left out."""


def ask_for_implied(compiled: Compiled, registry: Registry) -> Implied:
    """Return the dependencies that the types of a template add."""
    kinds = {
        name: registry.get(definition.type)
        for name, definition in compiled.goal.definitions.items()
        if definition.type in registry
    }
    telling = [name for name, kind in kinds.items() if kind.implements('implied')]
    if not telling:
        return {}
    outlines = {name: _outline(each, kinds.get(name)) for name, each in compiled.goal.definitions.items()}
    said = {name: tuple(kinds[name].implied(outlines[name], outlines)) for name in telling}
    return {name: names for name, names in said.items() if names}


def with_implied(compiled: Compiled, implied: Implied) -> Compiled:
    """The template with further requirements. One that would close a circle is left out: the template wins.

    The same for the same arguments: the order in which requirements are tried is that of the template.
    """
    requires = {name: list(each.requires) for name, each in compiled.goal.definitions.items()}
    added = {name: _added(name, implied[name], requires) for name in requires if name in implied}
    definitions = {name: _requiring(each, added.get(name, ())) for name, each in compiled.goal.definitions.items()}
    return replace(compiled, goal=Goal(definitions, compiled.goal.asked)) if any(added.values()) else compiled


def implied_in(definitions: Mapping[str, Definition]) -> Implied:
    """Return the added dependencies that are stored with a goal."""
    return {name: each.implied for name, each in definitions.items() if each.implied}


def _added(name: str, wanted: Iterable[str], requires: dict[str, list[str]]) -> tuple[str, ...]:
    """Note the requirements of a resource that are new and close no circle; which these are, sorted."""
    added = []
    for required in sorted(set(wanted) & set(requires)):
        if required not in requires[name] and not _leads(required, name, requires):
            requires[name].append(required)
            added.append(required)
    return tuple(added)


def _leads(start: str, end: str, requires: Mapping[str, Iterable[str]]) -> bool:
    """Return True if a resource requires another one, directly or not. Each resource requires itself."""
    seen, pending = {start}, [start]
    while pending:
        name = pending.pop()
        if name == end:
            return True
        further = [each for each in requires.get(name, ()) if each not in seen]
        seen.update(further)
        pending += further
    return False


def _requiring(definition: Definition, added: tuple[str, ...]) -> Definition:
    return (
        replace(definition, requires=tuple(sorted({*definition.requires, *added})), implied=added)
        if added
        else definition
    )


def _outline(definition: Definition, kind: ResourceType[Any] | None) -> Outline:
    known = _known(definition.properties)
    properties = known if isinstance(known, dict) else {}
    if kind is not None:
        properties, _ = translated(PropertySchema.of(kind.Properties).rules, properties)
    return Outline(definition.name, definition.type, properties)


def _known(encoded: Json) -> Previewed:
    """Return the value with a `FutureValue` for each part that depends on other resources."""
    found = function_of(encoded)
    if found:
        code, argument = found
        function = BY_CODE.get(code)
        resource, attribute = (function.reference(argument) if function is not None else None) or ('', None)
        return FutureValue(json.dumps(encoded, sort_keys=True), resource, attribute)
    if isinstance(encoded, dict):
        return {key: _known(value) for key, value in (entries_of(encoded) or {}).items()}
    if isinstance(encoded, list):
        return [_known(value) for value in encoded]
    return encoded
