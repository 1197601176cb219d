"""Servers of the run's own, which may be stopped, restarted and cut off without disturbing anybody else."""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import socket
import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Protocol

from tests.services import _free_port

START_S = 90.0


class Unavailable(Exception):
    """A server cannot be had here: a program is not installed. The text says which."""


class CannotStart(Unavailable):
    """All programs are installed, and the server does not start, or not come back. The text says why."""


class Server(Protocol):
    """A server that can be restarted.

    :ivar port: where it listens on this machine.
    """

    name: str
    port: int

    def restart(self) -> None:
        """Have it end without any care for its clients, and start it again."""

    def stop(self) -> None:
        """End it."""


class _Owned:
    """A server's process, which runs as an account of its own where the tests run as root.

    :param directory: is given to that account.
    """

    name = ''

    def __init__(self, directory: Path, account: str) -> None:
        self.directory = directory
        directory.mkdir(parents=True)
        self.port = _free_port()
        self._account = account if os.geteuid() == 0 else None
        if self._account is not None:
            shutil.chown(directory, self._account, self._account)
        self._process: subprocess.Popen[bytes] | None = None

    def run(self, *command: str, **environment: str) -> None:
        """Run a program to its end.

        :raises CannotStart: it failed.
        """
        done = subprocess.run(
            command,
            cwd=self.directory,
            user=self._account,
            group=self._account,
            capture_output=True,
            text=True,
            check=False,
            timeout=START_S,
            env=os.environ | environment,
        )
        if done.returncode:
            last = (done.stderr.strip() or done.stdout.strip() or 'no reason given').splitlines()[-1]
            raise CannotStart(f'{command[0]}: {last}')

    def begin(self, *command: str, **environment: str) -> None:
        """Start the server and wait until it listens.

        :raises CannotStart: it does not.
        """
        with (self.directory / 'log').open('ab') as log:
            self._process = subprocess.Popen(
                command,
                cwd=self.directory,
                user=self._account,
                group=self._account,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                env=os.environ | environment,
                start_new_session=True,
            )
        ends = time.monotonic() + START_S
        while not _listens(self.port):
            if self._process.poll() is not None or time.monotonic() > ends:
                said = (self.directory / 'log').read_text(errors='replace').strip().splitlines()[-1:]
                raise CannotStart(f'{command[0]} does not start: {said}')
            time.sleep(0.1)

    def end(self, number: signal.Signals) -> None:
        """Send the server a signal and wait until it is gone."""
        if self._process is not None and self._process.poll() is None:
            os.killpg(self._process.pid, number)
            try:
                self._process.wait(30)
            except subprocess.TimeoutExpired:
                os.killpg(self._process.pid, signal.SIGKILL)
                self._process.wait()


class PostgreSQL(_Owned):
    """A PostgreSQL of the run's own."""

    name = 'postgresql'

    def __init__(self, directory: Path) -> None:
        super().__init__(directory, 'postgres')
        found = sorted(Path('/usr/lib/postgresql').glob('*/bin')) + [
            Path(each).parent for each in [shutil.which('initdb')] if each
        ]
        if not found:
            raise Unavailable('PostgreSQL (initdb) is not installed')
        self._programs = found[-1]
        self._data = directory / 'data'
        self.run(str(self._programs / 'initdb'), '-D', str(self._data), '-U', 'postgres', '-A', 'trust', '--no-sync')
        self._start()
        self.url = f'postgresql://postgres@127.0.0.1:{self.port}/postgres'

    def _start(self) -> None:
        self.begin(
            str(self._programs / 'postgres'),
            '-D',
            str(self._data),
            '-p',
            str(self.port),
            '-k',
            str(self.directory),
            '-c',
            'listen_addresses=127.0.0.1',
            '-c',
            'max_connections=300',
            '-c',
            'fsync=on',
        )

    def restart(self) -> None:
        """As with ``pg_ctl restart -m immediate``: connections break, the log is replayed."""
        self.end(signal.SIGQUIT)
        self._start()

    def stop(self) -> None:
        """End it."""
        self.end(signal.SIGQUIT)


class MariaDB(_Owned):
    """A MariaDB of the run's own."""

    name = 'mariadb'

    def __init__(self, directory: Path) -> None:
        super().__init__(directory, 'mysql')
        program = shutil.which('mariadbd', path=f'{os.environ["PATH"]}:/usr/sbin')
        if program is None or shutil.which('mariadb-install-db') is None:
            raise Unavailable('MariaDB (mariadbd, mariadb-install-db) is not installed')
        self._program = program
        self._data = directory / 'data'
        self.run(
            'mariadb-install-db',
            '--no-defaults',
            f'--datadir={self._data}',
            '--auth-root-authentication-method=normal',
            '--skip-test-db',
        )
        self._start()
        self.url = f'mysql://root@127.0.0.1:{self.port}/'

    def _start(self) -> None:
        self.begin(
            self._program,
            '--no-defaults',
            f'--datadir={self._data}',
            f'--port={self.port}',
            f'--socket={self.directory / "socket"}',
            f'--pid-file={self.directory / "pid"}',
            '--bind-address=127.0.0.1',
            '--max-connections=300',
            '--skip-name-resolve',
        )

    def restart(self) -> None:
        """It is killed, as in a crash of its machine, and recovers from its log."""
        self.end(signal.SIGKILL)
        self._start()

    def stop(self) -> None:
        """End it."""
        self.end(signal.SIGKILL)


class RabbitMQ(_Owned):
    """A RabbitMQ of the run's own."""

    name = 'rabbit'

    def __init__(self, directory: Path) -> None:
        super().__init__(directory, 'rabbitmq')
        self._server = shutil.which('rabbitmq-server', path=f'{os.environ["PATH"]}:/usr/sbin')
        self._control = shutil.which('rabbitmqctl', path=f'{os.environ["PATH"]}:/usr/sbin')
        if self._server is None or self._control is None:
            raise Unavailable('RabbitMQ (rabbitmq-server, rabbitmqctl) is not installed')
        # The scripts in /usr/sbin change to an account of their own, and forget this environment on the way.
        real = Path('/usr/lib/rabbitmq/bin')
        if (real / 'rabbitmq-server').exists():
            self._server, self._control = str(real / 'rabbitmq-server'), str(real / 'rabbitmqctl')
        node = f'convergence_chaos_{os.getpid()}_{self.port}@localhost'
        self._environment = {
            'HOME': str(directory),
            'RABBITMQ_NODENAME': node,
            'RABBITMQ_NODE_PORT': str(self.port),
            'RABBITMQ_NODE_IP_ADDRESS': '127.0.0.1',
            'RABBITMQ_DIST_PORT': str(self.port + 1000),
            'RABBITMQ_MNESIA_BASE': str(directory / 'mnesia'),
            'RABBITMQ_LOG_BASE': str(directory / 'logs'),
            'RABBITMQ_ENABLED_PLUGINS_FILE': str(directory / 'plugins'),
            'RABBITMQ_CONFIG_FILE': '/nonexistent',
            'RABBITMQ_CONF_ENV_FILE': '/nonexistent',
            'RABBITMQ_PID_FILE': str(directory / 'pid'),
        }
        self.begin(self._server, **self._environment)
        self.run(self._control, 'await_startup', **self._environment)
        self.url = f'rabbit://guest:guest@127.0.0.1:{self.port}/'

    def restart(self) -> None:
        """``stop_app`` and ``start_app``: connections break, and queues and messages that are not durable are gone."""
        self.run(str(self._control), 'stop_app', **self._environment)
        self.run(str(self._control), 'start_app', **self._environment)

    def stop(self) -> None:
        """End it."""
        with contextlib.suppress(Unavailable, subprocess.TimeoutExpired):
            self.run(str(self._control), 'stop', **self._environment)
        self.end(signal.SIGKILL)


KINDS: dict[str, Callable[[Path], Server]] = {'postgresql': PostgreSQL, 'mariadb': MariaDB, 'rabbit': RabbitMQ}


@contextlib.contextmanager
def private(kind: str, directory: Path) -> Iterator[Server]:
    """A server of one kind, for the length of a block.

    :raises Unavailable: it cannot be started here.
    """
    server = KINDS[kind](directory)
    try:
        yield server
    finally:
        server.stop()


def _listens(port: int) -> bool:
    with socket.socket() as probe:
        probe.settimeout(1)
        return probe.connect_ex(('127.0.0.1', port)) == 0
