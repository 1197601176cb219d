"""``convergence-all-in-one``: one engine, ``[worker] workers`` workers and the API in one process.

With nothing configured it needs nothing: an SQLite file, messages in memory, and the resource types of the local
provider. With a broker and another database it is one more engine and some more workers of an installation.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence

from convergence.cmd.engine import STOP_S
from convergence.cmd.program import Program, Service, run
from convergence.config import Settings

NAME = 'convergence-all-in-one'
API_STOP_S = 5.0
"""Seconds that requests in hand are given when the program is told to stop."""


def build(settings: Settings) -> Service:
    """Everything in this process, connected.

    :raises OperatorError: database or broker cannot be used.
    """
    from convergence.cmd.api_presence import shown
    from convergence.cmd.api_process import ApiProcess
    from convergence.cmd.embedded import Embedded

    embedded = Embedded(settings)
    if not settings.api.embedded:
        return embedded
    transport = embedded.parts.transport
    return Together(
        embedded, ApiProcess(settings.api, transport, stop_s=API_STOP_S, shown=shown(settings, transport))
    )


class Together:
    """Several services as one; the first is started first and stopped last."""

    def __init__(self, *services: Service) -> None:
        self._services = services

    def start(self) -> None:
        """Begin: all of them or none."""
        started: list[Service] = []
        try:
            for service in self._services:
                service.start()
                started.append(service)
        except BaseException:
            for service in reversed(started):
                service.stop()
            raise

    def stop(self) -> None:
        """End in good order."""
        for service in reversed(self._services):
            service.stop()

    def close(self) -> None:
        """Give back connections."""
        for service in reversed(self._services):
            service.close()


def main(argv: Sequence[str] | None = None) -> int:
    """Run it; the exit code."""
    program = Program(
        NAME,
        build,
        stop_s=lambda settings: settings.worker.drain_timeout_s + STOP_S + API_STOP_S,
        defaults={('local_provider', 'enabled'): True},
    )
    return run(program, argv)


if __name__ == '__main__':
    sys.exit(main())
