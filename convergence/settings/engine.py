"""Settings of the engine, its dispatcher and its sweeper."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from convergence.core.model import DISPATCH_WINDOW, MAX_BATCH_NODES
from convergence.settings.declaring import option


@dataclass(frozen=True, slots=True)
class EngineSettings:
    """The section ``engine``."""

    workers: int = option(1, 'Number of engine processes that convergence-engine starts.', min=1)
    threads: int = option(8, 'Number of requests that each engine process serves at the same time.', min=1)
    sweep_interval_s: float = option(
        5.0,
        'Seconds between two sweeps. The sweeper finishes the work of lost messages and dead processes, so the '
        'interval bounds the delay that they cause. The sweeper requeues a READY node that no worker has claimed '
        'after the same time, or after lease_s while every worker is full.',
        min=0.05,
    )
    heartbeat_interval_s: float = option(5.0, 'Seconds between two heartbeats of a process.', min=0.05)
    lease_s: float = option(
        30.0,
        'Seconds without a heartbeat after which a process counts as dead and other processes take over its work. Set '
        'the same value for all processes, more than twice heartbeat_interval_s. The clock of the database measures '
        'them.',
        min=0.2,
    )
    stall_after_s: float = option(
        300.0,
        'Seconds without progress after which an operation is reported as stalled: by an event, in the status reason '
        'of the stack and in the log. The operation continues.',
        min=1.0,
    )
    progress_interval_s: float = option(
        60.0,
        'Seconds between two progress events of an operation. Each event names the finished part, the nodes that the '
        'operation waits for, and since when. After ten events the interval is a tenth of the time so far, so a day '
        'has about sixty events.',
        min=1.0,
    )
    repair_attempts: int = option(
        5,
        'Number of consecutive repairs of an object, under the drift policy repair, before the engine gives the object '
        'up because another program keeps changing it. A stack is given up after as many consecutive failed repairs.',
        min=1,
    )
    repair_pause_s: float = option(
        10.0,
        'Seconds after the first repair of an object, or after the first failed one, before the next repair may begin. '
        'Each further pause is twice as long, up to an hour.',
        min=0.0,
    )
    create_ambiguity_s: float = option(
        60.0,
        'Seconds after the last heartbeat of a dead worker during which an interrupted creation may still make an '
        'object. The engine searches for the object that long before it counts the resource as deleted. Applies to '
        'resource types without create_ambiguity_s of their own.',
        min=0.0,
        deprecated_name='creation_settles_s',
    )
    dispatch_window: int = option(
        DISPATCH_WINDOW,
        'Maximum number of nodes of one stack that are dispatched to workers and not yet claimed. The rest waits in '
        'the database, where a restart loses nothing and small stacks get their turn beside a large one.',
        min=1,
    )
    max_batch_nodes: int = option(
        MAX_BATCH_NODES,
        'Maximum number of READY nodes of one stack per check_resource message. Not more than a worker has threads. 1 '
        'disables batching.',
        min=1,
        deprecated_name='nodes_in_a_message',
    )
    cancel_patience_s: float = option(
        600.0,
        'Seconds that running actions have to finish after a cancel without rollback, while no other action begins. '
        'Then they are stopped. 0: they are stopped at once, as by "cancel --now".',
        min=0.0,
    )
    question_timeout_s: float = option(
        20.0,
        'Seconds that a worker has to query services for a preview or for the validation of a template. Later answers '
        'are reported as not known. Limited to half of [transport] response_timeout_s. Attributes that are read for '
        'one request have at most 5 s.',
        min=0.1,
    )
    enable_stack_abandon: bool = option(
        False, 'Allow users to abandon a stack: the stack is forgotten and all its objects stay.'
    )
    enable_stack_adopt: bool = option(
        False,
        'Allow users to adopt a stack: to make one from the data of an abandoned stack and the objects that exist. Any '
        'user who may create stacks can then delete any object whose id the user knows.',
    )
    hidden_stack_tags: Sequence[str] = option(
        ['data-processing-cluster'],
        'Tags that hide a stack: lists and counts leave it out unless the request sets show_hidden. Services that keep '
        'stacks of their own in the projects of users mark them with such a tag. Empty: no stack is hidden.',
        sample='data-processing-cluster',
    )
