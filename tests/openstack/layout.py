"""Where everything of the control plane is: directories, ports, databases, the virtual host of the broker."""

from __future__ import annotations

import hashlib
import os
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import quote, urlsplit, urlunsplit

from tests.services import SERVICES

VARIABLE = 'CONVERGENCE_OPENSTACK_DIRECTORY'
"""Names the directory, for those who want it elsewhere than in the source tree."""

PASSWORD = 'secret'
"""Of every user. All of it listens on this machine only."""

REGION = 'RegionOne'
APIS = ('keystone', 'glance', 'placement', 'neutron', 'nova', 'cinder')
DATABASES = ('keystone', 'glance', 'placement', 'neutron', 'nova_api', 'nova', 'nova_cell0', 'cinder')
FIRST_PORT = 25000
PORTS_APART = 10


@dataclass(frozen=True)
class Layout:
    """One control plane.

    :param directory: for everything that is written: programs, configuration, state, logs.
    :param database_server: URL of a MariaDB, with an account that may make databases.
    :param broker: URL of a RabbitMQ, without a virtual host.
    """

    directory: Path
    database_server: str
    broker: str

    @classmethod
    def here(cls, directory: Path | None = None) -> Layout:
        """The one of this source tree, or of `directory`, on the servers of this machine.

        :raises Missing: MariaDB or RabbitMQ is missing.
        """
        parts = urlsplit(SERVICES.get('rabbit').url)
        return cls(
            directory or place(),
            SERVICES.get('mariadb').url,
            urlunsplit((parts.scheme, parts.netloc, '', '', '')),
        )

    @property
    def mark(self) -> str:
        """What tells its databases, its virtual host and its ports from those of another tree on this machine."""
        return hashlib.sha256(str(self.directory).encode()).hexdigest()[:6]

    @property
    def programs(self) -> Path:
        """The virtual environment of the services."""
        return self.directory / 'venv'

    @property
    def configuration(self) -> Path:
        """The directory of the configuration files."""
        return self.directory / 'etc'

    @property
    def state(self) -> Path:
        """Keys, images and what else services keep in files."""
        return self.directory / 'state'

    @property
    def logs(self) -> Path:
        """What the services say, a file for each."""
        return self.directory / 'log'

    @property
    def dump(self) -> Path:
        """The databases as they are before anything is done with the services."""
        return self.directory / 'databases.sql'

    @property
    def virtual_host(self) -> str:
        """Of the broker."""
        return f'convergence_openstack_{self.mark}'

    @property
    def transport_url(self) -> str:
        """The virtual host, as services want it."""
        return f'{self.broker}/{quote(self.virtual_host)}'

    def program(self, name: str) -> str:
        """A program of the virtual environment."""
        return str(self.programs / 'bin' / name)

    def port(self, service: str) -> int:
        """Where the API of a service listens. It stands in the catalog, so it is always the same."""
        return FIRST_PORT + int(self.mark, 16) % 500 * PORTS_APART + APIS.index(service)

    def url(self, service: str) -> str:
        """Where an API is, without a version."""
        return f'http://127.0.0.1:{self.port(service)}'

    @property
    def auth_url(self) -> str:
        """Keystone."""
        return f'{self.url("keystone")}/v3'

    def database(self, name: str) -> str:
        """The name of a database at the server."""
        return f'convergence_openstack_{self.mark}_{name}'

    def database_url(self, name: str) -> str:
        """A database, as services want it."""
        parts = urlsplit(self.database_server)
        query = '&'.join(part for part in (parts.query, 'charset=utf8mb4') if part)
        return urlunsplit(('mysql+pymysql', parts.netloc, f'/{self.database(name)}', query, ''))


def place() -> Path:
    """The directory of the control plane of this source tree."""
    given = os.environ.get(VARIABLE)
    return Path(given).resolve() if given else Path(__file__).parents[2] / '.openstack'
