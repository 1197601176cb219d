"""Threads: one small interface, two executors. The only module that knows which one is in use.

* `threading`: native threads. Nothing can stop one from outside, so stopping is cooperative: a task looks at
  `Task.cancelled`. A thread that does not look is left behind and its place in the pool is filled again.
* `eventlet`: green threads. As above; and a task that still runs after the grace period is killed, but only while it
  is inside `Task.killable()`. So nothing is ever killed inside a database call, where the outcome would be unknown.

The executor is chosen once per process by `install`, before anything else is imported. Everything here looks up
`threading` and `time` when it is called, not when it is imported, so it follows eventlet's patching.
"""

from __future__ import annotations

import logging
import sys
import threading
import time
import warnings
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, Concatenate, ParamSpec, Self

from convergence.errors import ConfigurationError

LOG = logging.getLogger(__name__)

P = ParamSpec('P')

GRACE_S = 10.0

_TOO_LATE = ('oslo_messaging', 'oslo_service', 'kombu', 'sqlalchemy', 'psycopg2', 'pymysql')
"""Libraries that keep what they find in `threading` or `socket` when they are imported."""

_installed: Executor | None = None


class Executor(StrEnum):
    """What runs the threads of a process."""

    THREADING = 'threading'
    EVENTLET = 'eventlet'


def install(executor: Executor) -> None:
    """Choose the executor of this process. Call it first of all, once; repeating the same choice does nothing.

    :raises ConfigurationError: the other executor is in use already, or it is too late to patch the libraries.
    """
    global _installed
    if _installed not in (None, executor):
        raise ConfigurationError(f'executor: this process already runs on {_installed}, it cannot change to {executor}')
    # Known and decided, see docs/decisions; and libraries say it even where nothing runs on it.
    warnings.filterwarnings('ignore', r'\s*Eventlet is deprecated|eventletutils module is deprecated')
    if executor is Executor.EVENTLET and _installed is None:
        _patch()
    _installed = executor


def _patch() -> None:
    loaded = [name for name in _TOO_LATE if name in sys.modules]
    if loaded:
        raise ConfigurationError(
            f'executor: eventlet must be installed before {", ".join(loaded)} is imported; '
            'call convergence.concurrency.install first in the program'
        )
    import eventlet

    eventlet.monkey_patch()


def installed() -> Executor:
    """The executor of this process."""
    return _installed or Executor.THREADING


def sleep(duration_s: float) -> None:
    """Let others run for `duration_s` seconds."""
    time.sleep(duration_s)


Event = threading.Event
"""A flag that can be waited for. Made of whatever locks the executor has when it is created."""


class Lock:
    """A lock of the installed executor. Not reentrant."""

    __slots__ = ('_lock',)

    def __init__(self) -> None:
        self._lock = threading.Lock()

    def acquire(self, timeout_s: float | None = None) -> bool:
        """Take the lock; False when it could not be had within `timeout_s` (None: wait as long as it takes)."""
        return self._lock.acquire(timeout=-1 if timeout_s is None else timeout_s)

    def release(self) -> None:
        """Give the lock back."""
        self._lock.release()

    def __enter__(self) -> Self:
        self._lock.acquire()
        return self

    def __exit__(self, *raised: object) -> None:
        self._lock.release()


class TaskKilled(BaseException):
    """Raised inside `Task.killable()` to end a task. Not an `Exception`: nobody should catch it by accident."""


class GroupStopped(RuntimeError):
    """The group was stopped and takes no more tasks."""


class Outcome(StrEnum):
    """How a task ended, if it did."""

    RUNNING = 'RUNNING'
    DONE = 'DONE'
    FAILED = 'FAILED'
    KILLED = 'KILLED'


class Task:
    """One piece of work in a group.

    :ivar cancelled: set when the task is no longer wanted; long work looks at it, or waits on it instead of sleeping.
    :ivar error: what the work raised, when the outcome is `FAILED`.
    """

    def __init__(self, name: str) -> None:
        self.name = name
        self.cancelled = Event()
        self.error: BaseException | None = None
        self.outcome = Outcome.RUNNING
        self.job: Job | None = None
        self._killable_depth = 0
        self._grace_over = False
        self._greenlet: Any = None

    @contextmanager
    def killable(self) -> Iterator[None]:
        """Declare that the work inside may be interrupted at any point. Wrap calls of plugins, never of the database.

        :raises TaskKilled: inside, when the executor can kill; on entry, when the grace period is already over.
        """
        if self._grace_over:
            raise TaskKilled(self.name)
        self._killable_depth += 1
        try:
            yield
        finally:
            self._killable_depth -= 1

    def begin(self) -> None:
        """The current thread works on this task now."""
        if installed() is Executor.EVENTLET:
            import greenlet

            self._greenlet = greenlet.getcurrent()

    def end_grace(self) -> None:
        """Stop being patient: kill the task if the executor can and the task allows it, else at its next chance.

        Between looking and killing no other green thread runs, so a task cannot leave `killable()` in between.
        """
        self._grace_over = True
        if self._greenlet is not None and self._killable_depth and self.outcome is Outcome.RUNNING:
            import eventlet

            eventlet.kill(self._greenlet, TaskKilled, TaskKilled(self.name))

    def finish(self, error: BaseException | None) -> None:
        """Note how the work ended."""
        self._greenlet = None
        self.error = None if isinstance(error, TaskKilled) else error
        if error is None:
            self.outcome = Outcome.DONE
        else:
            self.outcome = Outcome.KILLED if isinstance(error, TaskKilled) else Outcome.FAILED


class Group:
    """Tasks that are stopped together.

    :param pool: where `spawn` runs tasks; None gives each its own thread.
    :param left: called with each task that has not ended when the grace period after `stop` is over; by then it has
        been killed, or its thread has been given up.
    """

    def __init__(self, name: str, pool: Pool | None = None, left: Callable[[Task], object] | None = None) -> None:
        self.name = name
        self._pool = pool
        self._left = left
        self._changed = threading.Condition()
        self._tasks: list[Task] = []
        self._stopped = False

    @property
    def tasks(self) -> tuple[Task, ...]:
        """The tasks that have not ended, oldest first."""
        with self._changed:
            return tuple(self._tasks)

    def spawn(self, function: Callable[Concatenate[Task, P], object], *args: P.args, **kwargs: P.kwargs) -> Task:
        """Run `function(task, *args)` in a thread of its own, or of the pool. An error it raises is logged and kept.

        :raises GroupStopped: the group was stopped.
        """
        task = self._register(getattr(function, '__name__', 'task'))

        def work() -> None:
            with suppress(BaseException), self._running(task, log=True):
                function(task, *args, **kwargs)

        try:
            if self._pool is None:
                start_thread(f'{self.name}:{task.name}', work)
            else:
                task.job = self._pool.submit(work)
        except BaseException as error:
            self._ended(task, error)
            raise
        return task

    @contextmanager
    def enter(self, name: str) -> Iterator[Task]:
        """Make what the current thread does inside a task of this group. A kill ends the block silently.

        :raises GroupStopped: the group was stopped.
        """
        task = self._register(name)
        with self._running(task):
            yield task

    def stop(self, grace_s: float = GRACE_S) -> None:
        """Ask every task to end, and insist after `grace_s` seconds. Returns at once; see `wait`."""
        with self._changed:
            self._stopped = True
            tasks = tuple(self._tasks)
        for task in tasks:
            task.cancelled.set()
        if tasks:
            start_thread(f'{self.name}:stop', lambda: self._insist(grace_s))

    def wait(self, timeout_s: float | None = None) -> tuple[Task, ...]:
        """Wait for the tasks to end. The tasks that had not ended after `timeout_s` seconds (empty: all ended)."""
        with self._changed:
            self._changed.wait_for(lambda: not self._tasks, timeout_s)
            return tuple(self._tasks)

    def _register(self, name: str) -> Task:
        task = Task(name)
        with self._changed:
            if self._stopped:
                raise GroupStopped(f'{self.name} was stopped, {name} is not started')
            self._tasks.append(task)
        return task

    @contextmanager
    def _running(self, task: Task, *, log: bool = False) -> Iterator[None]:
        task.begin()
        try:
            yield
        except TaskKilled as killed:
            self._ended(task, killed)
        except BaseException as error:
            if log:
                LOG.exception('%s: task %s failed', self.name, task.name)
            self._ended(task, error)
            raise
        else:
            self._ended(task, None)

    def _ended(self, task: Task, error: BaseException | None) -> None:
        task.finish(error)
        with self._changed:
            self._tasks.remove(task)
            self._changed.notify_all()

    def _insist(self, grace_s: float) -> None:
        for task in self.wait(grace_s):
            task.end_grace()
            if installed() is Executor.THREADING and self._pool is not None and task.job is not None:
                self._pool.write_off(task.job)
            if self._left is not None:
                self._left(task)


@dataclass(eq=False, slots=True)
class Job:
    """A call that a pool has accepted; `over` is set when it has ended, or when it was given up."""

    call: Callable[[], object]
    finished: bool = False
    lost: bool = False
    over: threading.Event = field(default_factory=lambda: Event())


class Pool:
    """At most `threads` calls at a time, the others wait in order. Threads are started when they are first needed."""

    def __init__(self, threads: int, name: str = 'pool') -> None:
        if threads < 1:
            raise ValueError(f'{name}: a pool needs at least one thread, not {threads}')
        self.name = name
        self.threads = threads
        self._changed = threading.Condition()
        self._waiting: deque[Job] = deque()
        self._started = 0
        self._busy = 0
        self._lost = 0
        self._closed = False

    @property
    def idle(self) -> int:
        """How many more calls could begin at once."""
        with self._changed:
            return max(0, self.threads - self._busy - len(self._waiting))

    @property
    def lost(self) -> int:
        """How many threads were written off and still run."""
        with self._changed:
            return self._lost

    def submit(self, function: Callable[P, object], *args: P.args, **kwargs: P.kwargs) -> Job:
        """Run `function(*args)` when a thread is free. What it raises is logged.

        :raises RuntimeError: the pool is being drained.
        """
        job = Job(lambda: function(*args, **kwargs))
        with self._changed:
            if self._closed:
                raise RuntimeError(f'{self.name} is being drained and takes no more work')
            self._waiting.append(job)
            self._start_threads()
            self._changed.notify_all()
        return job

    def write_off(self, job: Job) -> None:
        """Give up the thread that is stuck in `job`: another takes its place, and it ends when the job ever does."""
        with self._changed:
            if job.finished or job.lost or job in self._waiting:
                return
            job.lost = True
            job.over.set()
            self._lost += 1
            self._busy -= 1
            self._started -= 1
            self._start_threads()
            self._changed.notify_all()
            lost = self._lost
        LOG.warning('%s: a thread does not end and was replaced; %d such threads are left behind', self.name, lost)

    def drain(self, timeout_s: float | None = None) -> bool:
        """Take no more work, finish what was accepted (but for lost threads). False: not within `timeout_s` seconds."""
        with self._changed:
            self._closed = True
            self._changed.notify_all()
            return self._changed.wait_for(lambda: not self._busy and not self._waiting, timeout_s)

    def _start_threads(self) -> None:
        while self._started < min(self.threads, self._busy + len(self._waiting)):
            self._started += 1
            start_thread(f'{self.name}-{self._started}', self._work)

    def _work(self) -> None:
        while True:
            with self._changed:
                self._changed.wait_for(lambda: self._waiting or self._closed)
                if not self._waiting:
                    self._started -= 1
                    return
                job = self._waiting.popleft()
                self._busy += 1
            try:
                job.call()
            except BaseException:
                LOG.exception('%s: a call failed', self.name)
            job.over.set()
            with self._changed:
                job.finished = True
                if job.lost:
                    self._lost -= 1
                    return
                self._busy -= 1
                self._changed.notify_all()


def start_thread(name: str, function: Callable[[], object]) -> None:
    """Run `function` in a thread of its own that does not keep the process alive."""
    threading.Thread(target=function, name=name, daemon=True).start()
