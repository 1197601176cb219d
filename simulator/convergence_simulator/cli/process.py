"""An engine or a worker with only the simulated resource types: ``convergence-simulate --real`` starts these.

No other use makes sense, because no other process knows the simulated types.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from convergence.cmd import engine, worker
from convergence.config import Settings

if TYPE_CHECKING:
    from convergence.cmd.wiring.parts import Parts

REALITY = 'CONVERGENCE_SIMULATED_REALITY'
"""Environment variable with the path of the file that contains the simulated cloud."""


def open_parts(settings: Settings) -> Parts:
    """Connect to database and broker, with the simulated types.

    :raises OperatorError: database or broker cannot be used.
    """
    from convergence.cmd.wiring.database import open_database
    from convergence.cmd.wiring.parts import Parts, open_transport
    from convergence_simulator.cloud.kinds import registry
    from convergence_simulator.real.shared import SharedReality

    types = registry(SharedReality(Path(os.environ[REALITY])))
    return Parts.of(settings, open_database(settings), open_transport(settings), types)


def main(argv: Sequence[str] | None = None) -> int:
    """Run an engine or a worker, as the first argument says, and return its exit code. The other arguments are those of
    every program."""
    kind, *arguments = sys.argv[1:] if argv is None else argv
    program = engine.main if kind == 'engine' else worker.main
    return program(arguments, open_parts)


if __name__ == '__main__':
    sys.exit(main())
