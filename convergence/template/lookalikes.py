"""Finds maps that look like function calls but are data in the version of the template.

Such a map would silently become a property, an output or the data of a server. A function of another version or dialect
is therefore an error, and a misspelt name of a function is a warning.
"""

from __future__ import annotations

import difflib
import functools
from collections.abc import Callable, Mapping

from convergence.core.model import Json, Path
from convergence.template.document import ParsedDocument
from convergence.template.versions import DIALECTS, HEAT_KEY, KEY, VERSIONS, Version

MOST_COMPARED = 100
"""Maximum number of names in a document that are compared with those of functions. Each comparison takes time."""

LONGEST_COMPARED = 32
"""Maximum number of characters of a compared name. No name of a function is half as long."""

_LIKENESS = 0.8
_SHORTEST = 5
"""Minimum number of characters of a name that can count as misspelt."""

_ORDINARY = frozenset({'if', 'filter', 'contains', 'digest'})
"""Names of functions that are also ordinary words, which users write as keys."""

_INSTEAD = {
    'Ref': 'get_resource or get_param',
    'Fn::GetAtt': 'get_attr',
    'Fn::Join': 'list_join',
    'Fn::Select': 'get_param or get_attr, with the index or key as one more item',
    'Fn::Split': 'str_split',
    'Fn::Replace': 'str_replace',
    'Fn::Base64': 'the text itself',
    'Fn::ResourceFacade': 'resource_facade',
    'Fn::If': 'if',
    'Fn::FindInMap': 'get_param with keys, of a parameter of the type json',
    'get_param': 'Ref',
    'get_resource': 'Ref',
    'get_attr': 'Fn::GetAtt',
    'list_join': 'Fn::Join',
    'str_split': 'Fn::Split',
    'str_replace': 'Fn::Replace',
    'resource_facade': 'Fn::ResourceFacade',
    'if': 'Fn::If',
}
"""The replacement in the other dialect, or in later versions."""

HasShape = Callable[[Json], bool]


def _texts(argument: Json) -> bool:
    return isinstance(argument, str)


def _items(least: int, most: int | None = None) -> HasShape:
    """Return the shape of a list with a number of items."""
    return lambda argument: isinstance(argument, list) and least <= len(argument) <= (most or len(argument))


def _keys(*required: str) -> HasShape:
    """Return the shape of a map with at least these keys."""
    return lambda argument: isinstance(argument, dict) and all(key in argument for key in required)


_REPLACEMENT = _keys('template', 'params')
SHAPES: Mapping[str, HasShape] = {
    'get_param': lambda argument: isinstance(argument, str) or _items(1)(argument),
    'get_resource': _texts,
    'get_attr': _items(1),
    'get_file': _texts,
    'str_replace': _REPLACEMENT,
    'str_replace_strict': _REPLACEMENT,
    'str_replace_vstrict': _REPLACEMENT,
    'list_join': _items(2),
    'resource_facade': _texts,
    'repeat': _keys('template', 'for_each'),
    'digest': _items(2, 2),
    'str_split': _items(2, 3),
    'map_merge': _items(1),
    'yaql': _keys('expression'),
    'map_replace': _items(2, 2),
    'if': _items(2, 3),
    'filter': _items(2, 2),
    'make_url': lambda argument: _keys('host')(argument) or _keys('scheme')(argument),
    'list_concat': _items(1),
    'list_concat_unique': _items(1),
    'contains': _items(2, 2),
    'equals': _items(2, 2),
    'and': _items(2),
    'or': _items(2),
    'not': lambda argument: isinstance(argument, str | dict),
}
"""The outer shapes of function arguments. Missing functions accept any argument."""


class Lookalikes:
    """Checks the maps with one key that are no calls, in one document."""

    def __init__(self, document: ParsedDocument, version: Version) -> None:
        self._document = document
        self._version = version
        self._foreign = _foreign(version.key, version.date)
        self._near: dict[str, tuple[str, ...]] = {}

    def refuse(self, name: str, argument: Json, path: Path) -> bool:
        """Report a map that looks like a call. Return True for an error, False for a warning or none.

        :param name: the only key of the map.
        :param argument: its unevaluated value.
        :param path: the path of the value.
        """
        if name in self._foreign:
            if not _fits(name, argument):
                return False
            self._document.key_problem(self._foreign[name], path)
            return True
        if name in self._version.conditions:
            if _fits(name, argument):
                message = f'{name} is a function of conditions only; here it is data.'
                self._document.key_warning(f'{message} Declare a condition, and use it in the function if.', path)
            return False
        meant = next((near for near in self._names_near(name) if _fits(near, argument)), None)
        if meant is not None:
            self._document.key_warning(f'{name} is no function, so this is data. Did you mean "{meant}"?', path)
        return False

    def _names_near(self, name: str) -> tuple[str, ...]:
        """Return the functions of the version with similar names, the most similar first."""
        if name not in self._near:
            if len(name) > LONGEST_COMPARED or len(self._near) >= MOST_COMPARED:
                return ()
            self._near[name] = self._compared(name)
        return self._near[name]

    def _compared(self, name: str) -> tuple[str, ...]:
        normal = name.lower().replace('-', '_').replace(' ', '_')
        functions = {each.lower(): each for each in self._version.functions if each not in _ORDINARY}
        if normal in functions:
            return (functions[normal],)
        if len(name) < _SHORTEST:
            return ()
        return tuple(functions[each] for each in difflib.get_close_matches(normal, functions, cutoff=_LIKENESS))


def _fits(name: str, argument: Json) -> bool:
    shape = SHAPES.get(name)
    if shape is None or shape(argument):
        return True
    # The argument may be computed; a call is a map with one key.
    return isinstance(argument, dict) and len(argument) == 1 and next(iter(argument)) in function_names()


@functools.cache
def function_names() -> frozenset[str]:
    """Return the names of the functions of all versions."""
    return frozenset(name for table in DIALECTS.values() for version in table.values() for name in version.functions)


@functools.cache
def _foreign(key: str, date: str) -> Mapping[str, str]:
    """Return the functions that a version lacks and others have, each with its error text."""
    own = DIALECTS[key][date]
    reasons: dict[str, str] = {}
    for other_key, versions in DIALECTS.items():
        for version in versions.values():
            for name in {**version.functions, **(version.conditions if version.is_cloud else {})}:
                if name in own.functions or name in own.conditions or name in reasons or name == 'Condition':
                    continue
                reasons[name] = _reason(name, own, other_key, version)
    return reasons


def _reason(name: str, own: Version, key: str, version: Version) -> str:
    instead = f' Write {_INSTEAD[name]}.' if name in _INSTEAD else ''
    if own.is_cloud and version.is_cloud:
        return f'The function {name} is not in {HEAT_KEY}; {key} has it.'
    if own.is_cloud:
        return f'The function {name} is one of {KEY}; this template has {own.key}.{instead}'
    if not own.is_cloud and name in VERSIONS[_OLDEST].functions:
        return f'The function {name} is not supported in this version of HOT; {own.date} does not have it.{instead}'
    if version.is_cloud:
        return f'The function {name} is one of CloudFormation; this template has {KEY}.{instead}'
    return f'The function {name} came with version {version.date}; this template has {own.date}, without it.'


_OLDEST = next(iter(VERSIONS))
