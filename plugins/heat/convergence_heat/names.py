"""Ids of names in properties, found when they were applied: an id in place of its name is no change."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any


def names_in(properties: Any, given: Mapping[str, Any]) -> dict[str, dict[str, str]]:
    """Return the ids of the names in properties.

    :param properties: of Heat, which has resolved the names that its class uses.
    :param given: the same as in the template, by their current names.
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
