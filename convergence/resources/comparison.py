"""The effect of a change of properties on the physical object. Pure."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from convergence.core.model import Change, Json
from convergence.errors import NotSupported
from convergence.resources.contract import Call, ResourceType
from convergence.resources.schema import PropertySchema, exact_text


def compare(
    kind: ResourceType[Any],
    previous: Mapping[str, Json],
    desired: Mapping[str, Json],
    call_factory: Callable[[], Call[Any]],
    data: Mapping[str, Json] | None = None,
) -> Change:
    """Return how `kind` reaches the desired properties from those that were last applied.

    :param data: private data of the resource.
    :param call_factory: makes the `Call` with `previous` set; called only if the type itself must decide.
    :raises NotSupported: an immutable property would change.
    """
    schema = PropertySchema.of(kind.Properties)
    changed = changed_properties(kind, previous, desired, data)
    if not changed:
        return Change.NONE
    declared = [schema.properties[name] for name in sorted(changed) if name in schema.properties]
    immutable = [entry.name for entry in declared if entry.immutable]
    if immutable:
        raise NotSupported(
            f'The properties {", ".join(immutable)} are immutable and may not be changed; '
            'keep their values or give the resource a new name'
        )
    if any(not entry.update_allowed for entry in declared):
        return Change.REPLACE
    return Change.REPLACE if kind.needs_replacement(call_factory()) else Change.IN_PLACE


def changed_properties(
    kind: ResourceType[Any],
    previous: Mapping[str, Json],
    desired: Mapping[str, Json],
    data: Mapping[str, Json] | None = None,
) -> frozenset[str]:
    """Names of the properties whose meaning differs, to the schema and to the type.

    :param data: private data of the resource.
    """
    schema = PropertySchema.of(kind.Properties)
    changed = schema.changed(previous, desired)
    if not changed:
        return changed
    before, after = (kind.canonical(schema.canonical(each), data or {}) for each in (previous, desired))
    return frozenset(name for name in changed if exact_text(before.get(name)) != exact_text(after.get(name)))
