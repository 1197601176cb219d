"""A process that counts what it does: the first argument says of which kind, the others are those of the program."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from convergence.cmd import api, engine, observer, worker
from convergence.config import Settings

if TYPE_CHECKING:
    from convergence.cmd.wiring.parts import Parts

COUNTS = 'CONVERGENCE_BENCH_COUNTS'
"""Environment variable with the directory in which each process keeps its counts."""


def open_parts(settings: Settings) -> Parts:
    """As always, with statements, commits and messages counted."""
    from convergence.cmd.wiring.database import open_database
    from convergence.cmd.wiring.parts import Parts, open_transport
    from convergence.db.connections.counting import count
    from tests.bench.counting import Counters, counted

    tally = Counters(Path(os.environ[COUNTS]) / f'{os.getpid()}.counts')
    database = open_database(settings)
    count(database, tally.note)
    return Parts.of(settings, database, counted(open_transport(settings), tally))


if __name__ == '__main__':
    kind, *arguments = sys.argv[1:]
    if kind == 'api':  # it asks no database
        sys.exit(api.main(arguments))
    program = {'engine': engine.main, 'worker': worker.main, 'observer': observer.main}[kind]
    sys.exit(program(arguments, open_parts))
