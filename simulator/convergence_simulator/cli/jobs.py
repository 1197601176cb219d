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
    """Run chunks in `jobs` processes, and return their results in the order of the chunks.

    It takes only a few more chunks from `work` than it can start, so that `work` can decide late which runs are useful.
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
    """Ignore Ctrl-C, because a terminal sends it to all processes and the first one ends the others. Write no log."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    logging.disable(logging.CRITICAL)
