"""Tasks that are stopped together, and how one is stopped."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from enum import StrEnum
from typing import Any, Concatenate, ParamSpec

from convergence.concurrency.executor import Executor, Lock, ThreadEvent, installed, start_thread
from convergence.concurrency.pool import Job, Pool

LOG = logging.getLogger(__name__)

P = ParamSpec('P')

GRACE_S = 10.0


class TaskKilled(BaseException):
    """Raised inside `Task.killable()` to end a task. Not an `Exception`, so that no code catches it by accident."""


class GroupStopped(RuntimeError):
    """The group was stopped and takes no more tasks."""


class TaskOutcome(StrEnum):
    """How a task ended, if it did."""

    RUNNING = 'RUNNING'
    DONE = 'DONE'
    FAILED = 'FAILED'
    KILLED = 'KILLED'


class StopReason(StrEnum):
    """The reason for cancelling a task."""

    CANCEL = 'CANCEL'
    TIME = 'TIME'


class Task:
    """One piece of work in a group.

    :ivar cancelled: set when the task has to end; long work checks it, or waits on it instead of sleeping.
    :ivar reason: the reason for that; None until then.
    :ivar error: what the work raised, when the outcome is `FAILED`.
    """

    def __init__(self, name: str) -> None:
        self.name = name
        self.cancelled = ThreadEvent()
        self.reason: StopReason | None = None
        self.error: BaseException | None = None
        self.outcome = TaskOutcome.RUNNING
        self.job: Job | None = None
        self._killable_depth = 0
        self._grace_over = False
        self._greenlet: Any = None
        self._lock = Lock()
        self._closers: list[Callable[[], object]] = []

    @property
    def is_unwanted(self) -> bool:
        """True if the task was cancelled for another reason than its time limit."""
        return self.cancelled.is_set() and self.reason is not StopReason.TIME

    @property
    def in_call(self) -> bool:
        """True inside of `killable`: in a call of a plugin, not in a wait for the database."""
        return self._killable_depth > 0 and self.outcome is TaskOutcome.RUNNING

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
            if not self._killable_depth and self._closers:
                with self._lock:
                    self._closers.clear()

    def on_cancel(self, close: Callable[[], object]) -> None:
        """Have something called, in another thread, when the task is cancelled before the call that is made now ends.

        At once, and in this thread, where it was cancelled already. What it raises is logged.
        """
        with self._lock:
            self._closers.append(close)
        if self.cancelled.is_set():
            self.close()

    def close(self) -> None:
        """Run the cancel callbacks of the current call, each of them once."""
        with self._lock:
            closers, self._closers = self._closers, []
        for close in closers:
            try:
                close()
            except Exception as error:  # noqa: BLE001 - code of a plugin
                LOG.info('Cancel callback of task %s failed, the task may stop late: %s', self.name, error)

    @contextmanager
    def protected(self) -> Iterator[None]:
        """Declare, inside of `killable`, that the work inside must not be interrupted: it is with the database.

        :raises TaskKilled: at the end, when the grace period is over by then.
        """
        depth, self._killable_depth = self._killable_depth, 0
        try:
            yield
        finally:
            self._killable_depth = depth
        if self._grace_over:
            raise TaskKilled(self.name)

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
        if self._greenlet is not None and self._killable_depth and self.outcome is TaskOutcome.RUNNING:
            import eventlet

            eventlet.kill(self._greenlet, TaskKilled, TaskKilled(self.name))

    def finish(self, error: BaseException | None) -> None:
        """Note how the work ended."""
        self._greenlet = None
        self.error = None if isinstance(error, TaskKilled) else error
        if error is None:
            self.outcome = TaskOutcome.DONE
        else:
            self.outcome = TaskOutcome.KILLED if isinstance(error, TaskKilled) else TaskOutcome.FAILED


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
        self._ask(tasks, StopReason.CANCEL, grace_s)

    def interrupt(self, grace_s: float = GRACE_S) -> None:
        """Like `stop`, for the tasks that there are now. The group takes further tasks."""
        self._ask(self.tasks, StopReason.CANCEL, grace_s)

    def stop_one(self, task: Task, reason: StopReason, grace_s: float = GRACE_S) -> None:
        """Ask one task to end, and insist after `grace_s` seconds. Returns at once. The group takes further tasks."""
        if task in self.tasks and not task.cancelled.is_set():
            self._ask((task,), reason, grace_s)

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
                LOG.exception('Task failed in group %s, its thread ends: %s; report this error', self.name, task.name)
            self._ended(task, error)
            raise
        else:
            self._ended(task, None)

    def _ended(self, task: Task, error: BaseException | None) -> None:
        task.finish(error)
        with self._changed:
            self._tasks.remove(task)
            self._changed.notify_all()

    def _ask(self, tasks: tuple[Task, ...], reason: StopReason, grace_s: float) -> None:
        for task in tasks:
            task.reason = task.reason or reason
            task.cancelled.set()
        if tasks:
            start_thread(f'{self.name}:stop', lambda: self._insist(tasks, grace_s))

    def _insist(self, tasks: tuple[Task, ...], grace_s: float) -> None:
        for task in tasks:
            task.close()
        with self._changed:
            self._changed.wait_for(lambda: not any(task in self._tasks for task in tasks), grace_s)
            left = tuple(task for task in tasks if task in self._tasks)
        self._give_up(left)

    def _give_up(self, tasks: tuple[Task, ...]) -> None:
        """The patience with these is over: all of them lose their threads, and only then is each seen to."""
        for task in tasks:
            task.end_grace()
            if installed() is Executor.THREADING and self._pool is not None and task.job is not None:
                self._pool.write_off(task.job)
        for task in tasks:
            self._see_to(task)

    def _see_to(self, task: Task) -> None:
        """Report a task that was given up to its owner. A failure here must not delay other tasks."""
        if self._left is None:
            return
        try:
            self._left(task)
        except Exception:
            LOG.exception(
                'Group %s gave up task %s and failed to notify the owner of the task; report this error',
                self.name,
                task.name,
            )
