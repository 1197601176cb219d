"""The section `resource_registry` of an environment: mappings of types, and settings of single resources."""

from __future__ import annotations

import fnmatch
import functools
import re
from collections.abc import Mapping
from dataclasses import dataclass, field

from convergence.core.model import DriftPolicy, Hook, Json, Path, Restriction
from convergence.errors import InvalidBreakPointHook
from convergence.template.document import ParsedDocument

SECTION = 'resource_registry'
TEMPLATE_ENDINGS = ('.yaml', '.template')
"""The endings of type names that are templates."""

LONGEST_CHAIN = 32
"""Maximum length of a chain of mappings. A longer chain is a cycle, or its names grow without end."""

_WILD = re.compile(r'[*?[]')
_DEAR = re.compile(r'[?[]')
_PATTERN_STEPS = 200
"""Steps of preparing a pattern with more signs than ``*``, besides its length."""
_MATCH_STEPS = 5
"""Steps of matching a pattern with a name."""

_SINGLE = ('hooks', 'restricted_actions', 'base_url', 'drift_policy')
"""The keys of a resource that are not types."""


@dataclass(frozen=True, slots=True)
class Override:
    """The settings for the resources that match a name or pattern.

    :param types: like `Mappings.types`, for these resources only.
    :param within: settings for the resources in their nested stacks.
    """

    types: Mapping[str, str] = field(default_factory=dict)
    hooks: tuple[Hook, ...] = ()
    restrictions: tuple[Restriction, ...] = ()
    base_url: str = ''
    within: Mapping[str, Override] = field(default_factory=dict)
    drift_policy: DriftPolicy | None = None


@dataclass(frozen=True, slots=True)
class Mappings:
    """The mappings of types, and the settings of resources.

    :param types: another type, or the path of a template, by type name or by its beginning and ``*``.
    :param overrides: settings by the name of a resource, or a pattern; see `fits`.
    :param base_url: the base of paths of templates.
    """

    types: Mapping[str, str] = field(default_factory=dict)
    overrides: Mapping[str, Override] = field(default_factory=dict)
    base_url: str = ''
    _patterns: tuple[tuple[str, tuple[str, ...]], ...] = field(init=False, default=(), repr=False, compare=False)
    _cost: int = field(init=False, default=0, repr=False, compare=False)
    _last: list[tuple[str, tuple[Override, ...]]] = field(init=False, default_factory=list, repr=False, compare=False)

    def __post_init__(self) -> None:
        patterns = [name for name in self.overrides if _WILD.search(name)]
        dear = sum(_PATTERN_STEPS + len(pattern) for pattern in patterns if _DEAR.search(pattern))
        object.__setattr__(self, '_patterns', tuple((pattern, _parts(pattern)) for pattern in patterns))
        object.__setattr__(self, '_cost', 1 + _MATCH_STEPS * len(patterns) + len(self.types) + dear)

    def cost(self) -> int:
        """Return the maximum number of steps for all lookups of one resource."""
        return self._cost

    def implementation(self, name: str, type_: str, files: Mapping[str, str]) -> str | None:
        """Return the implementing type of a resource, or the path of a template; None for a cycle.

        :param type_: the type in the template.
        :param files: the files of the request. A path that is missing there is looked up below the `base_url`.
        """
        overrides = self.of(name)
        if not (overrides or self.types or self.base_url):
            return type_
        tables = [*(override.types for override in overrides), self.types]
        for _ in range(LONGEST_CHAIN):
            following = (
                None
                if is_template(type_)
                else next((found for table in tables if (found := _mapped(type_, table))), type_)
            )
            if following is None or following == type_:
                break
            type_ = following
        else:
            return None
        base_url = next((override.base_url for override in overrides if override.base_url), self.base_url)
        below = f'{base_url.rstrip("/")}/{type_.removeprefix("./")}'
        return below if base_url and type_ not in files and below in files else type_

    def of(self, name: str) -> tuple[Override, ...]:
        """Return the settings for a resource: those of its name first, then those of matching patterns."""
        if not self.overrides:
            return ()
        for known, said in self._last:  # Each resource is looked up several times in a row.
            if known == name:
                return said
        named = [name] if name in self.overrides else []
        fitting = [pattern for pattern, parts in self._patterns if pattern != name and _fits(name, pattern, parts)]
        said = tuple(self.overrides[each] for each in (*named, *fitting))
        self._last[:] = [(name, said)]
        return said

    def hooks(self, name: str) -> tuple[Hook, ...]:
        """Return the hooks of a resource, sorted."""
        return tuple(sorted({hook for override in self.of(name) for hook in override.hooks}))

    def drift_policy(self, name: str) -> DriftPolicy | None:
        """Return the drift policy of a resource; None if there is no setting."""
        return next((override.drift_policy for override in self.of(name) if override.drift_policy is not None), None)

    def restrictions(self, name: str) -> tuple[Restriction, ...]:
        """Return the restricted actions of a resource, sorted."""
        return tuple(sorted({entry for override in self.of(name) for entry in override.restrictions}))


def is_template(type_: str) -> bool:
    """Return True if a type is the path of a template."""
    return type_.endswith(TEMPLATE_ENDINGS)


def fits(name: str, pattern: str) -> bool:
    """Return True if `name` matches a shell pattern.

    ``*`` stands for any text, ``?`` for one character, ``[ab]`` for one of several and ``[!ab]`` for any other one.
    Takes time proportional to the lengths of both.
    """
    return _fits(name, pattern, _parts(pattern))


def _parts(pattern: str) -> tuple[str, ...]:
    """Return the texts between the ``*`` of a pattern without other signs; empty for other patterns."""
    return () if _DEAR.search(pattern) else tuple(pattern.split('*'))


def _fits(name: str, pattern: str, parts: tuple[str, ...]) -> bool:
    if not parts:
        return _expression(pattern).match(name) is not None
    first, *others = parts
    if not others:
        return name == pattern
    *middle, last = others
    if not name.startswith(first) or not name.endswith(last) or len(name) < len(first) + len(last):
        return False
    position, end = len(first), len(name) - len(last)
    for part in middle:
        found = name.find(part, position, end)
        if found < 0:
            return False
        position = found + len(part)
    return True


@functools.lru_cache(maxsize=1024)
def _expression(pattern: str) -> re.Pattern[str]:
    """Return the pattern as a regular expression, with an atomic group for each ``*`` against backtracking."""
    return re.compile(fnmatch.translate(pattern))


def _mapped(type_: str, table: Mapping[str, str]) -> str | None:
    """Return the entry of a type: its own, or that of its longest beginning with ``*``."""
    if type_ in table:
        return table[type_]
    beginnings = [key for key in table if key.endswith('*') and type_.startswith(key[:-1])]
    if not beginnings:
        return None
    key = max(beginnings, key=len)
    wanted = table[key]
    return wanted[:-1] + type_[len(key) - 1 :] if wanted.endswith('*') else wanted


def read_mappings(document: ParsedDocument, section: Json) -> Mappings:
    """Read the section. Errors go to the problems."""
    if not isinstance(section, dict):
        return Mappings()
    reader = _Reader(document)
    path: Path = (SECTION,)
    resources = section.get('resources')
    overrides: dict[str, Override] = {}
    if isinstance(resources, dict):
        overrides = {name: reader.override(name, body, (*path, 'resources', name)) for name, body in resources.items()}
    elif resources is not None:
        document.problem('The resources of the resource_registry must be a map.', (*path, 'resources'))
    types = {key: value for key, value in section.items() if key not in ('resources', 'base_url')}
    return Mappings(reader.types(types, path), overrides, reader.base_url(section, path))


class _Reader:
    def __init__(self, document: ParsedDocument) -> None:
        self._document = document

    def types(self, section: Mapping[str, Json], path: Path) -> dict[str, str]:
        """Return the entries that map types. Null maps nothing."""
        result: dict[str, str] = {}
        for key, value in section.items():
            if value is None:
                continue
            if not isinstance(value, str) or not value:
                what = f'The type {key} must be mapped to the name of a type or the path of a template.'
                self._document.problem(what, (*path, key))
            elif '*' in key[:-1] or (value.endswith('*') and not key.endswith('*')) or '*' in value[:-1]:
                message = f'"*" must be the last character of "{key}", and then it may be that of "{value}".'
                self._document.problem(message, (*path, key))
            else:
                result[key] = value
        return result

    def override(self, name: str, body: Json, path: Path) -> Override:
        """Return the settings of a resource."""
        if body is None:
            return Override()
        if not isinstance(body, dict):
            self._document.problem(f'The settings of the resource {name} must be a map.', path)
            return Override()
        types = {key: value for key, value in body.items() if key not in _SINGLE and not isinstance(value, dict)}
        within = {
            key: self.override(key, value, (*path, key))
            for key, value in body.items()
            if key not in _SINGLE and isinstance(value, dict)
        }
        return Override(
            types=self.types(types, path),
            hooks=self._hooks(name, body.get('hooks'), (*path, 'hooks')),
            restrictions=self._restrictions(name, body.get('restricted_actions'), (*path, 'restricted_actions')),
            base_url=self.base_url(body, path),
            within=within,
            drift_policy=self._drift_policy(name, body.get('drift_policy'), (*path, 'drift_policy')),
        )

    def _drift_policy(self, name: str, found: Json, path: Path) -> DriftPolicy | None:
        if found is None or found in tuple(DriftPolicy):
            return None if found is None else DriftPolicy(str(found))
        hint = self._document.problems.suggestion(str(found), DriftPolicy)
        message = f'The drift_policy of the resource "{name}" must be one of {", ".join(DriftPolicy)}.{hint}'
        self._document.problem(message, path)
        return None

    def base_url(self, section: Mapping[str, Json], path: Path) -> str:
        """Return the base of the paths in a section."""
        found = section.get('base_url')
        if found is None or isinstance(found, str):
            return found or ''
        self._document.problem('The base_url must be a string.', (*path, 'base_url'))
        return ''

    def _hooks(self, name: str, found: Json, path: Path) -> tuple[Hook, ...]:
        hooks = self._words(found, path)
        for hook in hooks:
            if hook not in tuple(Hook):
                hint = self._document.problems.suggestion(hook, Hook)
                message = f'Invalid hook type "{hook}" for resource breakpoint "{name}"{f".{hint}" if hint else ""}'
                self._document.problem(message, path, InvalidBreakPointHook)
        return tuple(Hook(hook) for hook in hooks if hook in tuple(Hook))

    def _restrictions(self, name: str, found: Json, path: Path) -> tuple[Restriction, ...]:
        restrictions = self._words(found, path)
        for word in restrictions:
            if word not in tuple(Restriction):
                hint = self._document.problems.suggestion(word, Restriction)
                message = f'Invalid restricted_action type "{word}" for resource "{name}"{f".{hint}" if hint else ""}'
                self._document.problem(message, path)
        return tuple(Restriction(word) for word in restrictions if word in tuple(Restriction))

    def _words(self, found: Json, path: Path) -> list[str]:
        words = found if isinstance(found, list) else [] if found is None else [found]
        wrong = [word for word in words if not isinstance(word, str)]
        if wrong:
            self._document.problem(f'The {path[-1]} must be a name, or a list of names.', path)
        return [word for word in words if isinstance(word, str)]
