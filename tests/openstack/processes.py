"""The processes of the control plane. They outlive the program that starts them, so who they are stands in files."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import socket
import subprocess
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from tests.openstack.layout import Layout

ENDS_S = 30.0
"""For how long a service that was asked to end is waited for before it is killed."""


@dataclass(frozen=True)
class Program:
    """One service process, which may start others.

    :param command: with its arguments.
    :param port: where it listens; None: nowhere.
    """

    name: str
    command: tuple[str, ...]
    environment: Mapping[str, str]
    port: int | None = None


def programs(layout: Layout) -> list[Program]:
    """All processes, APIs first."""
    etc = layout.configuration
    environment = {
        'OS_KEYSTONE_CONFIG_FILES': str(etc / 'keystone.conf'),
        'OS_PLACEMENT_CONFIG_DIR': str(etc),
        'OS_GLANCE_CONFIG_DIR': str(etc),
        'OS_GLANCE_CONFIG_FILES': str(etc / 'glance-api.conf'),
        'OS_NEUTRON_CONFIG_DIR': str(etc),
        'OS_NEUTRON_CONFIG_FILES': str(etc / 'neutron.conf'),
        'OS_NOVA_CONFIG_DIR': str(etc),
        'OS_CINDER_CONFIG_DIR': str(etc),
        'OS_CINDER_CONFIG_FILES': str(etc / 'cinder.conf'),
        'PYTHONWARNINGS': 'ignore',
    }
    apis = {
        'keystone': ('keystone.wsgi.api:application', 'keystone.conf'),
        'glance': ('glance.wsgi.api:application', 'glance-api.conf'),
        'placement': ('placement.wsgi.api:application', ''),
        'neutron': ('neutron.wsgi.api:application', 'neutron.conf'),
        'nova': ('nova.wsgi.osapi_compute:application', ''),
        'cinder': ('cinder.wsgi.api:application', 'cinder.conf'),
    }
    made = []
    for name, (module, file) in apis.items():
        given = ('--pyargv', f'--config-file {etc / file}') if file else ()
        made.append(Program(name, (*_uwsgi(layout, name, module), *given), environment, layout.port(name)))
    behind = {
        'neutron-rpc-server': 'neutron.conf',
        'nova-conductor': 'nova.conf',
        'nova-scheduler': 'nova.conf',
        'nova-compute': 'nova.conf',
        'cinder-scheduler': 'cinder.conf',
        'cinder-volume': 'cinder.conf',
    }
    for name, file in behind.items():
        made.append(Program(name, (layout.program(name), '--config-file', str(etc / file)), environment))
    return made


def _uwsgi(layout: Layout, name: str, module: str) -> tuple[str, ...]:
    return (
        layout.program('uwsgi'),
        *('--http11-socket', f'127.0.0.1:{layout.port(name)}'),
        *('--module', module),
        *('--virtualenv', str(layout.programs)),
        *('--processes', '1', '--threads', '8'),
        *('--buffer-size', '65535', '--listen', '100'),
        *('--master', '--enable-threads', '--lazy-apps', '--die-on-term', '--need-app', '--disable-logging'),
    )


class DoesNotStart(Exception):
    """A service has ended instead of starting, or does not answer. The text holds the end of what it said."""


class Processes:
    """Those that run, by name.

    :param layout: of the control plane.
    """

    def __init__(self, layout: Layout) -> None:
        self._layout = layout
        self._programs = {each.name: each for each in programs(layout)}
        self._file = layout.directory / 'processes.json'

    @property
    def names(self) -> list[str]:
        """All there should be."""
        return list(self._programs)

    def start(self, *names: str) -> None:
        """Start services; they are not waited for. What has their port is waited for: it may be about to end."""
        known = self._read()
        for name in names or self._programs:
            program = self._programs[name]
            if program.port is not None:
                until(lambda port=program.port: _is_free(port), f'port {program.port} is free', ENDS_S)
            with self._log(name).open('wb') as log:
                process = subprocess.Popen(
                    program.command,
                    env=os.environ | program.environment,
                    cwd=self._layout.directory,
                    stdin=subprocess.DEVNULL,
                    stdout=log,
                    stderr=log,
                    start_new_session=True,
                )
            known[name] = (process.pid, _began(process.pid))
            self._write(known)

    def listens(self, name: str) -> bool:
        """Whether the API of a service can be reached.

        :raises DoesNotStart: its process has ended.
        """
        self.require(name)
        port = self._programs[name].port
        return port is None or not _is_free(port)

    def require(self, *names: str) -> None:
        """See that services still run.

        :raises DoesNotStart: one does not.
        """
        running = self.running()
        for name in names or self._programs:
            if name not in running:
                raise DoesNotStart(f'{name} has ended:\n{self.last_words(name)}')

    def last_words(self, name: str) -> str:
        """The end of what a service has said."""
        path = self._log(name)
        return '\n'.join(path.read_text(errors='replace').splitlines()[-20:]) if path.exists() else ''

    def running(self) -> dict[str, int]:
        """The process ids of services that run; each leads a group of its own."""
        return {name: pid for name, (pid, began) in self._read().items() if began and _began(pid) == began}

    def stop(self, *names: str) -> None:
        """End services, in good order where that does not take too long."""
        pids = [pid for name, pid in self.running().items() if not names or name in names]
        for pid in pids:
            os.killpg(pid, signal.SIGTERM)
        ends = time.monotonic() + ENDS_S
        while pids := [pid for pid in pids if _group_exists(pid)]:
            if time.monotonic() > ends:
                for pid in pids:
                    os.killpg(pid, signal.SIGKILL)
                break
            time.sleep(0.1)
        self._write({name: each for name, each in self._read().items() if names and name not in names})

    def _log(self, name: str) -> Path:
        return self._layout.logs / f'{name}.log'

    def _read(self) -> dict[str, tuple[int, str]]:
        if not self._file.exists():
            return {}
        return {name: (pid, began) for name, (pid, began) in json.loads(self._file.read_text()).items()}

    def _write(self, known: Mapping[str, tuple[int, str]]) -> None:
        written = self._file.with_suffix('.new')
        written.write_text(json.dumps(known))
        written.replace(self._file)


def until(look: Callable[[], object], what: str, limit_s: float) -> None:
    """Wait until something is true.

    :raises DoesNotStart: it does not come true.
    """
    ends = time.monotonic() + limit_s
    while not look():
        if time.monotonic() > ends:
            raise DoesNotStart(f'{what}: not within {limit_s:g} s')
        time.sleep(0.1)


def _began(pid: int) -> str:
    """When a process began, which tells it from another one with its id; empty: it has ended."""
    try:
        told = Path(f'/proc/{pid}/stat').read_text().rpartition(')')[2].split()
    except OSError:
        return ''
    return '' if told[0] == 'Z' else told[19]


def _group_exists(pid: int) -> bool:
    with contextlib.suppress(ChildProcessError):
        os.waitpid(pid, os.WNOHANG)  # ours, if this program has started it: it would stay as a zombie
    try:
        os.killpg(pid, 0)
    except ProcessLookupError:
        return False
    return True


def _is_free(port: int) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex(('127.0.0.1', port)) != 0
