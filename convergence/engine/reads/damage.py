"""Finds stored values that are unreadable, because their key is missing or the value is broken."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TypeAlias

from convergence import errors
from convergence.core.rows import Stack
from convergence.db.repositories.reads.stacks import StackReader
from convergence.documents import Document
from convergence.engine.compile.cache import MIB, LastUsed
from convergence.engine.reads import formats

TOLD_FOR_S = 60.0
"""Seconds for which a result is reused while the stack has the same goals and operation, because finding damage reads
all rows of the stack.
"""
FOUND_BYTES = 4 * MIB
"""Size of the cache of results. Most are empty; without a key, every resource is in one."""

_Goals: TypeAlias = tuple[str | None, ...]


class Damages:
    """Finds unreadable values.

    :param clock: seconds, from an arbitrary start.
    """

    def __init__(self, reader: StackReader, clock: Callable[[], float] = time.monotonic) -> None:
        self._reader = reader
        self._clock = clock
        self._found: LastUsed[tuple[float, _Goals, tuple[Document, ...]]] = LastUsed(FOUND_BYTES)

    def of(self, stack: Stack) -> tuple[Document, ...]:
        """The unreadable values of a stack, and a remedy for each."""
        goals = (stack.template_id, stack.last_good_template_id, stack.previous_good_template_id, stack.traversal_id)
        known = self._found.get(stack.id)
        now = self._clock()
        if known is not None and known[1] == goals and now - known[0] < TOLD_FOR_S:
            return known[2]
        found = tuple(self._look(stack))
        self._found.keep(stack.id, (now, goals, found))
        return found

    def _look(self, stack: Stack) -> list[Document]:
        found = [formats.unreadable_resource(row) for row in self._reader.damaged(stack.id)]
        goals = {
            stack.previous_good_template_id: 'last good template but one',
            stack.last_good_template_id: 'last good template',
            stack.template_id: 'template',
        }
        for template_id, part in goals.items():
            if template_id is not None and not self._is_readable(template_id):
                found.append(formats.unreadable_template(part))
        return found

    def _is_readable(self, template_id: str) -> bool:
        try:
            self._reader.template(template_id)
        except errors.GoalUnreadable:
            return False
        return True
