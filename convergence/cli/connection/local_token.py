"""The token of a server without Keystone. It restricts the server to one account of the machine.

Every account of a machine can reach its loopback address. Only the account that runs the server can read the file with
the token.
"""

from __future__ import annotations

import contextlib
import os
import secrets
import stat
from pathlib import Path

from convergence.errors import ConfigurationError

LEAST = 32
"""Minimum number of characters of a token: too many to guess, and an empty file gives no access."""


def made(path: Path) -> str:
    """Return the token in a file, and create the file if it is missing.

    The token survives restarts. If several processes start at once, all get the same token.

    :raises ConfigurationError: the file cannot be written, or other accounts can read it.
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
        raise ConfigurationError(f'The token file of the API, {path}, cannot be used: {error.strerror}.') from None


def forget(path: Path) -> None:
    """Delete the file with the token, so that the next start makes a new token.

    :raises ConfigurationError: the file cannot be deleted.
    """
    try:
        path.unlink(missing_ok=True)
    except OSError as error:
        raise ConfigurationError(f'The token file of the API, {path}, cannot be deleted: {error.strerror}.') from None


def known(path: Path) -> str:
    """Return the token in a file; empty if this account cannot read one."""
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
            f'{path} must belong to the account of this process, have mode 0600, '
            f'and hold a token of at least {LEAST} characters. Delete the file to get a new token.'
        )
    return token
