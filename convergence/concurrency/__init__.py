"""Threads: one small interface, two executors. The only module that knows which one is in use.

* `threading`: native threads. Nothing can stop one from outside, so stopping is cooperative: a task checks
  `Task.cancelled`. A thread that does not look is left behind and its place in the pool is filled again.
* `eventlet`: green threads. As above; and a task that still runs after the grace period is killed, but only while it
  is inside `Task.killable()`. So nothing is ever killed inside a database call, where the outcome would be unknown.

The executor is chosen once per process by `install`, before anything else is imported. Everything here looks up
`threading` and `time` when it is called, not when it is imported, so it follows eventlet's patching.
"""

from __future__ import annotations

from convergence.concurrency.executor import (
    Executor,
    Lock,
    RunningThread,
    Semaphore,
    ThreadEvent,
    has_input,
    install,
    installed,
    sleep,
    start_thread,
)
from convergence.concurrency.pool import Job, Pool
from convergence.concurrency.tasks import GRACE_S, Group, GroupStopped, StopReason, Task, TaskKilled, TaskOutcome

__all__ = [
    'GRACE_S',
    'Executor',
    'Group',
    'GroupStopped',
    'Job',
    'Lock',
    'Pool',
    'RunningThread',
    'Semaphore',
    'StopReason',
    'Task',
    'TaskKilled',
    'TaskOutcome',
    'ThreadEvent',
    'has_input',
    'install',
    'installed',
    'sleep',
    'start_thread',
]
