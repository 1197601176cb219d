"""The commands of ``convergence-manage secrets``."""

from __future__ import annotations

from typing import TYPE_CHECKING

from convergence.cmd.process.program import ProgramExit
from convergence.errors import ConfigurationError, SealedWithAnotherKey

if TYPE_CHECKING:
    from convergence.config import Settings
    from convergence.db.connections.database import Database

MOST_SHOWN = 20
"""Values that cannot be opened are named one by one up to this number."""


def new_key(settings: Settings) -> ProgramExit:
    """Print a key that was never used before."""
    from convergence.db.schema import sealing

    print(sealing.new_key())
    return ProgramExit.OK


def _require_nothing_sealed(database: Database) -> None:
    """Make sure that no key is missing before a new one is made: it would open none of the stored secrets.

    :raises SealedWithAnotherKey: something is sealed.
    """
    from convergence.db.repositories.rotation import require_fitting

    try:
        require_fitting(database, None)
    except SealedWithAnotherKey:
        raise SealedWithAnotherKey(
            'The database holds sealed secrets, and no key is configured for this command. Give it the keys of '
            'engines and workers. With the systemd units, which keep [secrets] out of convergence.conf: '
            'OS_SECRETS__KEY_FILE=/etc/convergence/keys convergence-manage secrets rotate. Make no new key: it would '
            'open nothing.'
        ) from None


def rotate(settings: Settings) -> ProgramExit:
    """Seal every secret again with the first key, also those that were never sealed.

    :raises ConfigurationError: there is no key.
    :raises DatabaseUnavailable: the database does not answer, or has another schema.
    """
    # Not before the executor is installed.
    from convergence.cmd.wiring.database import open_unchecked
    from convergence.db.repositories.rotation import rotate
    from convergence.db.schema.migration import require_newest

    database, seal = open_unchecked(settings)
    try:
        if seal is None:
            _require_nothing_sealed(database)
            raise ConfigurationError(
                'No key is configured, so there is nothing to seal with. Make one with "convergence-manage secrets '
                'new-key", set [secrets] keys for all engines and workers, restart them, then repeat this.'
            )
        require_newest(database)
        done = rotate(database, seal)
    finally:
        database.dispose()
    print(f'{done.sealed} {"value was" if done.sealed == 1 else "values were"} sealed with the first key.')
    if not done.unopened:
        print('Everything is sealed with it now; the other keys are not needed any more.')
        return ProgramExit.OK
    print(f'{len(done.unopened)} could not be opened with any key and stay unchanged:')
    for place in done.unopened[:MOST_SHOWN]:
        print(f'  {place}')
    if len(done.unopened) > MOST_SHOWN:
        print(f'  and {len(done.unopened) - MOST_SHOWN} more')
    print('Put the key that is missing back, after the first one, and repeat this.')
    return ProgramExit.FAILED
