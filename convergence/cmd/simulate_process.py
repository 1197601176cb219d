"""An engine or a worker whose only resource types are the simulated ones: ``convergence-simulate --real`` starts these.

Not a program for anybody else: no other process ever knows the simulated types.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from convergence.cmd.program import Program, ProgramService, run
from convergence.config import Settings

if TYPE_CHECKING:
    from convergence.cmd.assembly import Parts

REALITY = 'CONVERGENCE_SIMULATED_REALITY'
"""Environment variable with the path of the file in which the simulated cloud is kept."""


def build_engine(settings: Settings) -> ProgramService:
    """An engine, connected.

    :raises OperatorError: database or broker cannot be used.
    """
    from convergence.cmd.assembly import EngineProcess

    return EngineProcess(_parts(settings), stop_s=5.0)


def build_worker(settings: Settings) -> ProgramService:
    """A worker, connected.

    :raises OperatorError: database or broker cannot be used.
    """
    from convergence.cmd.assembly import WorkerProcess

    return WorkerProcess(_parts(settings))


def _parts(settings: Settings) -> Parts:
    from convergence.cmd.assembly import Parts, open_transport
    from convergence.cmd.database import open_database
    from convergence.simulator.shared import SharedReality
    from convergence.simulator.things import registry

    types = registry(SharedReality(Path(os.environ[REALITY])))
    return Parts.of(settings, open_database(settings), open_transport(settings), types)


BUILDS = {'engine': build_engine, 'worker': build_worker}


def main(argv: Sequence[str] | None = None) -> int:
    """Run it; the exit code. The first argument says what it is, the others are those of every program."""
    kind, *arguments = sys.argv[1:] if argv is None else argv
    return run(Program(f'convergence-simulated-{kind}', BUILDS[kind], stop_s=lambda settings: 5.0), arguments)


if __name__ == '__main__':
    sys.exit(main())
