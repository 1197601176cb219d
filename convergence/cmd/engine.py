"""``convergence-engine``: accepts and plans operations on stacks. See `convergence.cmd.program` for its exit codes."""

from __future__ import annotations

import sys
from collections.abc import Sequence

from convergence.cmd.program import Program, ProgramService, require_broker, run
from convergence.config import Settings

NAME = 'convergence-engine'
STOP_S = 10.0
"""Seconds that requests in hand are given when the engine is told to stop."""


def build(settings: Settings) -> ProgramService:
    """An engine, connected.

    :raises OperatorError: database or broker cannot be used.
    """
    require_broker(settings, NAME)
    from convergence.cmd.assembly import EngineProcess, Parts

    return EngineProcess(Parts.open(settings), stop_s=STOP_S)


def main(argv: Sequence[str] | None = None) -> int:
    """Run it; the exit code."""
    program = Program(NAME, build, stop_s=lambda settings: STOP_S, processes=lambda settings: settings.engine.workers)
    return run(program, argv, count_option='Engine processes to start; instead of [engine] workers.')


if __name__ == '__main__':
    sys.exit(main())
