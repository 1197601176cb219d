"""An engine or a worker with failpoints: the first argument says which, the others are those of the program."""

from __future__ import annotations

import sys
from dataclasses import replace
from typing import TYPE_CHECKING

from convergence.cmd import engine, worker
from convergence.config import Settings
from tests.chaos import failpoints

if TYPE_CHECKING:
    from convergence.cmd.wiring.parts import Parts


def open_parts(settings: Settings) -> Parts:
    """As always, with failpoints around each commit and each send."""
    from convergence.cmd.wiring.parts import Parts
    from convergence.db.statements.store import Store

    points = failpoints.from_environment()
    parts = Parts.open(settings)
    parts.transport.around_send = points.send
    return replace(parts, store=Store(parts.store.engine, around_commit=points.commit))


def main() -> int:
    """Run it; the exit code."""
    kind, *arguments = sys.argv[1:]
    return (engine if kind == 'engine' else worker).main(arguments, open_parts)


if __name__ == '__main__':
    sys.exit(main())
