"""``convergence-worker``: carries out the steps of traversals.

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

NAME = 'convergence-worker'


def build(settings: Settings, open_parts: Callable[[Settings], Parts] | None = None) -> ProgramService:
    """A worker, connected.

    :param open_parts: see `main`.
    :raises OperatorError: database or broker cannot be used.
    """
    require_broker(settings, NAME)
    from convergence.cmd.wiring.parts import Parts
    from convergence.cmd.wiring.worker import WorkerProcess

    return WorkerProcess((open_parts or Parts.open)(settings))


def main(argv: Sequence[str] | None = None, open_parts: Callable[[Settings], Parts] | None = None) -> int:
    """Run it; the exit code.

    :param open_parts: connects to database and broker in place of `Parts.open`, for a process that is watched.
    """
    program = Program(
        NAME,
        lambda settings: build(settings, open_parts),
        stop_s=lambda settings: settings.worker.drain_timeout_s,
        processes=lambda settings: settings.worker.workers,
        unhealthy_reason=lambda worker: worker.unhealthy_reason(),
    )
    return run(program, argv, count_option='Worker processes to start; instead of [worker] workers.')


if __name__ == '__main__':
    sys.exit(main())
