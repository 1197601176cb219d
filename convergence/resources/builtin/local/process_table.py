"""The processes that the local provider started: their records, whether they run, and how they are stopped."""

from __future__ import annotations

import contextlib
import errno
import hashlib
import json
import os
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from convergence.resources.builtin.local import launch
from convergence.resources.builtin.local.sandbox import STATE
from convergence.resources.contract import FinalFailure, TransientFailure

_LAUNCH_LIMIT_S = 120


@dataclass(frozen=True, slots=True)
class Running:
    """A process by number and start, which together never name another one.

    :param port: that it was given.
    :param project_id: whose it is.
    """

    pid: int
    start: str
    port: int
    project_id: str

    @property
    def physical_id(self) -> str:
        """``<pid>:<start>``."""
        return f'{self.pid}:{self.start}'


class ProcessTable:
    """Records by token, below a root directory. Callers ensure that only one of them uses a token at a time."""

    def __init__(self, root: Path) -> None:
        self._directory = root / STATE / 'processes'

    def find(self, token: str) -> Running | None:
        """The process that was started under `token`, if it still runs."""
        recorded = self._read(self._path(token))
        return recorded if recorded is not None and is_running(recorded.physical_id) else None

    def known(self, project_id: str, physical_id: str) -> Running | None:
        """Return the process with that id, running or not, if the provider started it for that project.

        No other process of the machine is ever inspected or ended.
        """
        return next(
            (each for _, each in self._records() if (each.project_id, each.physical_id) == (project_id, physical_id)),
            None,
        )

    def ports(self, project_id: str) -> frozenset[int]:
        """Ports of the processes of a project that run."""
        return frozenset(
            each.port for _, each in self._records() if each.project_id == project_id and is_running(each.physical_id)
        )

    def start(self, token: str, task: launch.Launch) -> Running:
        """Start a program under `token`. The process recorded for the token must have ended.

        :param task: its `record` is filled in here.
        :raises FinalFailure: the program cannot be started.
        """
        self._directory.mkdir(parents=True, exist_ok=True, mode=0o700)
        record = self._path(token)
        record.unlink(missing_ok=True)
        task['record'] = str(record)
        try:
            done = subprocess.run(
                [sys.executable, '-I', '-S', launch.__file__],
                input=json.dumps(task),
                stdout=subprocess.PIPE,
                pass_fds=(task['directory_fd'], task['log_fd']),
                timeout=_LAUNCH_LIMIT_S,
                text=True,
                check=False,
            )
        except subprocess.TimeoutExpired as error:
            raise TransientFailure(f'the program was not started within {_LAUNCH_LIMIT_S} s') from error
        started = self._read(record)
        if done.returncode != 0 or started is None:
            record.unlink(missing_ok=True)
            raise FinalFailure(f'{Path(task["executable"]).name} cannot be started: {done.stdout}')
        return started

    def running(self) -> Iterator[tuple[str, Running]]:
        """The processes that were started here and run, each with the digest of its token."""
        for path, recorded in self._records():
            if is_running(recorded.physical_id):
                yield path.stem, recorded

    def started(self) -> frozenset[str]:
        """The ids of the processes that were started here, whether they still run or not."""
        return frozenset(recorded.physical_id for _, recorded in self._records())

    def forget(self, physical_id: str) -> None:
        """Remove the record of a process that has ended."""
        for path, recorded in self._records():
            if recorded.physical_id == physical_id:
                path.unlink(missing_ok=True)

    def free_port(self) -> int:
        """Return a free port of this machine that no process of the provider, started but still without its port, is
        to open.
        """
        taken = {recorded.port for _, recorded in self._records()}
        while True:
            with socket.socket() as probe:
                probe.bind(('127.0.0.1', 0))
                port: int = probe.getsockname()[1]
            if port not in taken:
                return port

    def _records(self) -> Iterator[tuple[Path, Running]]:
        for path in self._directory.glob('*.json'):
            recorded = self._read(path)
            if recorded is not None:
                yield path, recorded

    def _path(self, token: str) -> Path:
        return self._directory / f'{hashlib.sha256(token.encode()).hexdigest()}.json'

    @staticmethod
    def _read(path: Path) -> Running | None:
        try:
            return Running(**json.loads(path.read_text(encoding='utf-8')))
        except FileNotFoundError:
            return None


def is_running(physical_id: str) -> bool:
    """Return True if this very process runs; another one that got its number does not count."""
    pid, start = _parts(physical_id)
    return launch.start_of(pid) == start


def is_listening(port: int) -> bool:
    """Return True if a process already listens at a port of this machine."""
    for family, host in ((socket.AF_INET, '127.0.0.1'), (socket.AF_INET6, '::1')):
        try:
            with socket.socket(family) as probe:
                probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
                probe.bind((host, port))
        except OSError as error:
            if error.errno == errno.EADDRINUSE:
                return True
    return False


def stop(physical_id: str, number: signal.Signals) -> None:
    """Send a signal to the process and to its descendants that stayed in its group, if it runs."""
    pid, start = _parts(physical_id)
    if launch.start_of(pid) != start:
        return
    with contextlib.suppress(ProcessLookupError):
        os.killpg(pid, number)


def _parts(physical_id: str) -> tuple[int, str]:
    pid, _, start = physical_id.partition(':')
    if not pid.isdigit() or int(pid) < 2 or not start:
        raise FinalFailure(f'{physical_id} is no id of a process')
    return int(pid), start
