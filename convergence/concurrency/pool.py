"""A bounded number of threads that work off calls, and what becomes of one that does not end."""

from __future__ import annotations

import logging
import threading
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import ParamSpec

from convergence.concurrency.executor import Lock, ThreadEvent, start_thread

LOG = logging.getLogger(__name__)

P = ParamSpec('P')


@dataclass(eq=False, slots=True)
class Job:
    """A call that a pool has accepted; `over` is set when it has ended, or when it was given up."""

    call: Callable[[], object]
    finished: bool = False
    lost: bool = False
    over: threading.Event = field(default_factory=lambda: ThreadEvent())
    _then: Callable[[], object] | None = None
    _lock: Lock = field(default_factory=lambda: Lock())

    def when_over(self, then: Callable[[], object]) -> None:
        """Call `then` once when the job ends or is given up, in the thread that ends it; now if it has ended."""
        with self._lock:
            if not self.over.is_set():
                self._then = then
                return
        then()

    def end(self) -> None:
        """It is over. Doing this twice does no harm."""
        with self._lock:
            self.over.set()
            then, self._then = self._then, None
        if then is not None:
            then()


class Pool:
    """At most `threads` calls at a time, the others wait in order. Threads are started when they are first needed."""

    def __init__(self, threads: int, name: str = 'pool') -> None:
        if threads < 1:
            raise ValueError(f'{name}: a pool needs at least one thread, not {threads}')
        self.name = name
        self.threads = threads
        lock = threading.Lock()
        self._work_comes = threading.Condition(lock)
        self._work_ends = threading.Condition(lock)
        self._waiting: deque[Job] = deque()
        self._started = 0
        self._busy = 0
        self._lost = 0
        self._closed = False

    @property
    def idle(self) -> int:
        """How many more calls could begin at once."""
        with self._work_comes:
            return max(0, self.threads - self._busy - len(self._waiting))

    @property
    def lost(self) -> int:
        """How many threads were written off and still run."""
        with self._work_comes:
            return self._lost

    def submit(self, function: Callable[P, object], *args: P.args, **kwargs: P.kwargs) -> Job:
        """Run `function(*args)` when a thread is free. What it raises is logged.

        :raises RuntimeError: the pool is being drained, or has no thread and cannot start one.
        """
        job = Job(lambda: function(*args, **kwargs))
        with self._work_comes:
            if self._closed:
                raise RuntimeError(f'{self.name} is being drained and takes no more work')
            self._waiting.append(job)
            self._start_threads()
            self._work_comes.notify()
        return job

    def write_off(self, job: Job) -> None:
        """Give up the thread that is stuck in `job`: another takes its place, and it ends when the job ever does."""
        with self._work_comes:
            if job.finished or job.lost or job in self._waiting:
                return
            job.lost = True
            self._lost += 1
            self._busy -= 1
            self._started -= 1
            self._start_threads()
            self._work_ends.notify_all()
            lost = self._lost
        job.end()
        LOG.warning(
            'Stuck thread of pool %s replaced; %d threads are stuck, restart the process if their number grows',
            self.name,
            lost,
        )

    def drain(self, timeout_s: float | None = None) -> bool:
        """Accept no more work and finish the accepted jobs, except on lost threads. False: not within `timeout_s`."""
        with self._work_comes:
            self._closed = True
            self._work_comes.notify_all()
            return self._work_ends.wait_for(lambda: not self._busy and not self._waiting, timeout_s)

    def _start_threads(self) -> None:
        while self._started < min(self.threads, self._busy + len(self._waiting)):
            self._started += 1
            try:
                start_thread(f'{self.name}-{self._started}', self._work)
            except RuntimeError:
                self._started -= 1
                if not self._started:
                    self._waiting.clear()
                    raise
                return  # those that run do it

    def _work(self) -> None:
        while True:
            with self._work_comes:
                self._work_comes.wait_for(lambda: self._waiting or self._closed)
                if not self._waiting:
                    self._started -= 1
                    return
                job = self._waiting.popleft()
                self._busy += 1
            try:
                job.call()
            except BaseException:
                LOG.exception(
                    'Task in pool %s failed, its thread continues with the next task; report this error', self.name
                )
            with self._work_comes:
                job.finished = True
                if job.lost:
                    self._lost -= 1
                    return
                self._busy -= 1
                self._work_ends.notify_all()
            job.end()
