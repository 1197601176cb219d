"""Old names of properties, and their current meaning.

A dataclass of properties lists rules in the class attribute `TRANSLATIONS`. They are applied in order to the values of
a template before any other part reads them. So the old names need not be declared, a template that changes from the
old name to the new one changes nothing, and the code of the type knows only the new names.

A path names a property; further elements lead into maps, and into each item of a list: ``('networks', 'uuid')``.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

from convergence.template import Previewed

PropertyPath: TypeAlias = tuple[str, ...]
PropertyConflict: TypeAlias = tuple[tuple[str | int, ...], str]
"""The place where two names were given for one thing, and a sentence about it."""


@dataclass(frozen=True, slots=True)
class Rename:
    """The property at the path is now called `to`, beside it in the same map."""

    path: PropertyPath
    to: str

    def apply(self, properties: dict[str, Any]) -> Iterator[PropertyConflict]:
        """Rewrite the properties in place; yield the conflicts."""
        for around, place in _maps_around(properties, self.path):
            name = self.path[-1]
            value = around.pop(name)
            if value is None:
                continue
            if around.get(self.to) is not None:
                yield (*place, name), f'{name} is the old name of {self.to}; give only one of them'
            else:
                around[self.to] = value


@dataclass(frozen=True, slots=True)
class Append:
    """The property at the path was a single item of the present list `to`, beside it in the same map."""

    path: PropertyPath
    to: str

    def apply(self, properties: dict[str, Any]) -> Iterator[PropertyConflict]:
        """See `Rename.apply`."""
        for around, place in _maps_around(properties, self.path):
            name = self.path[-1]
            value, present = around.pop(name), around.get(self.to)
            if value is None:
                continue
            if present is not None and not isinstance(present, list):
                yield (*place, name), f'{name} is added to {self.to}, which is no list here; give only one of them'
            else:
                around[self.to] = [*(present or []), value]


@dataclass(frozen=True, slots=True)
class Drop:
    """The property at the path has no meaning any more; its value is ignored."""

    path: PropertyPath

    def apply(self, properties: dict[str, Any]) -> Iterator[PropertyConflict]:
        """See `Rename.apply`."""
        for around, _ in _maps_around(properties, self.path):
            del around[self.path[-1]]
        yield from ()


@dataclass(frozen=True, slots=True)
class Rewrite:
    """The value at the path may be written in several ways; `into` returns the canonical one.

    :param into: must not raise. It is not called for unknown values. It may get values of a wrong type, which it
        returns unchanged.
    """

    path: PropertyPath
    into: Callable[[Any], Any]

    def apply(self, properties: dict[str, Any]) -> Iterator[PropertyConflict]:
        """See `Rename.apply`."""
        for around, _ in _maps_around(properties, self.path):
            value = around[self.path[-1]]
            if value is None or isinstance(value, bool | int | float | str | list | dict):
                around[self.path[-1]] = self.into(value)
        yield from ()


Rule: TypeAlias = Rename | Append | Drop | Rewrite


def translated(rules: Sequence[Rule], properties: Mapping[str, Any]) -> tuple[dict[str, Any], list[PropertyConflict]]:
    """Return the properties under their current names, and their conflicts. The argument is not changed."""
    if not rules:
        return dict(properties), []
    result = _copied(dict(properties))
    return result, [conflict for rule in rules for conflict in rule.apply(result)]


def _copied(value: Any) -> Previewed:
    # Only maps and lists are written to. What stands for an unknown value must stay the very same.
    if isinstance(value, dict):
        return {key: _copied(inner) for key, inner in value.items()}
    if isinstance(value, list):
        return [_copied(inner) for inner in value]
    return copy.copy(value) if isinstance(value, Mapping) else value


def _maps_around(
    value: Any, path: PropertyPath, place: tuple[str | int, ...] = ()
) -> Iterator[tuple[dict[str, Any], tuple[str | int, ...]]]:
    """The maps that have the last element of the path, each with where it stands."""
    if isinstance(value, list):
        for index, item in enumerate(value):
            yield from _maps_around(item, path, (*place, index))
    elif isinstance(value, dict) and path[0] in value:
        if len(path) == 1:
            yield value, place
        else:
            yield from _maps_around(value[path[0]], path[1:], (*place, path[0]))
