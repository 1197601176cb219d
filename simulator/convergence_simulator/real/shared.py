"""A simulated cloud in one SQLite file, shared by several processes. Only ``convergence-simulate --real`` uses it."""

from __future__ import annotations

import contextlib
import json
import sqlite3
import time
from collections.abc import Callable, Iterator, Mapping, MutableMapping
from dataclasses import asdict
from pathlib import Path
from typing import Any, Generic, TypeVar

from typing_extensions import override

from convergence.core.model import Action, Json
from convergence_simulator.cloud.reality import TYPE, Behaviour, Mishap, PhysicalObject, Reality

K = TypeVar('K')
V = TypeVar('V')

TABLES = ('objects', 'behaviours', 'counts', 'made', 'answers', 'kept')
WAIT_S = 60.0
"""Seconds that one process waits for another one to finish writing."""


class SharedTable(MutableMapping[K, V], Generic[K, V]):
    """A table of keys and values with the interface of a dictionary. Each access is one transaction.

    :param freeze: converts a value to JSON.
    :param thaw: converts JSON to a value. Keys are JSON as well.
    """

    def __init__(self, path: Path, table: str, freeze: Callable[[V], Any], thaw: Callable[[Any], V]) -> None:
        self._path = path
        self._table = table
        self._freeze = freeze
        self._thaw = thaw

    @override
    def __getitem__(self, key: K) -> V:
        with _connected(self._path) as connection:
            found = connection.execute(f'SELECT value FROM {self._table} WHERE key = ?', [_text(key)]).fetchone()
        if found is None:
            raise KeyError(key)
        return self._thaw(json.loads(found[0]))

    @override
    def __setitem__(self, key: K, value: V) -> None:
        with _connected(self._path) as connection:
            connection.execute(
                f'INSERT OR REPLACE INTO {self._table} VALUES (?, ?)', [_text(key), json.dumps(self._freeze(value))]
            )

    @override
    def __delitem__(self, key: K) -> None:
        with _connected(self._path) as connection:
            if connection.execute(f'DELETE FROM {self._table} WHERE key = ?', [_text(key)]).rowcount == 0:
                raise KeyError(key)

    @override
    def __iter__(self) -> Iterator[K]:
        return iter(self._all())

    @override
    def __len__(self) -> int:
        return len(self._all())

    @override
    def values(self) -> Any:
        """Return all values, as of one moment."""
        return self._all().values()

    @override
    def items(self) -> Any:
        """Return all pairs, as of one moment."""
        return self._all().items()

    def _all(self) -> dict[K, V]:
        with _connected(self._path) as connection:
            found = connection.execute(f'SELECT key, value FROM {self._table} ORDER BY rowid').fetchall()
        return {_key(key): self._thaw(json.loads(value)) for key, value in found}


def _text(key: Any) -> str:
    return json.dumps(key)


def _key(text: str) -> Any:
    key = json.loads(text)
    return tuple(key) if isinstance(key, list) else key


@contextlib.contextmanager
def _connected(path: Path) -> Iterator[sqlite3.Connection]:
    """Begin a transaction that may write at once, so that it never fails half-way because of another writer."""
    with contextlib.closing(sqlite3.connect(path, timeout=WAIT_S, isolation_level=None)) as connection:
        connection.execute('BEGIN IMMEDIATE')
        with connection:
            yield connection


class SharedReality(Reality):
    """The objects of a simulated cloud, in a file. Each process has its own instance for the same file.

    :param path: path of the file, which is created if it does not exist.
    """

    def __init__(self, path: Path) -> None:
        with contextlib.closing(sqlite3.connect(path, timeout=WAIT_S)) as connection:
            for table in TABLES:
                connection.execute(f'CREATE TABLE IF NOT EXISTS {table} (key TEXT PRIMARY KEY, value TEXT NOT NULL)')
        super().__init__(
            objects=SharedTable(path, 'objects', asdict, lambda row: PhysicalObject(**row)),  # type: ignore[arg-type]
            behaviours=SharedTable(path, 'behaviours', asdict, _thaw_behaviour),  # type: ignore[arg-type]
            counts=SharedTable(path, 'counts', int, int),  # type: ignore[arg-type]
            made=SharedTable(path, 'made', int, int),  # type: ignore[arg-type]
            answers=SharedTable(path, 'answers', asdict, _thaw_behaviour),  # type: ignore[arg-type]
            kept=SharedTable(path, 'kept', dict, dict),  # type: ignore[arg-type]
            now=time.time,
            block=_block,
            changed=self._keep,
        )
        self._path = path

    @override
    def clear(self) -> None:
        """Remove all objects and all records of them."""
        with _connected(self._path) as connection:
            for table in TABLES:
                connection.execute(f'DELETE FROM {table}')

    @override
    def create(
        self, name: str, stack_id: str, token: str, properties: Mapping[str, Json], kind: str = TYPE
    ) -> PhysicalObject:
        """Create an object with a number that no other process gets."""
        with _connected(self._path) as connection:
            made = connection.execute('SELECT coalesce(sum(value), 0) FROM made').fetchone()[0]
            key = f'{name}-{made + 1}'
            thing = PhysicalObject(key, name, stack_id, token, dict(properties), kind=kind, made_at=self.now())
            connection.execute('INSERT INTO objects VALUES (?, ?)', [_text(key), json.dumps(asdict(thing))])
            count = 'INSERT INTO made VALUES (?, 1) ON CONFLICT (key) DO UPDATE SET value = value + 1'
            connection.execute(count, [_text(token)])
        return thing

    def _keep(self, action: Action, thing: PhysicalObject) -> None:
        if action in (Action.UPDATE, Action.SUSPEND, Action.RESUME):
            self.objects[thing.id] = thing


def _block(duration_s: float | None) -> None:
    """Block all calls for so many seconds; an endless block lasts as long as any test."""
    time.sleep(3600.0 if duration_s is None else duration_s)


def _thaw_behaviour(row: dict[str, Any]) -> Behaviour:
    kinds: dict[str, Callable[[Any], Any]] = {'mishap': Mishap}
    return Behaviour(**{name: kinds[name](value) if value and name in kinds else value for name, value in row.items()})
