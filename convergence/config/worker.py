"""The workers."""

from __future__ import annotations

from dataclasses import dataclass

from oslo_config import cfg

from convergence.core.model import DISPATCH_WINDOW, MAX_BATCH_NODES

OPTIONS: list[cfg.Opt] = [
    cfg.IntOpt('workers', default=1, min=1, help='Worker processes that convergence-worker starts.'),
    cfg.IntOpt('threads', default=8, min=1, help='Resources that each worker process works on at the same time.'),
    cfg.IntOpt(
        'max_inline_nodes',
        default=16,
        min=1,
        deprecated_name='nodes_in_a_row',
        help='Maximum number of nodes of one operation that a thread runs one after the other before it dispatches the '
        'next one in a message. 1 sends a message for every node.',
    ),
    cfg.FloatOpt(
        'poll_interval_min_s', default=0.2, min=0.01, help='Seconds to the first poll of an action that takes time.'
    ),
    cfg.FloatOpt(
        'poll_interval_max_s',
        default=30.0,
        min=0.01,
        help='Longest time in seconds between two polls; the interval grows up to it as an action goes on.',
    ),
    cfg.FloatOpt(
        'park_after_s',
        default=2.0,
        min=0.0,
        help='Seconds of polling after which an action is parked: it waits in its database row, holds no thread, '
        'and any worker continues it.',
    ),
    cfg.IntOpt(
        'transient_attempts',
        default=5,
        min=1,
        help='How often a call is made that fails for the moment (TransientFailure) before its resource fails, where '
        'neither template nor resource type says so. The pause doubles with each, within the limits of polling.',
    ),
    cfg.FloatOpt(
        'cancel_grace_s',
        default=10.0,
        min=0.0,
        help='Seconds that a cancelled action has to stop by itself before its resource is taken away from it.',
    ),
    cfg.IntOpt(
        'max_stuck_threads',
        default=8,
        min=1,
        help='Threads stuck in calls of resource types that do not end, each replaced by another one. With so many of '
        'them the process ends with exit code 1, to be started anew by its supervisor; others go on with its work.',
    ),
    cfg.FloatOpt(
        'drain_timeout_s',
        default=30.0,
        min=0.0,
        help='Seconds that a worker which was told to stop waits for its running actions; what is left is handed '
        'back and continued by other workers.',
    ),
]


@dataclass(frozen=True, slots=True)
class WorkerSettings:
    """What a worker process needs to know. See the options of the same names.

    `sweep_interval_s`, `heartbeat_interval_s`, `lease_s`, `creation_settles_s`, `dispatch_window` and
    `max_batch_nodes` are those of the engine, so that they cannot differ.
    """

    workers: int = 1
    threads: int = 8
    max_inline_nodes: int = 16
    poll_interval_min_s: float = 0.2
    poll_interval_max_s: float = 30.0
    park_after_s: float = 2.0
    transient_attempts: int = 5
    cancel_grace_s: float = 10.0
    max_stuck_threads: int = 8
    drain_timeout_s: float = 30.0
    sweep_interval_s: float = 5.0
    heartbeat_interval_s: float = 5.0
    lease_s: float = 30.0
    creation_settles_s: float = 60.0
    dispatch_window: int = DISPATCH_WINDOW
    max_batch_nodes: int = MAX_BATCH_NODES
