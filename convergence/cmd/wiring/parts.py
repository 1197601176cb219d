"""The parts that every process shares: settings, store, transport, resource types, address of the API, Keystone."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Self

from oslo_config import cfg

from convergence.cmd.wiring.api_address import ApiAddress
from convergence.cmd.wiring.database import open_database
from convergence.cmd.wiring.keystone import keystone_of
from convergence.cmd.wiring.local_provider import local_provider
from convergence.cmd.wiring.notifications import audience
from convergence.config import Settings
from convergence.db.connections.database import Database
from convergence.db.schema.migration import require_newest
from convergence.db.schema.sealing import opened, seal_of
from convergence.db.statements.store import Store
from convergence.resources.registry import Registry
from convergence.rpc.transport import MEMORY_URL, Transport
from convergence.rpc.transport import connect as connect_broker

if TYPE_CHECKING:
    from convergence.credentials.keystone import Keystone


def open_transport(settings: Settings, prefix: str | None = None) -> Transport:
    """Connect to the configured broker.

    :param prefix: see `convergence.rpc.transport.connect`.
    :raises ConfigurationError: the URL is wrong.
    :raises MessagingUnavailable: the broker does not answer.
    """
    configured = settings.transport
    return connect_broker(
        cfg.CONF,
        configured.url,
        prefix=prefix,
        call_timeout_s=configured.response_timeout_s,
        lock_directory=settings.state_dir / 'locks',
    )


def registry(settings: Settings, api: ApiAddress | None = None) -> Registry:
    """The resource types that are installed, with the local provider where that is enabled.

    :param api: the address for signals; None: the configured one.
    :raises ConfigurationError: the local provider cannot be used, or must not be.
    """
    return Registry.installed(
        local=local_provider(settings), api=api or ApiAddress.of(settings), prefer=settings.plugins.prefer
    )


@dataclass(frozen=True, slots=True)
class Parts:
    """The parts that every process has.

    :param types: the resource types of this process.
    :param api: where the API is.
    :param keystone: where stacks have credentials; None: they have none.
    """

    settings: Settings
    store: Store
    transport: Transport
    types: Registry
    api: ApiAddress
    keystone: Keystone | None = None

    @classmethod
    def of(
        cls,
        settings: Settings,
        database: Database,
        transport: Transport,
        types: Registry | None = None,
        conf: cfg.ConfigOpts = cfg.CONF,
    ) -> Self:
        """The parts on a database and a broker that answer.

        :param conf: filled; keystoneauth1 reads its own options from it.
        :raises DatabaseUnavailable: the schema is not the one that this version needs.
        :raises ConfigurationError: the Keystone of ``[credentials]`` cannot be used.
        """
        require_newest(database)
        api = ApiAddress.of(settings)
        keystone = keystone_of(settings.credentials, conf)
        store = Store(database, audience=audience(settings, conf))
        return cls(settings, store, transport, types or registry(settings, api), api, keystone)

    @classmethod
    def open(cls, settings: Settings) -> Self:
        """The parts on the configured database and broker.

        :raises OperatorError: one of them does not answer, or cannot be used.
        """
        database = open_database(settings)
        require_newest(database)
        return cls.of(settings, database, open_transport(settings))

    def close(self) -> None:
        """Give the connections back. What uses them must have been stopped."""
        self.transport.close()
        self.store.engine.dispose()

    def sealing(self) -> tuple[Callable[[str], str], Callable[[str], str]]:
        """Return two functions: one seals a text with the keys of the database, the other opens it."""
        seal = seal_of(self.store.engine.dialect)
        return seal.close if seal is not None else str, partial(opened, seal=seal)

    def queue_name(self, service_id: str) -> str:
        """Under which name a process listens.

        No message is addressed to a single process. On a broker all of one machine share a name, so that a process that
        starts leaves no queues of its own behind; inside a process the name tells its listeners apart.
        """
        in_process = self.settings.transport.url.startswith(MEMORY_URL.partition(':')[0] + ':')
        return service_id if in_process else self.settings.host


def observed_types(parts: Parts) -> dict[str, float]:
    """Return the longest pause in seconds between two observations of an object, for each observed type."""
    return parts.types.observed_every_s(parts.settings.observer.interval_s, parts.settings.observer.intervals)
