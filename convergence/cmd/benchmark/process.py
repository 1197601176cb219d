"""An engine or a worker that counts what it does: a process of its own, told what to do on its standard input.

The first line of input is a JSON object, see `ProcessStart`. Each later line is a command, answered by a line of JSON:
``counts`` by what was counted since the start; ``stop``, or the end of input, ends the process in good order.
"""

from __future__ import annotations

import contextlib
import json
import logging
import signal
import subprocess
import sys
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import IO, Any

from convergence.cmd.benchmark.counting import Counters, counted
from convergence.cmd.benchmark.settings import settings_for
from convergence.errors import OperatorError

STOP_LIMIT_S = 60.0


@dataclass(frozen=True, slots=True)
class ProcessStart:
    """What a process is to be. The URLs may hold passwords, so they are not given on a command line.

    :param role: ``engine`` or ``worker``.
    :param prefix: keeps apart those who share a broker.
    """

    role: str
    directory: str
    database_url: str
    broker_url: str
    prefix: str


class Child:
    """A process, seen from its parent.

    :raises OperatorError: it could not be started; it has said why on standard error.
    """

    def __init__(self, start: ProcessStart) -> None:
        self._role = start.role
        self._process = subprocess.Popen(
            [sys.executable, '-m', __name__], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        self._say(json.dumps(asdict(start)))
        self._answer()

    def counts(self) -> dict[str, int]:
        """What it has counted."""
        self._say('counts')
        answer: dict[str, int] = self._answer()
        return answer

    def stop(self) -> None:
        """End it, by force where it does not do so by itself."""
        try:
            self._process.communicate('stop\n', timeout=STOP_LIMIT_S)
        except (subprocess.TimeoutExpired, OSError):
            self._process.kill()
            self._process.wait()

    def _say(self, line: str) -> None:
        pipe: IO[str] | None = self._process.stdin
        assert pipe is not None
        # Where it has ended reading its answer says so.
        with contextlib.suppress(OSError):
            print(line, file=pipe, flush=True)

    def _answer(self) -> Any:
        pipe: IO[str] | None = self._process.stdout
        assert pipe is not None
        line = pipe.readline()
        if not line:
            raise OperatorError(f'The {self._role} process of the benchmark has ended with {self._process.wait()}')
        return json.loads(line)


def main() -> int:
    """Be the process that standard input asks for."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C reaches the parent too, which ends us in good order
    logging.basicConfig(level=logging.WARNING)
    logging.captureWarnings(True)
    for library in ('py.warnings', 'amqp'):  # queues that vanish with us are no news
        logging.getLogger(library).setLevel(logging.ERROR)
    start = ProcessStart(**json.loads(sys.stdin.readline()))
    settings = settings_for(Path(start.directory), start.database_url, start.broker_url)
    from convergence.cmd.assembly import EngineProcess, Parts, WorkerProcess, open_transport
    from convergence.cmd.database import open_database
    from convergence.db.statements.counting import count

    tally = Counters()
    database = open_database(settings)
    count(database, tally.note)
    parts = Parts.of(settings, database, counted(open_transport(settings, start.prefix), tally))
    process = EngineProcess(parts) if start.role == 'engine' else WorkerProcess(parts)
    process.start()
    print(json.dumps('started'), flush=True)
    for line in sys.stdin:
        if line.strip() == 'stop':
            break
        print(json.dumps(tally.read()), flush=True)
    process.stop()
    process.close()
    return 0


if __name__ == '__main__':
    sys.exit(main())
