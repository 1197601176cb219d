"""Settings of the keys that encrypt the database."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from convergence.settings.declaring import option


@dataclass(frozen=True, slots=True)
class SecretSettings:
    """The section ``secrets``. At most one of the two is set. The representation does not show the keys.

    :param key_file: absolute.
    """

    keys: tuple[str, ...] = option(
        (),
        'Keys that encrypt the user data in the database: templates, parameters, properties, outputs. The first key '
        'encrypts; all keys decrypt. All engines and workers need the same keys. "convergence-manage secrets new-key" '
        'makes one.',
        secret=True,
    )
    key_file: Path | None = option(
        None,
        'Path of a file with the keys, one per line, instead of the option keys. Only the account of the service '
        'should be able to read it. Default: for an SQLite database, the service makes a file beside it; on other '
        'databases the data are not encrypted and a warning says so.',
        sample='<SQLite file>.keys',
    )
