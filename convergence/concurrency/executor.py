"""The executor of a process, and the locks, events and clocks that depend on it."""

from __future__ import annotations

import os
import select
import sys
import threading
import time
import warnings
from collections.abc import Callable
from enum import StrEnum
from typing import Self

from convergence.errors import ConfigurationError

_TOO_LATE = ('oslo_messaging', 'oslo_service', 'kombu', 'sqlalchemy', 'psycopg2', 'pymysql')
"""Libraries that keep what they find in `threading` or `socket` when they are imported."""

_installed: Executor | None = None


class Executor(StrEnum):
    """Runs the threads of a process."""

    THREADING = 'threading'
    EVENTLET = 'eventlet'


def install(executor: Executor) -> None:
    """Choose the executor of this process. Call it first of all, once; repeating the same choice does nothing.

    :raises ConfigurationError: the other executor is in use already, or it is too late to patch the libraries.
    """
    global _installed  # noqa: PLW0603 - a process has one executor, and it is chosen once
    if _installed not in (None, executor):
        raise ConfigurationError(f'executor: this process already runs on {_installed}, it cannot change to {executor}')
    # Known and decided, see docs/decisions; and libraries say it even where nothing runs on it.
    warnings.filterwarnings('ignore', r'\s*Eventlet is deprecated|eventletutils module is deprecated')
    if executor is Executor.EVENTLET and _installed is None:
        _patch()
    if executor is Executor.THREADING:
        # oslo.messaging imports eventlet in any case; its resolver of names is a seventh of what a program imports.
        os.environ.setdefault('EVENTLET_NO_GREENDNS', 'yes')
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


def has_input(file: int) -> bool:
    """Return True if a file or socket has data to read now, or its other end is closed.

    :param file: its number.
    """
    if _installed is Executor.EVENTLET:
        from eventlet import patcher

        poll = patcher.original('select').poll()  # nothing is waited for, so no other thread has to have its turn
    else:
        poll = select.poll()
    poll.register(file, select.POLLIN)
    return bool(poll.poll(0))


ThreadEvent = threading.Event
"""A flag that threads can wait for. It uses the locks of the executor at the time of its creation."""


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


class Semaphore:
    """A number of places: a thread that enters takes one, or waits for one. It uses the locks of the executor.

    :param places: how many there are.
    """

    __slots__ = ('_semaphore',)

    def __init__(self, places: int) -> None:
        self._semaphore = threading.BoundedSemaphore(places)

    def __enter__(self) -> Self:
        self._semaphore.acquire()
        return self

    def __exit__(self, *raised: object) -> None:
        self._semaphore.release()


class RunningThread:
    """A thread that was started."""

    __slots__ = ('_thread',)

    def __init__(self, thread: threading.Thread) -> None:
        self._thread = thread

    def wait(self, timeout_s: float) -> bool:
        """Wait until it has ended; whether it has. A thread does not wait for itself."""
        if self._thread is threading.current_thread():
            return False
        self._thread.join(timeout_s)
        return not self._thread.is_alive()


def start_thread(name: str, function: Callable[[], object]) -> RunningThread:
    """Run `function` in a thread of its own that does not keep the process alive."""
    thread = threading.Thread(target=function, name=name, daemon=True)
    thread.start()
    return RunningThread(thread)
