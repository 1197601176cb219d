"""Where the rows are."""

from __future__ import annotations

from dataclasses import dataclass

from oslo_config import cfg

OPTIONS: list[cfg.Opt] = [
    cfg.StrOpt(
        'connection',
        secret=True,
        sample_default='sqlite:///<state_dir>/convergence.sqlite',
        help='URL of the database, for example postgresql+psycopg2://user:password@host/convergence or '
        'mysql+pymysql://user:password@host/convergence. Without it: an SQLite file in state_dir, which serves '
        'processes of one machine only.',
    ),
    cfg.IntOpt(
        'max_pool_size',
        default=10,
        min=1,
        help='Connections that each process keeps open; it may open as many again when all are in use.',
    ),
    cfg.IntOpt(
        'max_retries',
        default=10,
        min=0,
        help='How often a process that cannot reach the database when it starts tries again before it gives up.',
    ),
    cfg.IntOpt('retry_interval', default=10, min=1, help='Seconds between two of these tries.'),
]


@dataclass(frozen=True, slots=True)
class DatabaseSettings:
    """How to reach the database. `connection` is a complete URL and may hold a password: never show it."""

    connection: str
    max_pool_size: int = 10
    max_retries: int = 10
    retry_interval: int = 10
