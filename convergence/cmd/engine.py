"""``convergence-engine``: accepts and plans operations on stacks.

See `convergence.cmd.process.program` for its exit codes.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from convergence.cmd.process.program import Program, ProgramService, require_broker, run
from convergence.config import Settings

if TYPE_CHECKING:
    from convergence.cmd.wiring.parts import Parts

NAME = 'convergence-engine'
STOP_S = 10.0
"""Seconds after a request to stop in which running requests may finish."""


def build(settings: Settings, open_parts: Callable[[Settings], Parts] | None = None) -> ProgramService:
    """An engine, connected.

    :param open_parts: see `main`.
    :raises OperatorError: database or broker cannot be used.
    """
    require_broker(settings, NAME)
    from convergence.cmd.wiring.engine import EngineProcess
    from convergence.cmd.wiring.parts import Parts

    return EngineProcess((open_parts or Parts.open)(settings), stop_s=STOP_S)


def main(argv: Sequence[str] | None = None, open_parts: Callable[[Settings], Parts] | None = None) -> int:
    """Run it; the exit code.

    :param open_parts: connects to database and broker in place of `Parts.open`, for a process that is watched.
    """
    program = Program(
        NAME,
        lambda settings: build(settings, open_parts),
        stop_s=lambda settings: STOP_S,
        processes=lambda settings: settings.engine.workers,
    )
    return run(program, argv, count_option='Engine processes to start; instead of [engine] workers.')


if __name__ == '__main__':
    sys.exit(main())
