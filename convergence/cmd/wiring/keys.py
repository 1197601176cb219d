"""The keys of an installation: from the configuration, from a file, or made at the first start."""

from __future__ import annotations

import contextlib
import logging
import os
import uuid
from pathlib import Path

from convergence.config import SecretSettings
from convergence.db.connections.database import Database
from convergence.db.repositories.rotation import require_fitting
from convergence.db.schema.sealing import Seal, new_key
from convergence.errors import ConfigurationError, SealedWithAnotherKey

LOG = logging.getLogger(__name__)

SUFFIX = '.keys'
"""Added to the name of an SQLite file: the name of the file with its keys."""
HEAD = """\
# These keys, one a line, seal the secrets in the database beside this file: the first one seals, each of them opens.
# Without them the stacks are lost. With them and the database every secret can be read.
"""


def configured_seal(settings: SecretSettings) -> Seal | None:
    """The seal that is configured; None where nothing is.

    :raises ConfigurationError: a key is none, or the file cannot be read.
    """
    if settings.keys:
        return Seal(settings.keys, '[secrets] keys')
    if settings.key_file is not None:
        return _read(settings.key_file, f'[secrets] key_file {settings.key_file}')
    return None


def require_keys(settings: SecretSettings, database: Database) -> None:
    """Make sure that the keys exist and open the stored secrets. This writes nothing and makes no key.

    :raises ConfigurationError: a key is none, or the file cannot be read.
    :raises SealedWithAnotherKey: the keys do not open the stored secrets.
    """
    seal = configured_seal(settings)
    require_fitting(database, own_seal(database, make=False) if seal is None else seal)


def own_seal(database: Database, *, make: bool = True) -> Seal | None:
    """The seal of a database for which none is configured: that of the file beside an SQLite file, made if need be.

    :param make: whether the file may be made.
    :raises SealedWithAnotherKey: the file is gone, and what it sealed is there.
    :raises ConfigurationError: the file cannot be read or written.
    """
    if database.dialect.name != 'sqlite' or not database.url.database:
        return None
    path = Path(database.url.database + SUFFIX)
    if not path.exists():
        try:
            require_fitting(database, None)
        except SealedWithAnotherKey:
            raise SealedWithAnotherKey(
                f'{path} is missing, and the secrets in the database beside it are sealed with its keys. '
                'Put the file back; nothing was changed.'
            ) from None
        if not make:
            return None
        _make(path)
    return _read(path, str(path))


def _read(path: Path, origin: str) -> Seal:
    try:
        lines = [line.strip() for line in path.read_text(encoding='utf-8').splitlines()]
        exposed = path.stat().st_mode & 0o007
    except (OSError, UnicodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else 'it is no text'
        raise ConfigurationError(f'{origin} cannot be read: {reason}.') from None
    if exposed:
        LOG.warning('%s can be read or written by every account of this machine; make it 0600 or 0640', path)
    return Seal([line for line in lines if line and not line.startswith('#')], origin)


def _make(path: Path) -> None:
    """A file with a new key. Of several processes that begin at once one wins, and none sees half a file."""
    unfinished = path.with_name(f'{path.name}.{uuid.uuid4()}')
    try:
        try:
            with os.fdopen(os.open(unfinished, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), 'w') as file:
                file.write(f'{HEAD}{new_key()}\n')
                file.flush()
                os.fsync(file.fileno())
            with contextlib.suppress(FileExistsError):
                os.link(unfinished, path)
                LOG.info('Made a new key that seals the secrets of the database: %s; keep a copy of that file', path)
        finally:
            unfinished.unlink(missing_ok=True)
    except OSError as error:
        raise ConfigurationError(
            f'The file with the keys of the database, {path}, cannot be written: {error.strerror}.'
        ) from None
