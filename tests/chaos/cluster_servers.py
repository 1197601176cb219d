"""Clusters of the run's own: three Galera servers, and a PostgreSQL primary with a synchronous standby."""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import socket
import time
from collections.abc import Iterator
from pathlib import Path

import psycopg2
import pymysql
from typing_extensions import override

from tests.chaos.installation import until
from tests.chaos.servers import START_S, CannotStart, PostgreSQL, Unavailable, _Owned

PROVIDERS = ('/usr/lib/galera/libgalera_smm.so', '/usr/lib64/galera-4/libgalera_smm.so')


def free_ports(count: int) -> list[int]:
    """Ports that nobody uses, all different, below the range from which clients are given theirs."""
    found: list[int] = []
    for port in range(26000 + os.getpid() % 3000, 32000):
        with socket.socket() as probe, contextlib.suppress(OSError):
            probe.bind(('127.0.0.1', port))
            found.append(port)
        if len(found) == count:
            return found
    raise CannotStart('no free ports')


class Node(_Owned):
    """One server of a Galera cluster."""

    name = 'galera'

    def __init__(self, directory: Path, number: int, provider: str, ports: list[int]) -> None:
        super().__init__(directory, 'mysql')
        self.port, own, transfer, increments = ports[4 * number : 4 * number + 4]
        program = shutil.which('mariadbd', path=f'{os.environ["PATH"]}:/usr/sbin')
        if program is None or shutil.which('mariadb-install-db') is None or shutil.which('rsync') is None:
            raise Unavailable('MariaDB (mariadbd, mariadb-install-db) or rsync is not installed')
        self._program = program
        self._install()
        members = ','.join(f'127.0.0.1:{port}' for port in ports[1::4])
        self._options = [
            '--no-defaults',
            f'--datadir={directory / "data"}',
            f'--port={self.port}',
            f'--socket={directory / "socket"}',
            f'--pid-file={directory / "pid"}',
            '--bind-address=127.0.0.1',
            '--max-connections=300',
            '--skip-name-resolve',
            '--binlog-format=ROW',
            '--innodb-autoinc-lock-mode=2',
            '--innodb-flush-log-at-trx-commit=2',
            '--wsrep-on=ON',
            f'--wsrep-provider={provider}',
            '--wsrep-cluster-name=chaos',
            f'--wsrep-cluster-address=gcomm://{members}',
            f'--wsrep-node-name=n{number}',
            '--wsrep-node-address=127.0.0.1',
            '--wsrep-sst-method=rsync',
            f'--wsrep-sst-receive-address=127.0.0.1:{transfer}',
            (
                f'--wsrep-provider-options=base_port={own};gmcast.listen_addr=tcp://127.0.0.1:{own};'
                f'ist.recv_addr=127.0.0.1:{increments};gcache.size=64M'
            ),
        ]

    def _install(self) -> None:
        self.run(
            'mariadb-install-db',
            '--no-defaults',
            f'--datadir={self.directory / "data"}',
            '--auth-root-authentication-method=normal',
            '--skip-test-db',
        )

    def start(self, *, first: bool = False) -> None:
        """Join the others, or begin a new cluster; returns when it takes statements."""
        self.begin(self._program, *self._options, *(['--wsrep-new-cluster'] if first else []))
        ends = time.monotonic() + START_S
        while not self.is_ready():
            if time.monotonic() > ends:
                raise CannotStart(f'the Galera server {self.directory.name} does not join the others; see its log')
            time.sleep(0.2)

    def is_ready(self) -> bool:
        """Whether it takes statements."""
        with contextlib.suppress(pymysql.MySQLError, OSError):
            return self._ask("SHOW STATUS LIKE 'wsrep_ready'") == ('wsrep_ready', 'ON')
        return False

    def execute(self, statement: str) -> None:
        """Carry out a statement as root."""
        self._ask(statement)

    def _ask(self, statement: str) -> object:
        connection = pymysql.connect(host='127.0.0.1', port=self.port, user='root', connect_timeout=5, read_timeout=10)
        with contextlib.closing(connection), connection.cursor() as cursor:
            cursor.execute(statement)
            return cursor.fetchone()

    def url(self, database: str) -> str:
        """Of a database, through this server."""
        return f'mysql+pymysql://root@127.0.0.1:{self.port}/{database}'

    def lag(self, seconds: float) -> None:
        """Apply nothing for so long of what the others commit: who reads here, and does not insist, reads old rows."""
        connection = pymysql.connect(host='127.0.0.1', port=self.port, user='root', connect_timeout=5, read_timeout=60)
        with contextlib.closing(connection), connection.cursor() as cursor:
            # Out of step, so that the others are not held up.
            cursor.execute('SET GLOBAL wsrep_desync = ON')
            try:
                cursor.execute('FLUSH TABLES WITH READ LOCK')
                time.sleep(seconds)
                cursor.execute('UNLOCK TABLES')
            finally:
                cursor.execute('SET GLOBAL wsrep_desync = OFF')

    def stall(self, seconds: float) -> None:
        """Stand still for so long."""
        assert self._process is not None
        self._process.send_signal(signal.SIGSTOP)
        time.sleep(seconds)
        self._process.send_signal(signal.SIGCONT)


class Galera:
    """Three servers, all of which can be written to."""

    def __init__(self, directory: Path) -> None:
        provider = next((each for each in PROVIDERS if Path(each).exists()), None)
        if provider is None:
            raise Unavailable('galera-4 is not installed')
        ports = free_ports(12)
        self.nodes = [Node(directory / f'n{number}', number, provider, ports) for number in range(3)]

    def start(self) -> None:
        """One after the other."""
        for number, node in enumerate(self.nodes):
            node.start(first=number == 0)

    def stop(self) -> None:
        """End all of them."""
        for node in reversed(self.nodes):
            node.end(signal.SIGKILL)


class Primary(PostgreSQL):
    """A PostgreSQL that others can follow."""

    def is_ready(self) -> bool:
        """Whether it takes connections."""
        with contextlib.suppress(psycopg2.Error):
            psycopg2.connect(host='127.0.0.1', port=self.port, user='postgres', dbname='postgres').close()
            return True
        return False

    @override
    def stop(self) -> None:
        """As in a crash."""
        self.end(signal.SIGQUIT)


class Standby(_Owned):
    """A server that receives what a primary commits, and can take its place."""

    name = 'standby'

    def __init__(self, directory: Path, primary: Primary) -> None:
        super().__init__(directory, 'postgres')
        self._programs = (primary._programs / 'initdb').resolve().parent
        self._data = directory / 'data'
        until(primary.is_ready, 'the primary takes connections')
        source = ['-h', '127.0.0.1', '-p', str(primary.port), '-U', 'postgres']
        self.run(
            str(self._programs / 'pg_basebackup'), *source, '-D', str(self._data), '-R', '-X', 'stream', '-c', 'fast'
        )
        options = ['-p', str(self.port), '-k', str(directory), '-c', 'listen_addresses=127.0.0.1']
        self.begin(str(self._programs / 'postgres'), '-D', str(self._data), *options, '-c', 'max_connections=300')

    def promote(self) -> None:
        """Become a primary, with what was received until now. The one before must have ended."""
        for pid in self.walreceivers():
            os.kill(pid, signal.SIGKILL)  # with what it was sent and has not written
        self.run(str(self._programs / 'pg_ctl'), '-D', str(self._data), '-w', 'promote')

    def walreceivers(self) -> list[int]:
        """The processes that receive what the primary commits."""
        assert self._process is not None
        found = []
        for entry in Path('/proc').glob('[0-9]*'):
            with contextlib.suppress(OSError):
                is_child = f'PPid:\t{self._process.pid}\n' in (entry / 'status').read_text()
                if is_child and b'walreceiver' in (entry / 'cmdline').read_bytes():
                    found.append(int(entry.name))
        return found

    def hold_back(self) -> None:
        """From now on receive nothing: what the primary commits is lost with it."""
        for pid in self.walreceivers():
            os.kill(pid, signal.SIGSTOP)

    def stop(self) -> None:
        """End it."""
        for pid in self.walreceivers():
            os.kill(pid, signal.SIGCONT)
        self.end(signal.SIGQUIT)


@contextlib.contextmanager
def galera(directory: Path) -> Iterator[Galera]:
    """A Galera cluster, for the length of a block.

    :raises Unavailable: a program is missing.
    :raises CannotStart: they are all there, and it does not start.
    """
    directory.mkdir(parents=True)
    cluster = Galera(directory)
    try:
        cluster.start()
        yield cluster
    finally:
        cluster.stop()


@contextlib.contextmanager
def pair(directory: Path) -> Iterator[tuple[Primary, Standby]]:
    """A primary and its standby, asynchronous, for the length of a block.

    :raises Unavailable: a program is missing.
    :raises CannotStart: they are all there, and a server does not start.
    """
    directory.mkdir(parents=True)
    primary = Primary(directory / 'primary')
    standby = None
    try:
        standby = Standby(directory / 'standby', primary)
        yield primary, standby
    finally:
        if standby is not None:
            standby.stop()
        primary.stop()
