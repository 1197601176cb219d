"""Share the runs of ``convergence-simulate`` among processes."""

from __future__ import annotations

import logging
import multiprocessing
import signal
from collections import deque
from collections.abc import Iterator
from multiprocessing.pool import AsyncResult

from convergence_simulator.runs.batch import Chunk, Tally


def in_processes(work: Iterator[Chunk], jobs: int) -> Iterator[tuple[Chunk, Tally]]:
    """Run chunks in `jobs` processes; what came of them, in the order of the chunks.

    Little more is taken from `work` than can be begun: it may decide late what is still worth running.
    """
    waiting: deque[tuple[Chunk, AsyncResult[Tally]]] = deque()
    with multiprocessing.get_context('spawn').Pool(jobs, _prepare) as pool:
        for chunk in work:
            waiting.append((chunk, pool.apply_async(chunk.run)))
            if len(waiting) > jobs:
                yield _next(waiting)
        while waiting:
            yield _next(waiting)


def _next(waiting: deque[tuple[Chunk, AsyncResult[Tally]]]) -> tuple[Chunk, Tally]:
    chunk, result = waiting.popleft()
    return chunk, result.get()


def _prepare() -> None:
    """Ctrl-C reaches every process of a terminal, the first one ends the others; and nobody wants a log of these."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    logging.disable(logging.CRITICAL)
