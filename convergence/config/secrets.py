"""What the database is sealed with."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

from oslo_config import cfg

OPTIONS: list[cfg.Opt] = [
    cfg.ListOpt(
        'keys',
        secret=True,
        default=[],
        help='Keys with which everything that users entrust to the database is sealed: templates, parameters, '
        'properties, outputs. The first one seals, each of them opens. All engines and workers need the same. Make one '
        'with "convergence-manage secrets new-key".',
    ),
    cfg.StrOpt(
        'key_file',
        sample_default='<SQLite file>.keys',
        help='File with the keys, one a line, instead of keys; it should be readable by the account of the service '
        'only. For an SQLite database a file beside it is made when none is configured. On other databases nothing is '
        'sealed then, and a warning says so.',
    ),
]


@dataclass(frozen=True, slots=True)
class SecretSettings:
    """Where the keys are. At most one of the two is set. The representation does not show the keys.

    :param key_file: absolute.
    """

    keys: tuple[str, ...] = field(default=(), repr=False)
    key_file: Path | None = None
