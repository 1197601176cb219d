"""Settings of the workers."""

from __future__ import annotations

from dataclasses import dataclass

from convergence.settings.declaring import option, shared
from convergence.settings.engine import EngineSettings


@dataclass(frozen=True, slots=True)
class WorkerSettings:
    """The section ``worker``, and the options of ``engine`` that hold for workers too."""

    workers: int = option(1, 'Number of worker processes that convergence-worker starts.', min=1)
    threads: int = option(8, 'Number of resources that each worker process works on at the same time.', min=1)
    max_inline_nodes: int = option(
        16,
        'Maximum number of nodes of one operation that a thread does one after the other without a message, while each '
        'makes the next one READY and no other operation waits for a thread. 1 sends a message for every node.',
        min=1,
        deprecated_name='nodes_in_a_row',
    )
    poll_interval_min_s: float = option(0.2, 'Seconds before the first poll of a long action.', min=0.01)
    poll_interval_max_s: float = option(
        30.0, 'Maximum number of seconds between two polls. The interval of an action grows up to it.', min=0.01
    )
    park_after_s: float = option(
        2.0,
        'Seconds of polling after which an action is parked: it waits in its database row, holds no thread, and any '
        'worker continues it.',
        min=0.0,
    )
    transient_attempts: int = option(
        5,
        'Number of attempts at a call that raises TransientFailure, before its resource fails. A template or a '
        'resource type may set another number. The pause doubles after each attempt, within the poll intervals.',
        min=1,
    )
    cancel_grace_s: float = option(
        10.0,
        'Seconds that a cancelled action has to stop by itself. Then the worker releases its resource and leaves the '
        'call behind.',
        min=0.0,
    )
    max_stuck_threads: int = option(
        8,
        'Number of threads stuck in calls that do not return at which the worker process exits with code 1, for its '
        'supervisor to restart; other workers continue its work. Below that number, each stuck thread is replaced.',
        min=1,
    )
    drain_timeout_s: float = option(
        30.0,
        'Seconds that a stopping worker waits for its running actions. Then it releases the rest for other workers to '
        'continue.',
        min=0.0,
    )
    sweep_interval_s: float = shared('engine', EngineSettings, 'sweep_interval_s')
    heartbeat_interval_s: float = shared('engine', EngineSettings, 'heartbeat_interval_s')
    lease_s: float = shared('engine', EngineSettings, 'lease_s')
    create_ambiguity_s: float = shared('engine', EngineSettings, 'create_ambiguity_s')
    dispatch_window: int = shared('engine', EngineSettings, 'dispatch_window')
    max_batch_nodes: int = shared('engine', EngineSettings, 'max_batch_nodes')
