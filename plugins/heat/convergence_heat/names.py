"""What names in properties stand for, found out when they were applied: an id in place of its name is no change."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from convergence.core.model import Json

NAMES = '$names'
"""In the private data: for each path in the properties, the ids by name. Indexes of lists are left out of paths."""


def names_in(properties: Any, given: Mapping[str, Any]) -> dict[str, dict[str, str]]:
    """What the names in properties stand for.

    :param properties: of Heat, which has looked up what its class has asked for.
    :param given: the same as the template has them, by their names of today.
    """
    found: dict[str, dict[str, str]] = {}
    translation = properties.translation
    for place, meant in translation.resolved_translations.items():
        path = translation.cast_key_to_rule(place)
        if not any(rule.rule == rule.RESOLVE for rule in translation._rules.get(path, ())):
            continue
        for name, object_id in _pairs(_at(given, place.split('.')), meant):
            found.setdefault(path, {})[name] = object_id
    return found


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


def _at(value: Any, path: list[str]) -> Any:
    for key in path:
        if isinstance(value, list) and key.isdigit() and int(key) < len(value):
            value = value[int(key)]
        else:
            value = value.get(key) if isinstance(value, Mapping) else None
    return value


def _pairs(given: Any, meant: Any) -> Iterator[tuple[str, str]]:
    if isinstance(given, list) and isinstance(meant, list) and len(given) == len(meant):
        for one, other in zip(given, meant, strict=True):
            yield from _pairs(one, other)
    elif isinstance(given, str) and isinstance(meant, str) and given != meant:
        yield given, meant


def _replaced(value: Any, path: list[str], ids: Mapping[str, Json]) -> Any:
    if isinstance(value, list):
        return [_replaced(each, path, ids) for each in value]
    if not path:
        return ids.get(value, value) if isinstance(value, str) else value
    if isinstance(value, Mapping) and path[0] in value:
        return {**value, path[0]: _replaced(value[path[0]], path[1:], ids)}
    return value
