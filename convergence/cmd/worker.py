"""``convergence-worker``: carries out the steps of traversals. See `convergence.cmd.program` for its exit codes."""

from __future__ import annotations

import sys
from collections.abc import Sequence

from convergence.cmd.program import Program, ProgramService, require_broker, run
from convergence.config import Settings

NAME = 'convergence-worker'


def build(settings: Settings) -> ProgramService:
    """A worker, connected.

    :raises OperatorError: database or broker cannot be used.
    """
    require_broker(settings, NAME)
    from convergence.cmd.assembly import Parts, WorkerProcess

    return WorkerProcess(Parts.open(settings))


def main(argv: Sequence[str] | None = None) -> int:
    """Run it; the exit code."""
    program = Program(
        NAME,
        build,
        stop_s=lambda settings: settings.worker.drain_timeout_s,
        processes=lambda settings: settings.worker.workers,
        ailment=lambda worker: worker.ailment(),
    )
    return run(program, argv, count_option='Worker processes to start; instead of [worker] workers.')


if __name__ == '__main__':
    sys.exit(main())
