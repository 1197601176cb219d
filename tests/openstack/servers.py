"""What of MariaDB and RabbitMQ belongs to the control plane: databases and a virtual host of its own."""

from __future__ import annotations

import os
import shutil
import subprocess
from urllib.parse import parse_qs, unquote, urlsplit

from tests.openstack.layout import DATABASES, Layout

_PATH = f'{os.environ.get("PATH", "")}:/usr/sbin:/usr/lib/rabbitmq/bin'


class Refused(Exception):
    """A server did not do what it was asked for. The text says what it said."""


class Databases:
    """The databases of the services.

    :raises Refused: from each method: a program is not installed, or fails.
    """

    def __init__(self, layout: Layout) -> None:
        self._layout = layout
        self._names = [layout.database(name) for name in DATABASES]

    def make(self) -> None:
        """Have them all, empty."""
        self.drop()
        self._ask(''.join(f'CREATE DATABASE {name} CHARACTER SET utf8mb4;' for name in self._names))

    def drop(self) -> None:
        """Have none of them."""
        self._ask(''.join(f'DROP DATABASE IF EXISTS {name};' for name in self._names))

    def save(self) -> None:
        """Write what is in them into a file, from which `restore` makes them anew."""
        written = self._layout.dump.with_suffix('.new')
        with written.open('wb') as file:
            _run(
                [*self._program('mariadb-dump', 'mysqldump'), '--single-transaction', '--databases', *self._names],
                stdout=file,
            )
        written.replace(self._layout.dump)

    def restore(self) -> None:
        """Have what was in them when they were saved, and nothing else."""
        self.drop()
        # What is written twice is no safer here, and takes four times as long.
        quick = 'SET SESSION unique_checks=0; SET SESSION foreign_key_checks=0;'
        with self._layout.dump.open('rb') as file:
            _run([*self._program('mariadb', 'mysql'), f'--init-command={quick}'], stdin=file)

    def _ask(self, statements: str) -> None:
        _run([*self._program('mariadb', 'mysql'), '-e', statements])

    def _program(self, *names: str) -> list[str]:
        found = next(filter(None, (shutil.which(name) for name in names)), None)
        if found is None:
            raise Refused(f'{" or ".join(names)} is not installed: the client programs of MariaDB are needed')
        parts = urlsplit(self._layout.database_server)
        socket = parse_qs(parts.query).get('unix_socket')
        where = [f'--socket={socket[0]}'] if socket else [f'--host={parts.hostname}', f'--port={parts.port or 3306}']
        password = [f'--password={unquote(parts.password)}'] if parts.password else []
        return [found, *where, f'--user={unquote(parts.username or "root")}', *password]


class VirtualHost:
    """The virtual host of the services at the broker.

    :raises Refused: from each method: ``rabbitmqctl`` is not installed, or fails.
    """

    def __init__(self, layout: Layout) -> None:
        self._name = layout.virtual_host
        self._user = unquote(urlsplit(layout.broker).username or 'guest')

    def make(self) -> None:
        """Have it, with nothing in it."""
        self.drop()
        self._control('add_vhost', self._name)
        self._control('set_permissions', '-p', self._name, self._user, '.*', '.*', '.*')

    def drop(self) -> None:
        """Do not have it."""
        if self._name in self._control('list_vhosts', 'name').split():
            self._control('delete_vhost', self._name)

    @staticmethod
    def _control(*arguments: str) -> str:
        program = shutil.which('rabbitmqctl', path=_PATH)
        if program is None:
            raise Refused('rabbitmqctl is not installed')
        return _run([program, '--quiet', *arguments])


def _run(command: list[str], **files: object) -> str:
    options: dict[str, object] = {'stdout': subprocess.PIPE, **files}
    done = subprocess.run(command, stderr=subprocess.PIPE, check=False, **options)  # type: ignore[call-overload]
    if done.returncode:
        raise Refused(f'{command[0]}: {done.stderr.decode(errors="replace").strip()[-500:]}')
    return (done.stdout or b'').decode(errors='replace')
