"""The token that opens a server without Keystone to one account of its machine.

Every account of a machine can reach its loopback address. Who can read the file, and that is the account which the
server runs as, may use the server.
"""

from __future__ import annotations

import contextlib
import os
import secrets
import stat
from pathlib import Path

from convergence.errors import ConfigurationError

LEAST = 32
"""Characters that a token has at least: nobody guesses it, and an empty file opens nothing."""


def made(path: Path) -> str:
    """The token in a file, which is made where it is missing.

    It stays the same from start to start. Of several processes that begin at once one wins.

    :raises ConfigurationError: the file cannot be written, or is not one that only this account can read.
    """
    try:
        path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        with contextlib.suppress(FileNotFoundError):
            return _own(path)
        unfinished = path.with_name(f'{path.name}.{secrets.token_hex(8)}')
        try:
            with os.fdopen(os.open(unfinished, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), 'w') as file:
                file.write(f'{secrets.token_urlsafe(LEAST)}\n')
            with contextlib.suppress(FileExistsError):
                os.link(unfinished, path)
        finally:
            unfinished.unlink(missing_ok=True)
        return _own(path)
    except OSError as error:
        raise ConfigurationError(
            f'The file with the token of the API, {path}, cannot be used: {error.strerror}.'
        ) from None


def known(path: Path) -> str:
    """The token in a file; empty where there is none that this account can read."""
    try:
        return path.read_text(encoding='utf-8').strip()
    except (OSError, UnicodeError):
        return ''


def _own(path: Path) -> str:
    descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    with os.fdopen(descriptor, encoding='utf-8', errors='replace') as file:
        found = os.fstat(descriptor)
        token = file.read(4096).strip() if stat.S_ISREG(found.st_mode) else ''
    if found.st_uid != os.geteuid() or found.st_mode & 0o077 or len(token) < LEAST or not token.isascii():
        raise ConfigurationError(
            f'{path} must be a file of the account that runs this process, which nobody else can read (mode 0600), '
            f'with a token of {LEAST} characters or more. Remove it, and a new one is made.'
        )
    return token
