"""Distributes the runs of ``convergence-simulate`` to processes."""

from __future__ import annotations

import logging
import multiprocessing
import signal
from collections import deque
from collections.abc import Iterator
from multiprocessing.pool import AsyncResult

from convergence_simulator.runs.batch import Chunk, Tally


def in_processes(work: Iterator[Chunk], jobs: int) -> Iterator[tuple[Chunk, Tally]]:
    """Run chunks in `jobs` processes; yield each chunk with its totals, in the order of the chunks.

    Takes few chunks from `work` in advance, because `work` may decide late which chunks are still useful.
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
    """Ignore Ctrl-C, which the terminal sends to every process; the first process ends the others. Disable logs."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    logging.disable(logging.CRITICAL)
