"""Finds the servers that ``convergence serve`` runs on this machine.

A server writes a file with its URL into its data directory, and holds a lock while it runs. A file beside a free lock
belongs to a server that died. A copy in a directory of the user lets commands find the server from anywhere. Files of
another account are ignored: they would lead to a server of that account.
"""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import json
import os
import time
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from urllib.parse import urlsplit

from convergence.cli.connection import local_token

NAME = 'serving.json'
LOCK = 'serving.lock'
DATA = 'convergence-data'
_PATIENCE_S = 1.0
"""Seconds that a starting server waits for the lock. Commands hold it for a moment to test it."""


@dataclass(frozen=True, slots=True)
class LocalServer:
    """A running ``convergence serve``.

    :param url: the URL of the API.
    :param data: the absolute path of the data directory.
    :param token_file: the file with the token for requests; empty: requests need no token.
    """

    url: str
    pid: int
    data: str
    version: str
    token_file: str = ''

    def token(self) -> str:
        """Return the token for requests; empty if they need none."""
        return local_token.known(Path(self.token_file)) if self.token_file else ''


class AlreadyServed(Exception):
    """Another process serves this data directory.

    :param server: the other server; None while it is starting.
    """

    def __init__(self, server: LocalServer | None) -> None:
        super().__init__('already served')
        self.server = server


def registry(environment: dict[str, str] | os._Environ[str]) -> Path:
    """Return the directory with the copies for a user's servers."""
    state = environment.get('XDG_STATE_HOME') or str(Path.home() / '.local' / 'state')
    return Path(state) / 'convergence' / 'servers'


@contextlib.contextmanager
def claimed(data: Path) -> Iterator[None]:
    """Hold the lock of a data directory during the block.

    :raises AlreadyServed: another process holds it.
    :raises OSError: the directory cannot be written.
    """
    data.mkdir(parents=True, exist_ok=True, mode=0o700)
    lock = os.open(data / LOCK, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        if not _locked(lock, fcntl.LOCK_EX, _PATIENCE_S):
            raise AlreadyServed(_read(data / NAME))
        yield
    finally:
        os.close(lock)


@contextlib.contextmanager
def announced(server: LocalServer, copies: Path | None) -> Iterator[None]:
    """Publish the server during the block. The caller holds the lock of the data directory.

    :param copies: directory for the user's copy; None: no copy.
    """
    places = [Path(server.data) / NAME]
    if copies is not None:
        with contextlib.suppress(OSError):
            copies.mkdir(parents=True, exist_ok=True, mode=0o700)
            places.append(copies / f'{hashlib.sha256(server.data.encode()).hexdigest()[:16]}.json')
    for place in places:
        _write(place, server)
    try:
        yield
    finally:
        for place in places:
            with contextlib.suppress(OSError):
                place.unlink()


def find(start: Path, copies: Path) -> list[LocalServer]:
    """Return the running servers: the one whose data lies in `start` or above it, else all of the user's."""
    for directory in (start, *start.parents):
        server = alive(directory / DATA)
        if server is not None:
            return [server]
    found = [_read(path) for path in sorted(copies.glob('*.json'))]
    return [server for server in found if server is not None and alive(Path(server.data)) == server]


def served_at(url: str, start: Path, copies: Path) -> LocalServer | None:
    """Return the server of `find` that listens at a URL; None if there is none."""
    port = urlsplit(url).port
    return next((server for server in find(start, copies) if urlsplit(server.url).port == port), None)


def alive(data: Path) -> LocalServer | None:
    """Return the running server of a data directory; None if there is none."""
    server = _read(data / NAME)
    return server if server is not None and _is_held(data / LOCK) else None


def _is_held(path: Path) -> bool:
    try:
        lock = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    except OSError:
        return False
    try:
        return not _locked(lock, fcntl.LOCK_SH, 0.0)
    finally:
        os.close(lock)


def _locked(lock: int, kind: int, patience_s: float) -> bool:
    ends = time.monotonic() + patience_s
    while True:
        try:
            fcntl.flock(lock, kind | fcntl.LOCK_NB)
        except BlockingIOError:
            if time.monotonic() >= ends:
                return False
            time.sleep(0.02)
        else:
            return True


def _write(path: Path, server: LocalServer) -> None:
    """Write the file of a server atomically."""
    whole = path.with_name(f'{path.name}.{server.pid}')
    whole.write_text(json.dumps(asdict(server)), encoding='utf-8')
    whole.replace(path)


def _read(path: Path) -> LocalServer | None:
    try:
        with path.open(encoding='utf-8') as file:
            if os.fstat(file.fileno()).st_uid != os.geteuid():
                return None
            document = json.loads(file.read())
        url, pid, data, version = (document[name] for name in ('url', 'pid', 'data', 'version'))
        return LocalServer(str(url), int(pid), str(data), str(version), str(document.get('token_file') or ''))
    except (OSError, ValueError, KeyError, TypeError):
        return None
