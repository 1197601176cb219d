"""Starts engines, workers and APIs as separate processes, and can crash and freeze them.

Used by ``convergence-simulate --real``, by measurements and by tests.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

from convergence.errors import MessagingUnavailable

Sections = Mapping[str, Mapping[str, object]]

KINDS = ('engine', 'worker')
LIMIT_S = 120.0
"""Seconds to wait for a process to start or end; more than it takes on a busy machine."""
LOOK_S = 0.05

QUICK: Sections = {
    'database': {'max_retries': 1, 'retry_interval': 1},
    'engine': {'sweep_interval_s': 0.5, 'heartbeat_interval_s': 0.5, 'lease_s': 3},
    'worker': {
        'poll_interval_min_s': 0.05,
        'poll_interval_max_s': 0.5,
        'park_after_s': 0.2,
        'cancel_grace_s': 2,
        'drain_timeout_s': 5,
    },
}
"""Settings with which other processes notice the death of a process within seconds."""


def merged(*layers: Sections) -> Sections:
    """Return all sections; an option of a later layer replaces the same option of earlier ones."""
    whole: dict[str, dict[str, object]] = {}
    for layer in layers:
        for section, options in layer.items():
            whole.setdefault(section, {}).update(options)
    return whole


def configuration_text(sections: Sections) -> str:
    """Return the content of a configuration file."""
    lines: list[str] = []
    for section, options in sections.items():
        lines.append(f'[{section}]')
        # A single dollar sign would begin a reference to another option.
        lines += [f'{name} = {value}'.replace('$', '$$') for name, value in options.items()]
    return '\n'.join(lines) + '\n'


class LaunchedProcess:
    """One program, whose output goes to its own file.

    :param module: the Python module to run, or the last part of its name if it is in ``convergence.cmd``.
    """

    def __init__(self, module: str, arguments: Sequence[str], directory: Path, environment: Mapping[str, str]) -> None:
        self.module = module.rpartition('.')[2]
        self.log = directory / f'{self.module}-{time.monotonic_ns()}.log'
        whole = module if '.' in module else f'convergence.cmd.{module}'
        self.popen = self._begin(whole, arguments, directory, environment)

    def _begin(
        self, module: str, arguments: Sequence[str], directory: Path, environment: Mapping[str, str]
    ) -> subprocess.Popen[bytes]:
        with self.log.open('wb') as output:
            return subprocess.Popen(
                [sys.executable, '-m', module, *arguments],
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                cwd=directory,
                env=environment,
            )

    @property
    def pid(self) -> int:
        """The id of the process."""
        return self.popen.pid

    def text(self) -> str:
        """Return the output of the process so far."""
        return self.log.read_text(errors='replace')

    def running(self) -> bool:
        """True until the process ends."""
        return self.popen.poll() is None

    def is_ready(self, times: int = 1) -> bool:
        """Return True if the process, or `times` child processes that it started, have reported that they work."""
        return self.text().count('is at work') >= times

    def ready(self, times: int = 1) -> None:
        """Wait until the process works.

        :raises MessagingUnavailable: the process has ended, or takes too long; the text contains its output.
        """
        ends = time.monotonic() + LIMIT_S
        while not self.is_ready(times):
            if not self.running() and not self.is_ready(times):
                raise MessagingUnavailable(f'{self.module} has ended instead of starting:\n{self.text()}')
            if time.monotonic() > ends:
                raise MessagingUnavailable(
                    f'{self.module} has not reported that it works after {LIMIT_S:g} s:\n{self.text()}'
                )
            time.sleep(LOOK_S)

    def send(self, number: signal.Signals) -> None:
        """Send a signal to the process."""
        self.popen.send_signal(number)

    def end(self, number: signal.Signals = signal.SIGTERM) -> int:
        """Send a signal, wait for the end of the process, and return its exit code."""
        self.send(number)
        return self.wait()

    def wait(self, limit_s: float = LIMIT_S) -> int:
        """Wait for the end of the process, and return its exit code."""
        return self.popen.wait(limit_s)

    def freeze(self, duration_s: float) -> None:
        """Stop the process for a while, then let it continue."""
        self.send(signal.SIGSTOP)
        time.sleep(duration_s)
        self.send(signal.SIGCONT)


class Launcher:
    """Engines and workers with a common configuration.

    :param directory: directory for the configuration and the output of the processes.
    :param sections: the configuration.
    :param environment: variables that are added to the environment of this process.
    :param special: module to run in place of engines and workers, with ``engine`` or ``worker`` as first argument.
    :ivar gone: processes that have ended, on request or not.
    :ivar process: starts one process.
    """

    process: type[LaunchedProcess] = LaunchedProcess

    def __init__(
        self, directory: Path, sections: Sections, environment: Mapping[str, str] | None = None, *, special: str = ''
    ) -> None:
        self.directory = directory
        self.environment = os.environ | (environment or {})
        self.special = special
        self.configuration = directory / 'convergence.conf'
        self.configuration.touch(mode=0o600)  # the file contains passwords
        self.configuration.write_text(configuration_text(sections))
        self.engines: list[LaunchedProcess] = []
        self.workers: list[LaunchedProcess] = []
        self.gone: list[LaunchedProcess] = []

    def launch(self, module: str, *arguments: str, configuration: Path | None = None) -> LaunchedProcess:
        """Start a program, and do not wait for it.

        :param configuration: a file in place of the common one.
        """
        given = ['--config-file', str(configuration or self.configuration), *arguments]
        if not self.special or module not in KINDS:
            return self.process(module, given, self.directory, self.environment)
        process = self.process(self.special, [module, *given], self.directory, self.environment)
        process.module = module
        return process

    def manage(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        """Run ``convergence-manage``."""
        command = [sys.executable, '-m', 'convergence.cmd.manage', '--config-file', str(self.configuration)]
        return subprocess.run(
            [*command, *arguments],
            env=self.environment,
            cwd=self.directory,
            capture_output=True,
            text=True,
            timeout=LIMIT_S,
            check=False,
        )

    def of(self, kind: str) -> list[LaunchedProcess]:
        """Return the engines, or the workers."""
        return self.engines if kind == 'engine' else self.workers

    def running(self) -> list[LaunchedProcess]:
        """Return the processes that have not ended."""
        return [each for each in (*self.workers, *self.engines) if each.running()]

    def fill(self, engines: int = 2, workers: int = 3) -> None:
        """Start engines and workers until that many are running.

        :raises MessagingUnavailable: a process does not start.
        """
        for kind, count in (('engine', engines), ('worker', workers)):
            processes = self.of(kind)
            self.gone += [each for each in processes if not each.running()]
            processes[:] = [each for each in processes if each.running()]
            processes += [self.launch(kind) for _ in range(count - len(processes))]
        for process in (*self.engines, *self.workers):
            process.ready()

    def crash(self, kind: str) -> None:
        """Kill the oldest process of this kind, and start another one."""
        process = self.of(kind).pop(0)
        process.end(signal.SIGKILL)
        self.gone.append(process)
        self.of(kind).append(self.launch(kind))

    def freeze(self, kind: str, duration_s: float) -> None:
        """Stop the oldest process of this kind for a while, then let it continue."""
        self.of(kind)[0].freeze(duration_s)

    def ended(self) -> list[str]:
        """Return the processes that have ended unexpectedly, each with its last line of output."""
        gone = [each for each in (*self.engines, *self.workers) if not each.running()]
        return [f'{each.module}: {(each.text().splitlines() or ["without output"])[-1]}' for each in gone]

    def logs(self) -> str:
        """Return the output of all processes."""
        return '\n'.join(each.text() for each in (*self.engines, *self.workers, *self.gone))

    def stop(self, limit_s: float = LIMIT_S) -> list[tuple[str, int]]:
        """End all processes, gracefully within the limit. Return program and exit code of each.

        Processes that do not end in time are killed.
        """
        running = self.running()
        for process in running:
            process.send(signal.SIGCONT)
            process.send(signal.SIGTERM)
        ended = []
        for process in running:
            try:
                ended.append((process.module, process.wait(limit_s)))
            except subprocess.TimeoutExpired:
                process.end(signal.SIGKILL)
                ended.append((f'{process.module} did not end:\n{process.text()}', -signal.SIGKILL))
        return ended
