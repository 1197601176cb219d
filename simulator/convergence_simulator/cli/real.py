"""``convergence-simulate --real``: start real engines and workers, run scenarios on them, end them."""

from __future__ import annotations

import contextlib
import tempfile
import uuid
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path

from oslo_context.context import RequestContext

from convergence import config
from convergence.cmd.wiring.database import open_database
from convergence.cmd.wiring.parts import open_transport
from convergence.db.schema import migration
from convergence.db.statements.store import Store
from convergence.rpc.client import EngineClient
from convergence_simulator.cli.arguments import SimulateOptions
from convergence_simulator.cli.process import REALITY
from convergence_simulator.real.installation import RealInstallation, RealRun
from convergence_simulator.real.launcher import QUICK, Launcher, merged
from convergence_simulator.real.shared import SharedReality
from convergence_simulator.runs.batch import load
from convergence_simulator.runs.report import command

BROKER = 'rabbit://guest:guest@127.0.0.1:5672/'
STOP_S = 30.0


def run_all(options: SimulateOptions, paths: Sequence[Path], say: Callable[..., None]) -> bool:
    """Run scenarios on real processes, and return True if any of them failed.

    :raises OperatorError: database or broker cannot be used.
    """
    failed = False
    with _installation(options) as installation:
        for path in paths:
            installation.reality.clear()
            # Each scenario has a project of its own, so that stack names do not collide.
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
    """An installation that runs as long as the context."""
    with tempfile.TemporaryDirectory(prefix='simulated-') as name:
        directory = Path(name)
        sections = {
            'DEFAULT': {'control_exchange': f'simulated-{uuid.uuid4()}', 'host': 'simulated'},
            'database': {'connection': options.database_url or f'sqlite:///{directory / "convergence.sqlite"}'},
            'transport': {'url': options.transport_url or BROKER},
        }
        cloud = directory / 'reality.sqlite'
        processes = Launcher(
            directory, merged(QUICK, sections), {REALITY: str(cloud)}, special='convergence_simulator.cli.process'
        )
        arguments = ['--config-file', str(processes.configuration)]
        settings = config.load(arguments, process='convergence-simulate')
        database = open_database(settings)
        if migration.version(database) != migration.newest():
            migration.sync(database)
        transport = open_transport(settings)
        try:
            processes.fill(options.plan.engines, options.plan.workers)
            context = RequestContext(user_id='simulated', overwrite=False)
            client = EngineClient(transport)
            yield RealInstallation(client, context, Store(database), SharedReality(cloud), processes)
        finally:
            processes.stop(STOP_S)
            transport.close()
            database.dispose()
