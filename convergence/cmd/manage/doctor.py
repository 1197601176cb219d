"""``convergence-manage doctor``: what may make an installation lose or leave something."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from convergence import config, errors
from convergence.cmd.process.program import ProgramExit

if TYPE_CHECKING:
    from convergence.db.connections.database import Database
    from convergence.db.repositories.health import HealthFinding


def doctor(database: Database, settings: config.Settings) -> ProgramExit:
    """Show each finding on a line of its own. Exit code 1: there is at least one.

    :raises DatabaseUnavailable: the schema is another one.
    """
    from convergence.db.repositories.health import examine
    from convergence.db.schema.migration import require_newest
    from convergence.db.statements.store import Store

    require_newest(database)
    found = [*_keys(database, settings), *examine(Store(database), time.time()), *_brokers(settings)]
    for finding in found:
        print(f'{finding.level}: {finding.text}.')
    if not found:
        print('Nothing was found.')
    return ProgramExit.FAILED if found else ProgramExit.OK


def _keys(database: Database, settings: config.Settings) -> list[HealthFinding]:
    """Return True if engines and workers with this configuration would accept their keys at the start."""
    from convergence.cmd.wiring.keys import require_keys
    from convergence.db.repositories.health import HealthFinding, Level

    try:
        require_keys(settings.secrets, database)
    except errors.OperatorError as error:
        return [HealthFinding(Level.ERROR, str(error).rstrip('.'))]
    return []


def _brokers(settings: config.Settings) -> list[HealthFinding]:
    """Each host of the broker by itself: one that is dead is not noticed before the others are, too."""
    from oslo_config import cfg

    from convergence.db.repositories.health import HealthFinding, Level
    from convergence.rpc.transport import MEMORY_URL, connect, hosts

    if settings.transport.url.startswith(MEMORY_URL.partition(':')[0] + ':'):
        return []
    found: list[HealthFinding] = []
    for url in hosts(cfg.CONF, settings.transport.url):
        try:
            connect(cfg.CONF, url, attempts=1).close()
        except errors.OperatorError as error:
            found.append(HealthFinding(Level.ERROR, str(error).rstrip('.')))
    return found
