"""The state of a simulation as a number: two runs in the same state have the same future.

What counts: the rows, the messages in flight, what really exists, the time, what the user still wants, and where each
fiber stands: the line of each of its frames and the values in their variables. Objects that are no values (services,
connections) are the same for all fibers of a process and are left out; so are events, which nothing reads.
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

# As \b\d{6}\b; but what begins with a character that it has to have is searched for much faster.
ID = re.compile(r'([0-9]{6}\b(?<!\w[0-9]{6}))')
PLAIN = frozenset((str, int, float, bool, type(None)))
"""Of these are most values, and their texts are what `repr` says."""
DEPTH = 8
"""How deep values are looked into."""


class Fingerprints:
    """Makes numbers of states. Keeps texts of frozen values, most of which are the same from state to state."""

    def __init__(self) -> None:
        self._known: dict[int, tuple[Any, str]] = {}

    def of(self, run: Run) -> bytes:
        """A number for the state that a run is in, the same in every process."""
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
        """Where a fiber stands, and what it knows."""
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
        """A value as text; a dot for what is none."""
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
            self._known[id(value)] = (value, text)  # the value too: its id must not be given to another one
        return text


@cache
def _names(kind: type) -> tuple[str, ...]:
    """The fields of a dataclass."""
    return tuple(each.name for each in dataclasses.fields(kind))


def _anonymous(text: str) -> str:
    """Ids numbered through in their order: which numbers were used up on the way does not matter."""
    pieces = ID.split(text)  # each second one is an id
    ranks = {number: f'i{rank}' for rank, number in enumerate(sorted(set(pieces[1::2])))}
    pieces[1::2] = [ranks[number] for number in pieces[1::2]]
    return ''.join(pieces)
