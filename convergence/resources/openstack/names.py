"""Ids of names in properties, stored when they were applied: an id in place of its name is no change."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from convergence.core.model import Json

NAMES = '$names'
"""In the private data: for each path in the properties, the ids by name. Indexes of lists are left out of paths."""


def canonical(name: str, properties: Mapping[str, Json], data: Mapping[str, Json]) -> Mapping[str, Json]:
    """The properties with ids in place of the names of which it is known what they stand for.

    :param name: of the type.
    """
    known = data.get(NAMES)
    if not isinstance(known, dict):
        return properties
    changed: Any = properties
    for path, ids in known.items():
        if isinstance(ids, dict):
            changed = _replaced(changed, path.split('.'), ids)
    assert isinstance(changed, Mapping)
    return changed


def _replaced(value: Any, path: list[str], ids: Mapping[str, Json]) -> Any:
    if isinstance(value, list):
        return [_replaced(each, path, ids) for each in value]
    if not path:
        return ids.get(value, value) if isinstance(value, str) else value
    if isinstance(value, Mapping) and path[0] in value:
        return {**value, path[0]: _replaced(value[path[0]], path[1:], ids)}
    return value
