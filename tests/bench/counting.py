"""Count what processes ask of the database and say to each other."""

from __future__ import annotations

import mmap
import struct
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from typing_extensions import override

from convergence.concurrency import Lock

if TYPE_CHECKING:
    from convergence.rpc.transport import Transport

KINDS = ('statements', 'commits', 'rollbacks', 'messages')
_LAYOUT = struct.Struct(f'{len(KINDS)}q')


class Counters:
    """Counts since the beginning. Safe between threads.

    :param path: a file in which other processes see the counts at any time; None: nobody else does.
    """

    def __init__(self, path: Path | None = None) -> None:
        self._lock = Lock()
        self._counts: Any = bytearray(_LAYOUT.size)
        if path is not None:
            path.write_bytes(self._counts)
            with path.open('r+b') as file:
                self._counts = mmap.mmap(file.fileno(), _LAYOUT.size)

    def note(self, kind: str) -> None:
        """One more of `kind`, which is one of `KINDS`."""
        with self._lock:
            counts = list(_LAYOUT.unpack_from(self._counts))
            counts[KINDS.index(kind)] += 1
            _LAYOUT.pack_into(self._counts, 0, *counts)

    def read(self) -> dict[str, int]:
        """The counts."""
        with self._lock:
            return dict(zip(KINDS, _LAYOUT.unpack_from(self._counts), strict=True))


def counts_in(directory: Path) -> list[dict[str, int]]:
    """What the processes have counted whose tallies are in a directory."""
    read = [_LAYOUT.unpack(path.read_bytes()) for path in directory.glob('*.counts')]
    return [dict(zip(KINDS, each, strict=True)) for each in read]


def difference(after: Mapping[str, int], before: Mapping[str, int]) -> dict[str, int]:
    """What was added to counts."""
    return {kind: after[kind] - before[kind] for kind in KINDS}


def total(counts: list[dict[str, int]]) -> dict[str, int]:
    """The sum of the counts of several processes."""
    return {kind: sum(each[kind] for each in counts) for kind in KINDS}


def counted(transport: Transport, tally: Counters) -> Transport:
    """The transport, with each message counted that is sent through it; answers to calls are not."""
    return cast('Transport', _CountedTransport(transport, tally))


class _CountedTransport:
    def __init__(self, inner: Transport, tally: Counters) -> None:
        self._inner = inner
        self._tally = tally

    def __getattr__(self, name: str) -> Any:
        return getattr(self._inner, name)

    def client(self, *arguments: Any, **named: Any) -> Any:
        return _CountedClient(self._inner.client(*arguments, **named), self._tally)


class _CountedClient:
    """An oslo.messaging client."""

    def __init__(self, inner: Any, tally: Counters) -> None:
        object.__setattr__(self, '_inner', inner)
        object.__setattr__(self, '_tally', tally)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._inner, name)

    @override
    def __setattr__(self, name: str, value: Any) -> None:
        setattr(self._inner, name, value)

    def prepare(self, **named: Any) -> _CountedClient:
        return _CountedClient(self._inner.prepare(**named), self._tally)

    def cast(self, *arguments: Any, **named: Any) -> Any:
        self._tally.note('messages')
        return self._inner.cast(*arguments, **named)

    def call(self, *arguments: Any, **named: Any) -> Any:
        self._tally.note('messages')
        return self._inner.call(*arguments, **named)
