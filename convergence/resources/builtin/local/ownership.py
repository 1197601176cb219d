"""Records of the resources that made paths.

Each path has a record of its owner. So the provider touches only paths that it made, and a replaced resource does not
remove a path that its successor took over.
"""

from __future__ import annotations

import fcntl
import hashlib
import json
import os
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from convergence.resources.builtin.local.sandbox import STATE
from convergence.resources.contract import Call, FinalFailure, Item, TransientFailure

_LOCK_ATTEMPTS = 3000
_LOCK_PAUSE_S = 0.01


@dataclass(frozen=True, slots=True)
class Owner:
    """The owner of a path. `kind` is ``directory``, ``file`` or ``log``."""

    path: str
    kind: str
    token: str
    stack_id: str
    stack_name: str
    name: str

    @classmethod
    def of(cls, call: Call[Any], path: str, kind: str) -> Owner:
        """The record that a call's resource would leave at `path`."""
        return cls(path, kind, _digest(call.token), call.stack_id, call.stack_name, call.name)

    def same_resource(self, other: Owner) -> bool:
        """Return True if the other record is of the same resource, also of an earlier or a later object of it."""
        return (self.stack_id, self.name, self.kind) == (other.stack_id, other.name, other.kind)


class Ownership:
    """The records below a root directory. Safe between processes."""

    def __init__(self, root: Path) -> None:
        self._owners = root / STATE / 'owners'
        self._lock = root / STATE / 'lock'

    @contextmanager
    def locked(self) -> Iterator[None]:
        """Lock the records for the few moments of an operation.

        :raises TransientFailure: another process held the lock for half a minute.
        """
        self._owners.mkdir(parents=True, exist_ok=True, mode=0o700)
        descriptor = os.open(self._lock, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            _lock(descriptor)
            yield
        finally:
            os.close(descriptor)

    def claim(self, owner: Owner, *, occupied: bool) -> None:
        """Make `owner` the owner of its path, before anything is made there. Call it under the lock.

        A resource that replaces an earlier one of the same name in the same stack takes the path over from it.

        :param occupied: True if something exists at the path.
        :raises FinalFailure: the path has another owner, or something exists there that the provider did not make.
        """
        present = self.find(owner.path)
        if present is None and occupied:
            raise FinalFailure(
                f'{owner.path} exists and was not made by this provider; remove it or choose another path'
            )
        if present is not None and occupied and not present.same_resource(owner):
            raise FinalFailure(
                f'{owner.path} belongs to the {present.kind} {present.name} of the stack {present.stack_name}; '
                'choose another path'
            )
        record = self._record(owner.path)
        temporary = record.with_suffix(f'.{os.getpid()}')
        temporary.write_text(json.dumps(asdict(owner)), encoding='utf-8')
        temporary.replace(record)

    def find(self, path: str) -> Owner | None:
        """Return the owner of `path`, or None."""
        try:
            return Owner(**json.loads(self._record(path).read_text(encoding='utf-8')))
        except FileNotFoundError:
            return None

    def all(self, kind: str) -> Iterator[Owner]:
        """The records of one kind."""
        for record in sorted(self._owners.glob('*.json')):
            try:
                owner = Owner(**json.loads(record.read_text(encoding='utf-8')))
            except FileNotFoundError:
                continue  # it went a moment ago
            if owner.kind == kind:
                yield owner

    def inventory(self, kind: str, exists: Callable[[str], bool]) -> list[Item]:
        """The records of one kind at whose paths there is something."""
        return [
            Item(owner.path, owner.token, f'{owner.stack_name}/{owner.name}')
            for owner in self.all(kind)
            if exists(owner.path)
        ]

    def owns(self, call: Call[Any], path: str) -> bool:
        """Return True if the call's resource made `path` and still owns it."""
        owner = self.find(path)
        return owner is not None and owner.token == _digest(call.token)

    def forget(self, path: str) -> None:
        """Remove the record of `path`, if there is one."""
        self._record(path).unlink(missing_ok=True)

    def _record(self, path: str) -> Path:
        return self._owners / f'{_digest(path)}.json'


def _lock(descriptor: int) -> None:
    # Polls the lock, because a call that blocks stops all green threads, its owner's among them.
    for _ in range(_LOCK_ATTEMPTS):
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return
        except BlockingIOError:
            time.sleep(_LOCK_PAUSE_S)
    raise TransientFailure('another process works in the root directory of the local provider and does not end')


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()
