"""Settings of the database."""

from __future__ import annotations

from dataclasses import dataclass

from convergence.settings.declaring import option


@dataclass(frozen=True, slots=True)
class DatabaseSettings:
    """The section ``database``. `connection` is a complete URL and may hold a password: never show it."""

    connection: str = option(
        '',
        'URL of the database, for example postgresql+psycopg2://user:password@host/convergence or '
        'mysql+pymysql://user:password@host/convergence. Default: an SQLite file in state_dir, which serves the '
        'processes of one machine only.',
        secret=True,
        required=True,
        sample='sqlite:///<state_dir>/convergence.sqlite',
    )
    max_pool_size: int = option(
        10,
        'Number of connections that each process keeps open. A process opens up to as many again while all are in use.',
        min=1,
    )
    max_retries: int = option(
        10, 'Number of retries of a starting process that cannot connect to the database, before it gives up.', min=0
    )
    retry_interval: int = option(10, 'Seconds between two of these retries.', min=1)
