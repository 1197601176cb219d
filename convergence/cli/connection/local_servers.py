"""Finds the servers that ``convergence serve`` runs on this machine.

A server writes a file with its URL into its data directory, and holds a lock while it runs. A file beside a free lock
belongs to a server that died. A copy in a directory of the user lets commands find the server from anywhere. Files of
another account are ignored: they would lead to a server of that account.

The file also holds the secret of this start, and only the user can read it. A server proves with the secret that it is
the announced one; see `convergence.cli.connection.own_server`.
"""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import json
import os
import secrets
import socket
import time
from collections.abc import Iterator
from dataclasses import asdict, dataclass, field
from pathlib import Path
from urllib.parse import urlsplit

from convergence.cli.connection import local_token
from convergence.cli.exits import Unreachable

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
    :param secret: with which this start proves its identity; empty: it cannot.
    """

    url: str
    pid: int
    data: str
    version: str
    token_file: str = ''
    secret: str = field(default='', repr=False)

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


def new_secret() -> str:
    """Return the secret of a start."""
    return secrets.token_hex(32)


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
        if token := server.token():
            with contextlib.suppress(OSError):
                _write(_note_of(token, copies), json.dumps({'data': server.data}))
    for place in places:
        _write(place, json.dumps(asdict(server)))
    try:
        yield
    finally:
        for place in places:
            with contextlib.suppress(OSError):
                place.unlink()


def find(start: Path) -> LocalServer | None:
    """Return the server of the data in `start`, or else in the nearest directory above; None without data.

    :raises Unreachable: the server of that data does not run. Another server would have stacks of the same names.
    """
    data = _data_near(start)
    if data is None:
        return None
    if (server := alive(data)) is not None:
        return server
    if _is_held(data / LOCK):
        raise Unreachable(f'The server with data in {data} is starting. Run the command again.')
    option = '' if data.parent == start else f' --data {data}'
    raise Unreachable(
        f'The server of this directory does not run; start it with "convergence serve{option}". Its data is in {data}. '
        'To use another server, select it with --endpoint URL.'
    )


def running(copies: Path) -> list[LocalServer]:
    """Return all running servers of the user."""
    found = [_read(path) for path in sorted(copies.glob('*.json'))]
    return [server for server in found if server is not None and alive(Path(server.data)) == server]


def served_at(url: str, start: Path, copies: Path) -> LocalServer | None:
    """Return the running server of the user that listens at the host and port of a URL; None if there is none."""
    data = _data_near(start)
    near = alive(data) if data is not None else None
    every = [*([near] if near is not None else []), *running(copies)]
    return next((server for server in every if is_same_address(url, server.url)), None)


def data_of_token(token: str, copies: Path) -> Path | None:
    """Return the data directory whose server has, or had, a token; None for a token of another origin."""
    try:
        return Path(json.loads(_note_of(token, copies).read_text(encoding='utf-8'))['data'])
    except (OSError, ValueError, KeyError, TypeError):
        return None


def _note_of(token: str, copies: Path) -> Path:
    """Return the path of the note that a token belongs to a server of this machine. It outlives the server."""
    return copies / f'{hashlib.sha256(token.encode(errors="replace")).hexdigest()}.token'


def _data_near(start: Path) -> Path | None:
    """Return the nearest data directory that a server of this account has used."""
    for directory in (start, *start.parents):
        with contextlib.suppress(OSError):
            if (directory / DATA / LOCK).stat().st_uid == os.geteuid():
                return directory / DATA
    return None


def is_same_address(url: str, other: str) -> bool:
    """Return True if two URLs name one address. The name localhost counts if it resolves to that address.

    :param other: the announced URL; its host is a number.
    """
    asked, own = urlsplit(url), urlsplit(other)
    if (asked.scheme, _port_of(url)) != (own.scheme, _port_of(other)):
        return False
    if asked.hostname == own.hostname:
        return True
    if asked.hostname != 'localhost':
        return False
    try:
        found = socket.getaddrinfo(asked.hostname, _port_of(url), type=socket.SOCK_STREAM)
    except OSError:
        return False
    return any(address[0] == own.hostname for *_, address in found)


def _port_of(url: str) -> int:
    parts = urlsplit(url)
    return parts.port or (443 if parts.scheme == 'https' else 80)


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


def _write(path: Path, text: str) -> None:
    """Write a file atomically, readable only by the user."""
    whole = path.with_name(f'{path.name}.{secrets.token_hex(8)}')
    with os.fdopen(os.open(whole, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), 'w', encoding='utf-8') as file:
        file.write(text)
    whole.replace(path)


def _read(path: Path) -> LocalServer | None:
    try:
        with path.open(encoding='utf-8') as file:
            found = os.fstat(file.fileno())
            if found.st_uid != os.geteuid():
                return None
            document = json.loads(file.read())
        url, pid, data, version = (document[name] for name in ('url', 'pid', 'data', 'version'))
        secret = '' if found.st_mode & 0o077 else str(document.get('secret') or '')
        token_file = str(document.get('token_file') or '')
        return LocalServer(str(url), int(pid), str(data), str(version), token_file, secret)
    except (OSError, ValueError, KeyError, TypeError):
        return None
