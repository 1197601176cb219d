"""Caches of compiled templates and other values: many small ones, or a few large ones."""

from __future__ import annotations

import hashlib
import json
import sys
from collections import OrderedDict
from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from operator import attrgetter
from typing import Generic, TypeVar

from convergence import template
from convergence.concurrency import Lock
from convergence.core.model import Definition, Json

V = TypeVar('V')

MIB = 2**20
MOST_BYTES = 64 * MIB
"""Size of the cache of compiled templates: enough for six of 10,000 resources, or some thousands of ten."""
MOST_ROWS = 4096
"""Maximum number of template rows whose cache keys are remembered."""
_TIMES_ITS_TEXT = 16
"""How many times as large as its text a compiled template is, of resources of ten words."""
_LONG = 1024
_DEFINITION = 768
"""Bytes of a definition itself, and of the text that it is compared by."""
_PARTS_OF_DEFINITION = attrgetter(
    'properties', 'metadata', 'update_policy', 'requires', 'uses', 'hidden', 'private', 'harmless', 'secrets'
)
_PLAIN = frozenset({int, float, bool, type(None)})
_ENTRY = 1024
"""Bytes that anything costs that is kept, however small it is."""


class LastUsed(Generic[V]):
    """The most recently used values, by key.

    A value larger than the whole cache is kept alone: it belongs to the stack that is in use.

    :param most_bytes: size of the cache.
    """

    def __init__(self, most_bytes: int) -> None:
        self._most_bytes = most_bytes
        self._lock = Lock()
        self._kept: OrderedDict[str, tuple[int, V]] = OrderedDict()
        self._bytes = 0

    def keep(self, key: str, value: V) -> None:
        """Keep a value under a key. An empty key keeps nothing: it marks values that are never equal."""
        if not key:
            return
        size = _ENTRY + held_bytes(key) + held_bytes(value)
        with self._lock:
            self._let_go_of(key)
            self._make_room(size)
            self._kept[key] = size, value
            self._bytes += size

    def get(self, key: str) -> V | None:
        """The value of a key, which is now the most recently used; None if the cache does not hold it."""
        with self._lock:
            if key not in self._kept:
                return None
            self._kept.move_to_end(key)
            return self._kept[key][1]

    def make_room(self, size: int) -> None:
        """Drop values until this many bytes are free, before a new value of that size is built."""
        with self._lock:
            self._make_room(size)

    def clear(self) -> None:
        """Drop all values."""
        self.make_room(self._most_bytes + 1)

    def _make_room(self, size: int) -> None:
        while self._kept and self._bytes + size > self._most_bytes:
            self._let_go_of(next(iter(self._kept)))

    def _let_go_of(self, key: str) -> None:
        self._bytes -= self._kept.pop(key, (0, None))[0]


class CompiledTemplates:
    """Compiled templates by cache key (see `made_from`), and by the ids of their rows, which never change.

    Equal stacks, such as the members of a group, share one template, unless it refers to its own stack.

    :param limits: limits under which the templates were read.
    :param most_bytes: size of the cache.
    """

    def __init__(self, limits: template.Limits, most_bytes: int = MOST_BYTES) -> None:
        self._limits = limits
        self._most_bytes = most_bytes
        self._kept: LastUsed[template.Compiled] = LastUsed(most_bytes)
        self._keys: LastUsed[str] = LastUsed(MOST_ROWS * _ENTRY)

    def make_room_for(self, source: str | Mapping[str, Json]) -> None:
        """Drop values before a template is compiled, so that old and new values are not in memory together."""
        if isinstance(source, str):
            # At most half of the cache: the size is unknown before the text is read, and the text may be no template
            # at all.
            self._kept.make_room(min(_TIMES_ITS_TEXT * len(source), self._most_bytes // 2))

    def keep(self, key: str, identity: template.StackIdentity, compiled: template.Compiled) -> template.Compiled:
        """Keep a validated template.

        :param key: see `made_from`.
        :returns: the template without the parts that are not kept; see `template.Compiled.settled`.
        """
        known = self.get(key, identity)
        if known is not None:
            return known
        kept = compiled.settled(self._limits)
        if not key:
            return kept
        self._kept.keep(_personal(key, identity) if kept.is_personal else key, kept)
        return kept.of(identity)

    def get(self, key: str, identity: template.StackIdentity) -> template.Compiled | None:
        """The template with a key, for a stack; None if the cache does not hold it."""
        kept = self._kept.get(key) or self._kept.get(_personal(key, identity))
        return None if kept is None else kept.of(identity)

    def note(self, template_id: str, key: str) -> None:
        """Remember the key of a template row."""
        self._keys.keep(template_id, key)

    def of_row(self, template_id: str, identity: template.StackIdentity) -> template.Compiled | None:
        """The compiled template of a row; None if the cache does not hold it."""
        key = self.key_of(template_id)
        return self.get(key, identity) if key else None

    def key_of(self, template_id: str) -> str:
        """The key of a template row; '' if it is not remembered."""
        return self._keys.get(template_id) or ''

    def clear(self) -> None:
        """Drop all templates and keys."""
        self._kept.clear()
        self._keys.clear()


def _personal(key: str, identity: template.StackIdentity) -> str:
    return f'{key} {identity.stack_id} {identity.stack_name}'


def made_from(content: Mapping[str, Json], project_id: str) -> str:
    """The key of a compiled template: 64 hexadecimal digits. Templates with equal keys are equal; there is no other
    rule.

    The order of mapping keys counts: resources and outputs keep the order of the template.

    :param content: content of the template row, or the content to be stored there.
    :returns: '' for content that cannot be encoded as JSON (it will be refused), and for content that may contain an
        expression which reads the time: such templates are never equal.
    """
    try:
        text = json.dumps([content, project_id], separators=(',', ':'), default=repr)
    except (TypeError, ValueError, RecursionError):
        return ''
    if 'now(' in text:
        return ''
    return hashlib.sha256(text.encode()).hexdigest()


def held_bytes(value: object) -> int:
    """Estimate the bytes that a value holds, with everything in it.

    Long texts, definitions and their parts count once, wherever they occur.
    """
    size, seen, pending = 0, set[int](), [value]
    take, size_of = pending.extend, sys.getsizeof
    while pending:
        each = pending.pop()
        if isinstance(each, str):  # the most frequent kind first
            if len(each) >= _LONG:
                if id(each) in seen:
                    continue
                seen.add(id(each))
        elif each.__class__ in _PLAIN:
            pass
        elif isinstance(each, dict):
            take(each)
            take(each.values())
        elif isinstance(each, (list, tuple)):
            take(each)
        elif isinstance(each, Definition):
            if id(each) in seen:
                continue
            parts = [part for part in _PARTS_OF_DEFINITION(each) if part and id(part) not in seen]
            seen.update(map(id, (each, *parts)))
            size += _DEFINITION
            take(parts)
        elif is_dataclass(each):
            take(getattr(each, part.name) for part in fields(each))
        size += size_of(each)
    return size
