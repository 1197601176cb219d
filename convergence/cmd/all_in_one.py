"""``convergence-all-in-one``: one engine and ``[worker] workers`` workers in one process.

With nothing configured it needs nothing: an SQLite file, messages in memory, and the resource types of the local
provider. With a broker and another database it is one more engine and some more workers of an installation.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence

from convergence.cmd.engine import STOP_S
from convergence.cmd.program import Program, Service, run
from convergence.config import Settings

NAME = 'convergence-all-in-one'


def build(settings: Settings) -> Service:
    """Everything in this process, connected.

    :raises OperatorError: database or broker cannot be used.
    """
    from convergence.cmd.embedded import Embedded

    return Embedded(settings)


def main(argv: Sequence[str] | None = None) -> int:
    """Run it; the exit code."""
    program = Program(
        NAME,
        build,
        stop_s=lambda settings: settings.worker.drain_timeout_s + STOP_S,
        defaults={('local_provider', 'enabled'): True},
    )
    return run(program, argv)


if __name__ == '__main__':
    sys.exit(main())
