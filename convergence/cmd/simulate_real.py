"""``convergence-simulate --real``: start real engines and workers, run scenarios on them, end them."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import tempfile
import time
import uuid
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from oslo_context.context import RequestContext

from convergence import config, errors
from convergence.cmd.assembly import open_transport
from convergence.cmd.database import open_database
from convergence.cmd.simulate_arguments import SimulateOptions
from convergence.cmd.simulate_process import REALITY
from convergence.db.schema import migration
from convergence.db.statements.store import Store
from convergence.rpc.client import EngineClient
from convergence.simulator.batch import load
from convergence.simulator.real import RealInstallation, RealRun
from convergence.simulator.report import command
from convergence.simulator.shared import SharedReality

BROKER = 'rabbit://guest:guest@127.0.0.1:5672/'
START_S = 120.0
STOP_S = 30.0

CONFIGURATION = """
[DEFAULT]
control_exchange = {exchange}
host = simulated
[database]
connection = {database}
max_retries = 1
retry_interval = 1
[transport]
url = {transport}
[engine]
sweep_interval_s = 0.5
heartbeat_interval_s = 0.5
lease_s = 3
[worker]
poll_interval_min_s = 0.05
poll_interval_max_s = 0.5
park_after_s = 0.2
cancel_grace_s = 2
drain_timeout_s = 5
"""
"""Times are short, for what is waited for here is that somebody dies."""


class RealProcesses:
    """The engines and workers of one installation.

    :param arguments: what each of them is told on its command line.
    :param log: where they write what they have to say.
    """

    def __init__(self, arguments: Sequence[str], environment: Mapping[str, str], log: Path) -> None:
        self._arguments = arguments
        self._environment = environment
        self._log = log
        self._running: dict[str, list[subprocess.Popen[bytes]]] = {'engine': [], 'worker': []}

    def start(self, kind: str) -> None:
        """One more process."""
        with self._log.open('ab') as output:
            process = subprocess.Popen(
                [sys.executable, '-m', 'convergence.cmd.simulate_process', kind, *self._arguments],
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
                env={**os.environ, **self._environment},
            )
        self._running[kind].append(process)

    def crash(self, kind: str) -> None:
        """Kill one process, the oldest, and start another one."""
        process = self._running[kind].pop(0)
        process.kill()
        process.wait()
        self.start(kind)

    def freeze(self, kind: str, duration_s: float) -> None:
        """Let one process, the oldest, stand still for a while, and then go on as if nothing had been."""
        process = self._running[kind][0]
        process.send_signal(signal.SIGSTOP)
        time.sleep(duration_s)
        process.send_signal(signal.SIGCONT)

    def stop(self) -> None:
        """End all of them."""
        every = [process for processes in self._running.values() for process in processes]
        for process in every:
            process.terminate()
        for process in every:
            try:
                process.wait(STOP_S)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()

    def ended(self) -> list[str]:
        """What has ended although nobody asked it to, with the last line it wrote."""
        gone = [kind for kind, processes in self._running.items() for each in processes if each.poll() is not None]
        lines = self._log.read_text(errors='replace').splitlines() if gone else []
        return [f'{kind}: {lines[-1] if lines else "without a word"}' for kind in gone]


def run_all(options: SimulateOptions, paths: Sequence[Path], say: Callable[..., None]) -> bool:
    """Run scenarios on real processes; whether anything failed.

    :raises OperatorError: database or broker cannot be used.
    """
    failed = False
    with _installation(options) as installation:
        for path in paths:
            installation.reality.clear()
            # A project of its own: every scenario may call its stacks as it likes.
            context = RequestContext(project_id=str(uuid.uuid4()), user_id='simulated', overwrite=False)
            run = RealRun(load(path), replace(installation, context=context))
            verdict = run.execute()
            left_out = f'; left out: {", ".join(sorted(set(run.left_out)))}' if run.left_out else ''
            if verdict.error:
                failed = True
                say(f'FAILED  {verdict.scenario}, {verdict.rule}, on real processes', f'  {verdict.error}')
                say(f'  again: {command(path, ["--real"], [])}')
            else:
                say(f'ok      {verdict.scenario}, on real processes, {verdict.seconds:.1f} s{left_out}')
    return failed


@contextlib.contextmanager
def _installation(options: SimulateOptions) -> Iterator[RealInstallation]:
    """An installation for as long as the context lasts."""
    with tempfile.TemporaryDirectory(prefix='simulated-') as name:
        directory = Path(name)
        settings_file = directory / 'convergence.conf'
        written = CONFIGURATION.format(
            exchange=f'simulated-{uuid.uuid4()}',
            database=_verbatim(options.database_url or f'sqlite:///{directory / "convergence.sqlite"}'),
            transport=_verbatim(options.transport_url or BROKER),
        )
        settings_file.touch(mode=0o600)  # there are passwords in it
        settings_file.write_text(written)
        arguments = ['--config-file', str(settings_file)]
        settings = config.load(arguments, process='convergence-simulate')
        database = open_database(settings)
        if migration.version(database) != migration.newest():
            migration.sync(database)
        transport = open_transport(settings)
        reality = SharedReality(directory / 'reality.sqlite')
        processes = RealProcesses(arguments, {REALITY: str(directory / 'reality.sqlite')}, directory / 'log')
        try:
            for kind, count in (('engine', options.plan.engines), ('worker', options.plan.workers)):
                for _ in range(count):
                    processes.start(kind)
            context = RequestContext(user_id='simulated', overwrite=False)
            client = EngineClient(transport)
            _wait_for(client, context, processes, options.plan.engines + options.plan.workers)
            yield RealInstallation(client, context, Store(database), reality, processes)
        finally:
            processes.stop()
            transport.close()
            database.dispose()


def _verbatim(url: str) -> str:
    """A value for a configuration file, where a dollar sign would begin a reference."""
    return url.replace('$', '$$')


def _wait_for(client: EngineClient, context: RequestContext, processes: RealProcesses, count: int) -> None:
    """Until all processes are at work.

    :raises MessagingUnavailable: one of them has ended, or they are not at work after a long time.
    """
    ends = time.monotonic() + START_S
    while True:
        if gone := processes.ended():
            raise errors.MessagingUnavailable(f'A simulated process has ended: {"; ".join(gone)}')
        try:
            if len(client.list_services(context)) >= count:
                return
        except errors.MessagingUnavailable:
            if time.monotonic() > ends:
                raise
        if time.monotonic() > ends:
            raise errors.MessagingUnavailable(f'After {START_S:g} s not all of {count} processes are at work')
        time.sleep(0.1)
