"""The way from settings to the database, for programs that need nothing else."""

from __future__ import annotations

from convergence.config import Settings
from convergence.db.connection import Database, connect


def open_database(settings: Settings) -> Database:
    """Connect to the configured database; tries as often as configured.

    :raises DatabaseUnavailable: it does not answer.
    :raises ConfigurationError: its URL cannot be used, or its driver is not installed.
    """
    database = settings.database
    return connect(
        database.connection,
        pool_size=database.max_pool_size,
        attempts=database.max_retries + 1,
        interval_s=database.retry_interval,
    )
