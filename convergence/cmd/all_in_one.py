"""``convergence-all-in-one``: one engine, ``[worker] workers`` workers and the API in one process.

With nothing configured it needs nothing: an SQLite file, messages in memory, and the resource types of the local
provider. With a broker and another database it is one more engine and some more workers of an installation; with
these, or with Keystone, the local provider is there only where the configuration enables it.
"""

from __future__ import annotations

import contextlib
import logging
import os
import sys
from collections.abc import Callable, Sequence
from dataclasses import replace

from convergence import __version__
from convergence.cli.connection import local_servers
from convergence.cmd.engine import STOP_S
from convergence.cmd.process.program import Program, ProgramService, Working, run
from convergence.config import Settings

LOG = logging.getLogger(__name__)

NAME = 'convergence-all-in-one'
API_STOP_S = 5.0
"""Seconds after a request to stop in which running requests may finish."""


def build(settings: Settings) -> ProgramService:
    """Everything in this process, connected.

    :raises OperatorError: database or broker cannot be used.
    """
    from convergence.cmd.embedded import Embedded
    from convergence.cmd.wiring.api import ApiProcess
    from convergence.cmd.wiring.api_address import Telling
    from convergence.cmd.wiring.api_presence import shown
    from convergence.cmd.wiring.keystone import issuer_of
    from convergence.cmd.wiring.observer import ObserverProcess
    from convergence.db.schema.sealing import seal_of

    embedded = Embedded(settings)
    observers = [ObserverProcess(embedded.parts, owns_parts=False)] if settings.observer.enabled else []
    if not settings.api.embedded:
        return Together(embedded, *observers)
    transport = embedded.parts.transport
    issuer = issuer_of(settings, seal_of(embedded.parts.store.engine.dialect))
    secret = local_servers.new_secret()
    options = replace(settings.api, secret=secret)
    api = ApiProcess(options, transport, stop_s=API_STOP_S, shown=shown(settings, transport), issuer=issuer)
    telling = Telling(embedded.parts.api, lambda: api.address)
    if settings.api.authentication != 'noauth':
        return Together(embedded, *observers, api, telling)
    return Together(embedded, *observers, api, telling, Posting(settings, lambda: api.address, secret))


class Together:
    """Several services as one; the first is started first and stopped last."""

    def __init__(self, *services: ProgramService) -> None:
        self._services = services

    def start(self) -> None:
        """Begin: all of them or none."""
        started: list[ProgramService] = []
        try:
            for service in self._services:
                service.start()
                started.append(service)
        except BaseException:
            for service in reversed(started):
                service.stop()
            raise

    def begin_nothing(self) -> None:
        """Nothing begins from now on, in none of them."""
        for service in self._services:
            if isinstance(service, Working):
                service.begin_nothing()

    def stop(self) -> None:
        """End in good order."""
        for service in reversed(self._services):
            service.stop()

    def close(self) -> None:
        """Give back connections."""
        for service in reversed(self._services):
            service.close()


class Posting:
    """Lets the commands of this account find the API, unless another process serves the same directory.

    :param address: the URL of the API, once it listens.
    :param secret: with which the API proves its identity.
    """

    def __init__(self, settings: Settings, address: Callable[[], str], secret: str) -> None:
        self._data, self._address, self._token_file = settings.state_dir, address, settings.api.token_file
        self._secret = secret
        self._announced = contextlib.ExitStack()

    def start(self) -> None:
        """Let commands of this machine find the API."""
        token_file = str(self._token_file or '')
        server = local_servers.LocalServer(
            self._address(), os.getpid(), str(self._data), __version__, token_file, self._secret
        )
        try:
            self._announced.enter_context(local_servers.claimed(self._data))
            self._announced.enter_context(local_servers.announced(server, local_servers.registry(os.environ)))
        except (OSError, local_servers.AlreadyServed) as error:
            self._announced.close()
            LOG.info(
                'API not announced to commands on this machine, name it with --endpoint: %s: %s', self._data, error
            )

    def stop(self) -> None:
        """Remove the address from the file in which commands find this API."""
        self._announced.close()

    def close(self) -> None:
        """Nothing is held."""


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
