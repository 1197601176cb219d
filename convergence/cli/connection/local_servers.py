"""How the commands of this machine find what ``convergence serve`` serves.

A server leaves a file with its URL in its data directory, and holds a lock for as long as it lives: a file beside a
lock that nobody holds was left by a server that died. A copy in a directory of the user lets commands find the server
from anywhere. Files of another account are not believed: they would lead to a server of that account.
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
"""A command that looks whether somebody serves holds the lock for a moment; a server that starts waits that long."""


@dataclass(frozen=True, slots=True)
class LocalServer:
    """What ``convergence serve`` says of itself: who serves what.

    :param url: where the API listens.
    :param data: the data directory, absolute.
    :param token_file: where the token is that requests must bring; empty: they need none.
    """

    url: str
    pid: int
    data: str
    version: str
    token_file: str = ''

    def token(self) -> str:
        """What the server wants to be sent; empty where it asks for no token."""
        return local_token.known(Path(self.token_file)) if self.token_file else ''


class AlreadyServed(Exception):
    """Somebody serves this data directory already.

    :param server: who; None where it has not said so yet.
    """

    def __init__(self, server: LocalServer | None) -> None:
        super().__init__('already served')
        self.server = server


def registry(environment: dict[str, str] | os._Environ[str]) -> Path:
    """The directory with the copies that lead to the servers of a user."""
    state = environment.get('XDG_STATE_HOME') or str(Path.home() / '.local' / 'state')
    return Path(state) / 'convergence' / 'servers'


@contextlib.contextmanager
def claimed(data: Path) -> Iterator[None]:
    """Serve a data directory for as long as the block lasts, alone.

    :raises AlreadyServed: another process does.
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
    """Let the server be found for as long as the block lasts. The data directory must be claimed.

    :param copies: directory of the user's copies; None: leave none.
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
    """The servers that are alive: the nearest alone if its data lies in `start` or above, else all of the user's."""
    for directory in (start, *start.parents):
        server = alive(directory / DATA)
        if server is not None:
            return [server]
    found = [_read(path) for path in sorted(copies.glob('*.json'))]
    return [server for server in found if server is not None and alive(Path(server.data)) == server]


def served_at(url: str, start: Path, copies: Path) -> LocalServer | None:
    """The server that listens at a URL of this machine, if it is one of those that `find` finds."""
    port = urlsplit(url).port
    return next((server for server in find(start, copies) if urlsplit(server.url).port == port), None)


def alive(data: Path) -> LocalServer | None:
    """The server of a data directory, if it lives."""
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
    """Write what a server says so that nobody ever reads half of it."""
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
