"""What was compiled, or read, last: many small values, or a few large ones."""

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
"""What all compiled templates that are kept may hold: six of 10,000 resources, or some thousands of ten."""
MOST_ROWS = 4096
"""Of how many rows of templates is remembered what they were made from."""
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
    """The values that were used last, by their keys.

    What is larger than all may be is kept, alone: it is the stack that somebody works with.

    :param most_bytes: what all of them may hold.
    """

    def __init__(self, most_bytes: int) -> None:
        self._most_bytes = most_bytes
        self._lock = Lock()
        self._kept: OrderedDict[str, tuple[int, V]] = OrderedDict()
        self._bytes = 0

    def keep(self, key: str, value: V) -> None:
        """Keep a value under a key; nothing under an empty one, which says that it is like no other."""
        if not key:
            return
        size = _ENTRY + held_bytes(key) + held_bytes(value)
        with self._lock:
            self._let_go_of(key)
            self._make_room(size)
            self._kept[key] = size, value
            self._bytes += size

    def get(self, key: str) -> V | None:
        """One that is kept, from now on longer than the others; None where it is not."""
        with self._lock:
            if key not in self._kept:
                return None
            self._kept.move_to_end(key)
            return self._kept[key][1]

    def make_room(self, size: int) -> None:
        """Let go of what would have to go for something that holds so many bytes: so they are free while it is made."""
        with self._lock:
            self._make_room(size)

    def clear(self) -> None:
        """Let go of everything."""
        self.make_room(self._most_bytes + 1)

    def _make_room(self, size: int) -> None:
        while self._kept and self._bytes + size > self._most_bytes:
            self._let_go_of(next(iter(self._kept)))

    def _let_go_of(self, key: str) -> None:
        self._bytes -= self._kept.pop(key, (0, None))[0]


class CompiledTemplates:
    """Compiled templates by what they were made from, and by the ids of their rows, which never change.

    Many stacks, such as the members of a group, share one, unless it is for one stack alone.

    :param limits: those under which they were read.
    :param most_bytes: what all of them may hold.
    """

    def __init__(self, limits: template.Limits, most_bytes: int = MOST_BYTES) -> None:
        self._limits = limits
        self._most_bytes = most_bytes
        self._kept: LastUsed[template.Compiled] = LastUsed(most_bytes)
        self._keys: LastUsed[str] = LastUsed(MOST_ROWS * _ENTRY)

    def make_room_for(self, source: str | Mapping[str, Json]) -> None:
        """A template is about to be compiled: what would have to go for it goes now, so that both are never there."""
        if isinstance(source, str):
            # At most half of it: what it holds is not known before it is read, and it may be no template at all.
            self._kept.make_room(min(_TIMES_ITS_TEXT * len(source), self._most_bytes // 2))

    def keep(self, key: str, identity: template.StackIdentity, compiled: template.Compiled) -> template.Compiled:
        """Keep what was made for a stack, and found to be right.

        :param key: what it was made from; see `made_from`.
        :returns: the same, without what is not kept of it; see `template.Compiled.settled`.
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
        """What was made from the same for such a stack; None where it is not kept."""
        kept = self._kept.get(key) or self._kept.get(_personal(key, identity))
        return None if kept is None else kept.of(identity)

    def note(self, template_id: str, key: str) -> None:
        """Remember what the template of a row was made from."""
        self._keys.keep(template_id, key)

    def of_row(self, template_id: str, identity: template.StackIdentity) -> template.Compiled | None:
        """What the template of a row was compiled to; None where that is not kept."""
        key = self.key_of(template_id)
        return self.get(key, identity) if key else None

    def key_of(self, template_id: str) -> str:
        """What the template of a row was made from; '' where that is not known any more."""
        return self._keys.get(template_id) or ''

    def clear(self) -> None:
        """Let go of everything."""
        self._kept.clear()
        self._keys.clear()


def _personal(key: str, identity: template.StackIdentity) -> str:
    return f'{key} {identity.stack_id} {identity.stack_name}'


def made_from(content: Mapping[str, Json], project_id: str) -> str:
    """What tells one compiled template from another: 64 hexadecimal digits. The only rule by which two are the same.

    The order of keys counts: resources and outputs have that of the template.

    :param content: of the row of the template, or what is to be stored there.
    :returns: nothing for what no JSON can be made of, which nobody will accept, and for what may ask for the time, as
        an expression can: nothing is the same as that.
    """
    try:
        text = json.dumps([content, project_id], separators=(',', ':'), default=repr)
    except (TypeError, ValueError, RecursionError):
        return ''
    if 'now(' in text:
        return ''
    return hashlib.sha256(text.encode()).hexdigest()


def held_bytes(value: object) -> int:
    """How many bytes a value holds with all that is in it, about.

    Long texts, definitions and what they consist of are counted once, wherever they stand.
    """
    size, seen, pending = 0, set[int](), [value]
    take, size_of = pending.extend, sys.getsizeof
    while pending:
        each = pending.pop()
        if isinstance(each, str):  # first what there is most of
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
