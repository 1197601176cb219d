"""``convergence-api``: the REST API. See `convergence.cmd.process.program` for its exit codes.

It needs the broker and, with ``[api] authentication = keystone``, Keystone; never the database. Behind another WSGI
server: `convergence.cmd.wsgi`.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence

from convergence.cmd.process.program import Program, ProgramService, require_broker, run
from convergence.concurrency import Executor
from convergence.config import Settings
from convergence.errors import ConfigurationError

NAME = 'convergence-api'
STOP_S = 10.0
"""Seconds after a request to stop in which running requests may finish."""


def build(settings: Settings) -> ProgramService:
    """An API process, connected.

    :raises OperatorError: the broker cannot be used, or the configuration is wrong.
    """
    require_broker(settings, NAME)
    if settings.api.workers > 1 and settings.api.port == 0:
        raise ConfigurationError('[api] port is 0, and several processes cannot share a port that each may choose.')
    from convergence.cmd.wiring.api import ApiProcess
    from convergence.cmd.wiring.api_presence import shown
    from convergence.cmd.wiring.keys import configured_seal
    from convergence.cmd.wiring.keystone import issuer_of
    from convergence.cmd.wiring.parts import open_transport

    issuer = issuer_of(settings, configured_seal(settings.secrets))
    transport = open_transport(settings)
    return ApiProcess(
        settings.api,
        transport,
        stop_s=STOP_S,
        close=transport.close,
        shown=shown(settings, transport),
        issuer=issuer,
    )


def main(argv: Sequence[str] | None = None) -> int:
    """Run it; the exit code."""
    program = Program(
        NAME,
        build,
        stop_s=lambda settings: STOP_S,
        processes=lambda settings: settings.api.workers,
        executor=Executor.THREADING,
    )
    return run(program, argv)


if __name__ == '__main__':
    sys.exit(main())
