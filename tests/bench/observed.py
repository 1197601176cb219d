"""What it costs to look at objects again and again: files of this machine, an observer that has nothing else to do."""

from __future__ import annotations

import logging
import os
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from oslo_context.context import RequestContext

from convergence.cmd.wiring.database import open_database
from convergence.cmd.wiring.engine import EngineProcess
from convergence.cmd.wiring.observer import ObserverProcess
from convergence.cmd.wiring.parts import Parts, open_transport
from convergence.cmd.wiring.worker import WorkerProcess
from convergence.concurrency import sleep
from convergence.config import LocalProviderSettings, ObserverSettings, Settings
from convergence.core.observation import ObservationSource
from convergence.db.connections.counting import count
from convergence.db.repositories.wiring import ports_of
from convergence.db.schema import migration
from convergence.errors import ConvergenceError
from convergence.rpc.client import EngineClient
from tests.bench.counting import Counters
from tests.bench.settings import settings_for

MANY, EVERY_S = 100_000, 300.0
"""The installation for which the share of a core is told: so many objects, each looked at once in so many seconds."""
ROUNDS = 5
MOMENT_S = 0.005
"""Between a question and a look: what is asked in the very millisecond of the look is looked at once more."""
IDLE_TURNS = 100
PER_STACK = 500
LOOK_INTERVAL_S = 0.05


@dataclass(frozen=True, slots=True)
class Observed:
    """What looks at files have cost. The database, an SQLite file, is worked by the same process.

    :param cpu_s: processor time of all looks together.
    :param statements: of all of them.
    :param idle_cpu_s: processor time of one question whether anything is due, where nothing is observed; one a second.
    """

    objects: int
    looks: int
    cpu_s: float
    statements: int
    idle_cpu_s: float

    @property
    def share(self) -> float:
        """The part of a core that `MANY` objects take which are looked at once in `EVERY_S`."""
        return self.cpu_s / self.looks * MANY / EVERY_S


def observe(objects: int) -> Observed:
    """Make files, and look at all of them some times.

    :raises ConvergenceError: a stack of them has failed.
    """
    before = logging.root.manager.disable
    logging.disable(logging.WARNING)  # that templates can write files of this machine is what it is for here
    try:
        with tempfile.TemporaryDirectory(prefix='convergence-bench-') as name:
            return _observe(objects, Path(name))
    finally:
        logging.disable(before)


def _observe(objects: int, directory: Path) -> Observed:
    settings = _settings(directory)
    tally, database = Counters(), open_database(settings)
    migration.sync(database)
    count(database, tally.note)
    parts = Parts.of(settings, database, open_transport(settings, f'bench-{os.getpid()}'))
    try:
        observer = ObserverProcess(parts, owns_parts=False).observer
        idle_s = _idle(observer.turn)
        rows = ports_of(parts.store).observations
        with _at_work(parts) as client:
            stacks = [_made(client, parts, each) for each in _sizes(objects)]
        looks, cpu_s, statements = 0, 0.0, 0
        while observer.turn():  # the first look at each is written by itself, and so is what is otherwise than before
            pass
        for _ in range(ROUNDS):
            rows.request(stacks, ObservationSource.REQUEST)
            sleep(MOMENT_S)
            before, begun = tally.read()['statements'], time.process_time()
            while seen := observer.turn():
                looks += seen
            cpu_s += time.process_time() - begun
            statements += tally.read()['statements'] - before
    finally:
        parts.close()
    return Observed(objects, looks, cpu_s, statements, idle_s)


def _settings(directory: Path) -> Settings:
    (directory / 'local').mkdir()
    settings = settings_for(directory, f'sqlite:///{directory / "convergence.sqlite"}', 'memory://')
    local = LocalProviderSettings(enabled=True, root=directory / 'local', programs={'python': sys.executable})
    return replace(settings, local_provider=local, observer=ObserverSettings(calls_per_minute=0))


def _idle(turn: Any) -> float:
    turn()  # what is done once is not measured
    begun = time.process_time()
    for _ in range(IDLE_TURNS):
        turn()
    return (time.process_time() - begun) / IDLE_TURNS


@contextmanager
def _at_work(parts: Parts) -> Iterator[EngineClient]:
    """An engine and a worker, while objects are made; what they cost is not measured."""
    engine, worker = EngineProcess(parts), WorkerProcess(parts)
    engine.start()
    worker.start()
    try:
        yield EngineClient(parts.transport)
    finally:
        worker.stop()
        engine.stop()


def _made(client: EngineClient, parts: Parts, files: range) -> str:
    """A stack of files, all of which are observed; its id."""
    context, reader = RequestContext(project_id='bench', overwrite=False), ports_of(parts.store).reader
    resources = {
        f'f{number}': {
            'type': 'Convergence::Local::File',
            'properties': {'path': f'f{number}', 'content': 'a line of text\n' * 20},
        }
        for number in files
    }
    template = {'heat_template_version': '2018-08-31', 'resources': resources}
    identity = client.create_stack(context, f'files-{files.start}', template)
    while (stack := reader.stack(identity['stack_id'])) is None or stack.status.value == 'IN_PROGRESS':
        sleep(LOOK_INTERVAL_S)
    if stack.status.value != 'COMPLETE':
        raise ConvergenceError(f'The stack of files has failed: {stack.status_reason}')
    client.observe_stack(context, identity)
    return stack.id


def _sizes(objects: int) -> Iterator[range]:
    """The numbers of the files of each stack."""
    for first in range(0, objects, PER_STACK):
        yield range(first, min(first + PER_STACK, objects))
