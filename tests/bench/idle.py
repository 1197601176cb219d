"""What processes do while nobody wants anything of them, with many finished resources in the database."""

from __future__ import annotations

import time
from dataclasses import dataclass

from convergence.concurrency import sleep
from tests.bench.crowd import fill
from tests.bench.installations import BenchmarkInstallation
from tests.bench.servers import ServerWatch

EACH = 100
"""Resources of each of the finished stacks."""
SETTLES_S = 15.0
"""What is left to do after the last operation is done by then: nodes of old traversals go, statistics are taken."""


@dataclass(frozen=True, slots=True)
class Idle:
    """What was done in some seconds in which nothing was to be done.

    :param cpu_percent: processor time of each kind of process, in percent of one core.
    :param statements_per_s: of engines, workers and observers, as the drivers send them.
    :param server_statements_per_s: as the server counts them, where it does.
    """

    resources: int
    seconds: float
    cpu_percent: dict[str, float]
    statements_per_s: float
    commits_per_s: float
    server_statements_per_s: float | None


def rest(installation: BenchmarkInstallation, resources: int, seconds: float) -> Idle:
    """Watch an installation with so many finished resources, another engine, an API and an observer for some seconds.

    :raises ConvergenceError: the stack that the others are copies of could not be made.
    """
    if installation.launcher is not None:
        installation.launch('engine')
        installation.launch('api')
        installation.launch('observer')
    fill(installation, max(1, resources // EACH), min(EACH, resources))
    sleep(min(SETTLES_S, seconds))
    begun = time.perf_counter()

    def end(watch: ServerWatch | None) -> None:
        sleep(seconds)

    took = installation.measure(lambda: None, end)
    lasted = time.perf_counter() - begun
    server = took.server.statements if took.server else None
    return Idle(
        resources,
        lasted,
        {kind: 100 * used / lasted for kind, used in took.cpu_s.items()},
        took.counts['statements'] / lasted,
        took.counts['commits'] / lasted,
        None if server is None else server / lasted,
    )
