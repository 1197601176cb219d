"""``convergence-observer``: compares live objects with their records.

See `convergence.cmd.process.program` for its exit codes.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from convergence.cmd.process.program import Program, ProgramService, run
from convergence.config import Settings

if TYPE_CHECKING:
    from convergence.cmd.wiring.parts import Parts

NAME = 'convergence-observer'


def build(settings: Settings, open_parts: Callable[[Settings], Parts] | None = None) -> ProgramService:
    """An observer, connected.

    :param open_parts: see `main`.
    :raises OperatorError: database or broker cannot be used.
    """
    from convergence.cmd.wiring.observer import ObserverProcess
    from convergence.cmd.wiring.parts import Parts

    return ObserverProcess((open_parts or Parts.open)(settings))


def main(argv: Sequence[str] | None = None, open_parts: Callable[[Settings], Parts] | None = None) -> int:
    """Run it; the exit code.

    :param open_parts: connects to the database in place of `Parts.open`, for a process that is watched.
    """
    program = Program(
        NAME,
        lambda settings: build(settings, open_parts),
        stop_s=lambda settings: settings.observer.timeout_s,
        processes=lambda settings: settings.observer.workers,
    )
    return run(program, argv, count_option='Observer processes to start; instead of [observer] workers.')


if __name__ == '__main__':
    sys.exit(main())
