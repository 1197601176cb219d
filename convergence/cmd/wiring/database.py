"""The way from settings to the database, for programs that need nothing else."""

from __future__ import annotations

import logging

from convergence.cmd.wiring.keys import configured_seal, own_seal
from convergence.config import Settings
from convergence.db.connections.database import Database, connect
from convergence.db.repositories.rotation import require_fitting
from convergence.db.schema.sealing import Seal, apply_seal

LOG = logging.getLogger(__name__)


def open_database(settings: Settings) -> Database:
    """Connect to the configured database, able to read and write what it keeps sealed.

    :raises DatabaseUnavailable: it does not answer.
    :raises ConfigurationError: its URL or its keys cannot be used, or its driver is not installed.
    :raises SealedWithAnotherKey: the keys do not open the stored secrets.
    """
    database, seal = open_unchecked(settings)
    try:
        require_fitting(database, seal)
    except BaseException:
        database.dispose()
        raise
    if seal is None:
        LOG.warning(
            'No key is configured: every reader of the database or of its backups can read all templates, parameters '
            'and properties. Make a key with "convergence-manage secrets new-key" and set [secrets] keys.'
        )
    return database


def open_unchecked(settings: Settings) -> tuple[Database, Seal | None]:
    """Like `open_database`, without looking whether the keys fit; with the seal that is in use.

    :raises DatabaseUnavailable: it does not answer.
    :raises ConfigurationError: its URL or its keys cannot be used, or its driver is not installed.
    """
    seal = configured_seal(settings.secrets)
    database = open_bare(settings)
    try:
        seal = seal or own_seal(database)
    except BaseException:
        database.dispose()
        raise
    if seal is not None:
        apply_seal(database, seal)
    return database, seal


def open_bare(settings: Settings) -> Database:
    """Connect to the configured database, for its schema and its processes. No key is needed: secrets stay sealed.

    :raises DatabaseUnavailable: it does not answer after the configured attempts.
    :raises ConfigurationError: its URL cannot be used, or its driver is not installed.
    """
    database = settings.database
    return connect(
        database.connection,
        pool_size=database.max_pool_size,
        attempts=database.max_retries + 1,
        interval_s=database.retry_interval,
    )
