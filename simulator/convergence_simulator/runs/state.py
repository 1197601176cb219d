"""Fingerprints of the state of a simulation: two runs in the same state have the same future.

A state contains the rows, the messages in flight, the objects that really exist, the time, the pending requests of the
user, and the position of each fiber: the line of each of its frames and the values of their variables. Objects without
a value (services, connections) are the same for all fibers of a process and are left out. Events are left out as well,
because no code reads them.
"""

from __future__ import annotations

import dataclasses
import hashlib
import re
from collections.abc import Mapping
from enum import Enum
from functools import cache
from types import FrameType
from typing import Any

from convergence.concurrency import Task
from convergence_simulator.runs.run import Run
from convergence_simulator.world.kernel import Fiber

# Equivalent to \b\d{6}\b; an expression with a fixed first character is much faster.
ID = re.compile(r'([0-9]{6}\b(?<!\w[0-9]{6}))')
PLAIN = frozenset((str, int, float, bool, type(None)))
"""Types of most values; `repr` returns their text."""
DEPTH = 8
"""Maximum depth of nested values."""


class Fingerprints:
    """Makes fingerprints of states. Caches texts of frozen values, because most are the same from state to state."""

    def __init__(self) -> None:
        self._known: dict[int, tuple[Any, str]] = {}

    def of(self, run: Run) -> bytes:
        """Return the fingerprint of the state of a run, the same in every process."""
        world = run.world
        tables = world.store.tables
        parts = [
            self._text(run.remaining()),
            f'{world.kernel.now} {world.next_sweep} {world.lost} {world.skew_s} {world.crashes}',
            *(self._text(rows) for rows in (tables.stack, tables.traversal, tables.node, tables.resource)),
            self._text(tables.notified_at),
            *sorted(self._text((each.kind, each.traversal_id, each.number, each.stack_id)) for each in world.bag),
            *sorted(f'{when} {message}' for when, message in world.timers),
            self._text(world.reality.objects),
            self._text(world.reality.counts),
            self._text(world.reality.behaviours),
            f'{world.reality.mishaps} {world.reality.vanished} {world.trouble.ends_at()}',
            self._text(world.reality.late),
            self._text(tables.observation) if world.observers else '',
            self._text(sorted(world.reality.harmed)) if world.observers else '',
            *sorted(f'{alarm.at} {alarm.process.name}' for alarm in world.alarms),
            self._text([(service.id, service.beat_at) for service in world.roster.services()]),
            *sorted(map(self._position, world.kernel.fibers)),
        ]
        return hashlib.blake2b(_anonymous('\n'.join(parts)).encode(), digest_size=16).digest()

    def _position(self, fiber: Fiber) -> str:
        """Return the position of a fiber and the values of its variables."""
        places = [' '.join(map(str, self._outside(fiber)))]
        frame: FrameType | None = fiber.let.gr_frame
        while frame is not None:
            variables = (f'{name}={self._text(value)}' for name, value in sorted(frame.f_locals.items()))
            places.append(f'{frame.f_code.co_qualname}:{frame.f_lasti} {" ".join(variables)}')
            frame = frame.f_back
        return ' | '.join(places)

    @staticmethod
    def _outside(fiber: Fiber) -> tuple[object, ...]:
        process = fiber.process
        return (process.name, process.frozen_until, fiber.name, fiber.point, fiber.blocked, fiber.until)

    def _text(self, value: Any, depth: int = DEPTH) -> str:
        """Return a value as text; a dot for an object without a value."""
        if type(value) in PLAIN:
            return repr(value)
        if isinstance(value, (str, int, float)):
            return str(value.value) if isinstance(value, Enum) else repr(value)
        if isinstance(value, Task):
            return 'cancelled' if value.cancelled.is_set() else 'wanted'
        if not depth:
            return '.'
        known = self._known.get(id(value))
        if known is not None:
            return known[1]
        if isinstance(value, (tuple, list)):
            return f'[{",".join(self._text(item, depth - 1) for item in value)}]'
        if isinstance(value, Mapping):
            pairs = ((self._text(key, depth - 1), self._text(item, depth - 1)) for key, item in value.items())
            return f'{{{",".join(f"{key}:{item}" for key, item in sorted(pairs))}}}'
        if isinstance(value, (set, frozenset)):
            return f'({",".join(sorted(self._text(item, depth - 1) for item in value))})'
        if dataclasses.is_dataclass(value) and not isinstance(value, type):
            return self._structure(value, depth)
        return '.'

    def _structure(self, value: Any, depth: int) -> str:
        kind = type(value)
        names = _names(kind)  # type: ignore[arg-type]  # a class can be hashed
        fields = ','.join(f'{name}={self._text(getattr(value, name), depth - 1)}' for name in names)
        text = f'{kind.__name__}({fields})'
        if kind.__dataclass_params__.frozen:
            self._known[id(value)] = (value, text)  # keeps the value alive: its id must not be reused
        return text


@cache
def _names(kind: type) -> tuple[str, ...]:
    """Return the names of the fields of a dataclass."""
    return tuple(each.name for each in dataclasses.fields(kind))


def _anonymous(text: str) -> str:
    """Replace ids by consecutive numbers in their order: gaps between ids do not matter."""
    pieces = ID.split(text)  # each second part is an id
    ranks = {number: f'i{rank}' for rank, number in enumerate(sorted(set(pieces[1::2])))}
    pieces[1::2] = [ranks[number] for number in pieces[1::2]]
    return ''.join(pieces)
