"""The engine, its dispatcher and its sweeper."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from oslo_config import cfg

from convergence.core.model import DISPATCH_WINDOW, MAX_BATCH_NODES

OPTIONS: list[cfg.Opt] = [
    cfg.IntOpt('workers', default=1, min=1, help='Engine processes that convergence-engine starts.'),
    cfg.IntOpt('threads', default=8, min=1, help='Requests that each engine process serves at the same time.'),
    cfg.FloatOpt(
        'sweep_interval_s',
        default=5.0,
        min=0.05,
        help='Seconds between two sweeps. The sweeper finds whatever a lost message or a dead process left undone, '
        'so this bounds how long anything can be late. A node that nobody has claimed is told of again after as long; '
        'while every worker has more than it can begin, after lease_s.',
    ),
    cfg.FloatOpt('heartbeat_interval_s', default=5.0, min=0.05, help='Seconds between two signs of life of a process.'),
    cfg.FloatOpt(
        'lease_s',
        default=30.0,
        min=0.2,
        help='Seconds without a sign of life after which a process counts as dead and its work is taken over. Must '
        'be the same everywhere, and more than twice heartbeat_interval_s. Measured by the clock of the database.',
    ),
    cfg.FloatOpt(
        'stall_after_s',
        default=300.0,
        min=1.0,
        help='Seconds in which no step of an operation begins or ends, after which the stack is reported as making no '
        'progress: by an event, in its status reason and in the log. It goes on all the same.',
    ),
    cfg.FloatOpt(
        'progress_interval_s',
        default=60.0,
        min=1.0,
        help='Seconds after which an event of the stack tells how far an operation is, what it waits for and since '
        'when. The pauses grow: after ten of them each is a tenth of the time so far, so a day has some sixty.',
    ),
    cfg.IntOpt(
        'repair_attempts',
        default=5,
        min=1,
        help='How often in a row an object that is found changed outside of its stack is put right, where that is the '
        'policy of the stack, before it is given up: somebody else is changing it. So many repairs of a stack in a '
        'row may fail, too.',
    ),
    cfg.FloatOpt(
        'repair_pause_s',
        default=10.0,
        min=0.0,
        help='Seconds after the first repair of an object, or after the first one that has failed, before the next one '
        'may begin; twice as many each time, up to an hour.',
    ),
    cfg.FloatOpt(
        'creation_settles_s',
        default=60.0,
        min=0.0,
        help='Seconds that a creation may still have an effect when the worker that began it gives no sign of life '
        'any more. For so long what it has made is looked for before its resource counts as deleted. Only for resource '
        'types that do not say it themselves (create_settles_s).',
    ),
    cfg.IntOpt(
        'dispatch_window',
        default=DISPATCH_WINDOW,
        min=1,
        help='Nodes of one stack that may be announced to workers and not yet taken. Keeps a long backlog in the '
        'database, where nothing can be lost, and lets small stacks through beside a large one.',
    ),
    cfg.IntOpt(
        'max_batch_nodes',
        default=MAX_BATCH_NODES,
        min=1,
        deprecated_name='nodes_in_a_message',
        help='Maximum number of ready nodes of one stack per check_resource message. 1 disables batching. More than a '
        'worker has threads makes nodes wait.',
    ),
    cfg.FloatOpt(
        'cancel_patience_s',
        default=600.0,
        min=0.0,
        help='Seconds that what runs has, after a cancel without rollback, to come to its end by itself, while nothing '
        'else begins; then it is stopped. 0: it is stopped at once, as "cancel --now" does.',
    ),
    cfg.FloatOpt(
        'question_timeout_s',
        default=20.0,
        min=0.1,
        help='Seconds that a worker has to ask services for a preview, or for the validation of a template: whether '
        'something can be made, and what an update would do. What is not known by then is said not to be known. At '
        'most half of [transport] response_timeout_s. Attributes that are read when somebody looks have 5 s at most.',
    ),
    cfg.BoolOpt(
        'enable_stack_abandon',
        default=False,
        help='Whether a stack may be abandoned: forgotten, while all that it has made stays.',
    ),
    cfg.BoolOpt(
        'enable_stack_adopt',
        default=False,
        help='Whether a stack may be adopted: made from the data of an abandoned one, with the objects that are there. '
        'Whoever may create stacks can then have any object deleted whose id is known.',
    ),
    cfg.ListOpt(
        'hidden_stack_tags',
        default=['data-processing-cluster'],
        sample_default='data-processing-cluster',
        help='Stacks with any of these tags are not listed or counted unless that is asked for (show_hidden). Services '
        'that keep stacks of their own in the projects of users mark them so. Empty: none is hidden.',
    ),
]


@dataclass(frozen=True, slots=True)
class EngineSettings:
    """What an engine process, its dispatcher and its sweeper need to know. See the options of the same names."""

    workers: int = 1
    threads: int = 8
    sweep_interval_s: float = 5.0
    heartbeat_interval_s: float = 5.0
    lease_s: float = 30.0
    stall_after_s: float = 300.0
    progress_interval_s: float = 60.0
    repair_attempts: int = 5
    repair_pause_s: float = 10.0
    creation_settles_s: float = 60.0
    dispatch_window: int = DISPATCH_WINDOW
    max_batch_nodes: int = MAX_BATCH_NODES
    cancel_patience_s: float = 600.0
    question_timeout_s: float = 20.0
    enable_stack_abandon: bool = False
    enable_stack_adopt: bool = False
    hidden_stack_tags: Sequence[str] = field(default_factory=lambda: ['data-processing-cluster'])
