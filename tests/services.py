"""The servers that tests run against: PostgreSQL, MariaDB and RabbitMQ. SQLite needs none.

Each server is looked for once per run, when the first test asks for it:

1. at the URL in ``CONVERGENCE_TEST_POSTGRESQL_URL``, ``CONVERGENCE_TEST_MARIADB_URL`` or
   ``CONVERGENCE_TEST_RABBIT_URL`` (an account that may create databases, or virtual hosts);
2. on this machine's default port with the default account (postgres, root without a password, guest);
3. as a private server started by pifpaf, where the server's program is installed.

Where all three fail the tests are skipped, and the end of the run says so in one line; with ``CI=true`` they fail.
Every test gets a database of its own, named ``convergence_test_<process id>_<number>``.
"""

from __future__ import annotations

import contextlib
import getpass
import itertools
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import quote, urlsplit, urlunsplit

import pytest

PREFIX = 'convergence_test'
_numbers = itertools.count(1)


class Missing(Exception):
    """A server can neither be found nor started. The text says what was tried."""


def unique_name() -> str:
    """A name that no other test of this or a concurrent run has."""
    return f'{PREFIX}_{os.getpid()}_{next(_numbers)}'


def left_over(names: list[str]) -> list[str]:
    """Those of `names` that were made by a test process of this machine which has ended without removing them."""
    found = []
    for name in names:
        match = re.fullmatch(rf'{PREFIX}_(\d+)_\d+', name)
        if match and not Path(f'/proc/{match[1]}').exists():
            found.append(name)
    return found


@dataclass
class PostgreSQL:
    """A PostgreSQL server. `url` names the account and the database to log in to."""

    url: str

    def __post_init__(self) -> None:
        with self._connection() as cursor:
            cursor.execute('SELECT datname FROM pg_database')
            names = [row[0] for row in cursor.fetchall()]
        for name in left_over(names):
            self.drop(name)

    def create(self, template: str | None = None) -> str:
        """Make a database, empty or a copy of the unused database `template`, and return its URL."""
        name = unique_name()
        with self._connection() as cursor:
            cursor.execute(f'CREATE DATABASE {name} TEMPLATE {template or "template0"}')
        parts = urlsplit(self.url)
        return urlunsplit(('postgresql+psycopg2', parts.netloc, f'/{name}', parts.query, ''))

    def drop(self, name: str) -> None:
        """Remove a database, whoever is still connected to it."""
        with self._connection() as cursor:
            cursor.execute(f'DROP DATABASE IF EXISTS {name} WITH (FORCE)')

    def _connection(self) -> _Autocommit:
        import psycopg2

        connection = psycopg2.connect(self.url.replace('postgresql+psycopg2:', 'postgresql:'), connect_timeout=10)
        connection.autocommit = True
        return _Autocommit(connection)


@dataclass
class MariaDB:
    """A MariaDB or MySQL server.

    `url` names the account; its database, if any, is not touched. Tests use the driver that it names: PyMySQL for
    ``mysql://``, mysqlclient for ``mysql+mysqldb://``.
    """

    url: str

    def __post_init__(self) -> None:
        with self._connection() as cursor:
            cursor.execute('SHOW DATABASES')
            names = [row[0] for row in cursor.fetchall()]
        for name in left_over(names):
            self.drop(name)

    def create(self, template: str | None = None) -> str:
        """Make an empty database and return its URL.

        :raises NotImplementedError: a `template` is given; MariaDB copies no databases.
        """
        if template:
            raise NotImplementedError('MariaDB cannot copy a database')
        name = unique_name()
        with self._connection() as cursor:
            cursor.execute(f'CREATE DATABASE {name} CHARACTER SET utf8mb4')
        parts = urlsplit(self.url)
        query = '&'.join(part for part in (parts.query, 'charset=utf8mb4') if part)
        scheme = parts.scheme if '+' in parts.scheme else 'mysql+pymysql'
        return urlunsplit((scheme, parts.netloc, f'/{name}', query, ''))

    def drop(self, name: str) -> None:
        """Remove a database. Connections that still use it are ended first, or it would wait for their locks."""
        import pymysql

        with self._connection() as cursor:
            cursor.execute('SELECT id FROM information_schema.processlist WHERE db = %s', (name,))
            for (connection_id,) in cursor.fetchall():
                with contextlib.suppress(pymysql.err.OperationalError):  # it may have ended meanwhile
                    cursor.execute(f'KILL {int(connection_id)}')
            cursor.execute(f'DROP DATABASE IF EXISTS {name}')

    def _connection(self) -> _Autocommit:
        import pymysql

        parts = urlsplit(self.url)
        unix_socket = dict(item.partition('=')[::2] for item in parts.query.split('&')).get('unix_socket')
        return _Autocommit(
            pymysql.connect(
                host=parts.hostname or '127.0.0.1',
                port=parts.port or 3306,
                user=parts.username or 'root',
                password=parts.password or '',
                unix_socket=unix_socket,
                connect_timeout=10,
                autocommit=True,
            )
        )


class _Autocommit:
    """`with` gives a cursor; the connection is closed at the end."""

    def __init__(self, connection: object) -> None:
        self.connection = connection

    def __enter__(self):
        return self.connection.cursor()

    def __exit__(self, *_: object) -> None:
        self.connection.close()


@dataclass
class RabbitMQ:
    """A RabbitMQ server.

    `url` ends in a virtual host of this run's own where ``rabbitmqctl`` may be used; otherwise in the given one, and
    tests keep apart by the names of their exchanges (they should do so anyway: the virtual host is shared by a run).

    :param shared: False for a server that only this run knows, which needs no virtual host of its own.
    """

    url: str
    shared: bool = True
    _own: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        _log_in(self.url)
        if self.shared and _is_local(self.url) and urlsplit(self.url).path in ('', '/'):
            self._make_virtual_host()

    def close(self) -> None:
        """Remove the virtual host and everything in it."""
        while self._own:
            self._control('delete_vhost', self._own.pop())

    def _make_virtual_host(self) -> None:
        listed = self._control('-q', 'list_vhosts', 'name')
        if listed is None:
            return
        for name in left_over(listed.split()):
            self._control('delete_vhost', name)
        name, parts = unique_name(), urlsplit(self.url)
        if self._control('add_vhost', name) is None:
            return
        self._own.append(name)
        self._control('set_permissions', '-p', name, parts.username or 'guest', '.*', '.*', '.*')
        url = urlunsplit((parts.scheme, parts.netloc, '/' + quote(name), parts.query, ''))
        try:
            _log_in(url)
        except Exception:  # noqa: BLE001 - rabbitmqctl spoke to another server of this machine
            self.close()
        else:
            self.url = url

    def _control(self, *arguments: str) -> str | None:
        """What rabbitmqctl prints, or None where it cannot be used (not installed, not our server, not allowed)."""
        program = shutil.which('rabbitmqctl') or shutil.which('rabbitmqctl', path='/usr/sbin:/usr/lib/rabbitmq/bin')
        if program is None:
            return None
        try:
            done = subprocess.run([program, *arguments], capture_output=True, text=True, timeout=60, check=False)
        except (OSError, subprocess.TimeoutExpired):
            return None
        return done.stdout if done.returncode == 0 else None


def _is_local(url: str) -> bool:
    return urlsplit(url).hostname in ('127.0.0.1', 'localhost', '::1')


def _log_in(url: str) -> None:
    """Prove that a broker answers and lets us in: a listening port alone may be anything."""
    from kombu import Connection

    amqp = url.replace('rabbit://', 'amqp://', 1)
    if urlsplit(amqp).path in ('', '/'):
        amqp = amqp.rstrip('/') + '//'
    with Connection(amqp, connect_timeout=10) as connection:
        connection.connect()


Server = PostgreSQL | MariaDB | RabbitMQ


@dataclass(frozen=True)
class Kind:
    """How one kind of server is found.

    :param programs: what must be installed for a private one, any of them.
    :param user: whom a private one runs as where the tests run as root.
    """

    variable: str
    defaults: tuple[str, ...]
    make: Callable[..., Server]
    pifpaf: str
    programs: tuple[str, ...]
    user: str | None


KINDS = {
    'postgresql': Kind(
        'CONVERGENCE_TEST_POSTGRESQL_URL',
        ('postgresql://postgres@127.0.0.1:5432/postgres',),
        PostgreSQL,
        'postgresql',
        ('pg_config',),
        'postgres',
    ),
    'mariadb': Kind(
        'CONVERGENCE_TEST_MARIADB_URL',
        (
            'mysql://root@127.0.0.1:3306/',
            'mysql://root@localhost/?unix_socket=/run/mysqld/mysqld.sock',
        ),
        MariaDB,
        'mysql',
        ('mariadbd', 'mysqld'),
        'mysql',
    ),
    'rabbit': Kind(
        'CONVERGENCE_TEST_RABBIT_URL',
        ('rabbit://guest:guest@127.0.0.1:5672/',),
        RabbitMQ,
        'rabbitmq',
        ('rabbitmq-server',),
        None,
    ),
}


class Services:
    """Finds each server once; remembers those that are missing, and stops what it has started."""

    def __init__(self) -> None:
        self.missing: dict[str, str] = {}
        self._found: dict[str, Server] = {}
        self._started: list[int] = []

    def get(self, kind: str) -> Server:
        """The server, found or started at the first call.

        :raises Missing: there is none.
        """
        if kind in self.missing:
            raise Missing(self.missing[kind])
        if kind not in self._found:
            try:
                self._found[kind] = self._find(KINDS[kind])
            except Missing as reason:
                self.missing[kind] = str(reason)
                raise
        return self._found[kind]

    def close(self) -> None:
        """Remove what this run made in the servers and stop those that it started."""
        for server in self._found.values():
            if isinstance(server, RabbitMQ):
                server.close()
        for process_id in self._started:
            os.kill(process_id, signal.SIGTERM)

    def _find(self, kind: Kind) -> Server:
        given = os.environ.get(kind.variable)
        tried = []
        for url in (given,) if given else kind.defaults:
            try:
                return kind.make(url)
            except Exception as error:  # noqa: BLE001 - each driver has its own way to say that nobody is there
                reason = str(error).strip().splitlines() or [type(error).__name__]
                tried.append(f'{urlsplit(url).hostname}: {reason[0]}')
        if given:
            raise Missing(f'{kind.variable} is set, but {"; ".join(tried)}')
        program = next(filter(shutil.which, kind.programs), None)
        if program is None:
            raise Missing(f'{"; ".join(tried)}; no {" or ".join(kind.programs)} installed; {kind.variable} not set')
        return self._start(kind, tried)

    def _start(self, kind: Kind, tried: list[str]) -> Server:
        """Have pifpaf start a private server, which ends with this run."""
        command = [str(Path(sys.executable).with_name('pifpaf')), '--env-prefix', 'PRIVATE', 'run', kind.pifpaf]
        port = _free_port()
        if kind.make is not MariaDB:  # that one listens on a socket file alone
            command += ['--port', str(port)]
        if kind.make is RabbitMQ:
            command += ['--nodename', f'{PREFIX}_{os.getpid()}']
        # These servers refuse to run as root, or drop to an account that cannot read the files of root.
        user = kind.user if os.geteuid() == 0 else None
        try:
            done = subprocess.run(
                command,
                capture_output=True,
                text=True,
                timeout=120,
                check=False,
                user=user,
                group=user,
                cwd='/',
                # What is configured for the RabbitMQ of this machine, such as its port, is not for ours.
                env=os.environ | {'RABBITMQ_CONFIG_FILE': '/nonexistent', 'RABBITMQ_CONF_ENV_FILE': '/nonexistent'},
            )
        except (OSError, LookupError, subprocess.TimeoutExpired) as error:
            raise Missing(f'{"; ".join(tried)}; pifpaf: {error}') from error
        exported = dict(re.findall(r'export (\w+)="([^"]*)"', done.stdout))
        if 'PIFPAF_PID' not in exported:
            last = (done.stderr.strip().splitlines() or ['no reason given'])[-1]
            raise Missing(f'{"; ".join(tried)}; pifpaf could not start one: {last[:200]}')
        self._started.append(int(exported['PIFPAF_PID']))
        if kind.make is RabbitMQ:
            return RabbitMQ(f'rabbit://pifpaf:secret@127.0.0.1:{port}/', shared=False)
        url = exported['PRIVATE_URL']
        if kind.make is PostgreSQL:  # its first account is called like the one that made it
            url = url.replace('://', f'://{user or getpass.getuser()}@', 1)
        return kind.make(url)


SERVICES = Services()
"""Those of this run."""


def service(kind: str) -> Any:
    """The server, or the end of the test: skipped, but failed in CI, where every service is to be there."""
    try:
        return SERVICES.get(kind)
    except Missing as missing:
        reason = f'no {kind}: {missing}'
        if os.environ.get('CI', '').lower() in ('1', 'true', 'yes'):
            pytest.fail(reason, pytrace=False)
        pytest.skip(reason)


def _free_port() -> int:
    """A port below the range from which clients are given theirs, so that none of them can take it meanwhile."""
    for port in range(20000 + os.getpid() % 5000, 32000):
        with socket.socket() as probe:
            try:
                probe.bind(('127.0.0.1', port))
            except OSError:
                continue
            return port
    raise Missing('no free port')
