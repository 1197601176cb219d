"""What a project may use."""

from __future__ import annotations

from dataclasses import dataclass

from oslo_config import cfg

OPTIONS: list[cfg.Opt] = [
    cfg.IntOpt('max_template_bytes', default=4194304, min=1, help='Largest size of a template in bytes.'),
    cfg.IntOpt(
        'max_resources_per_stack',
        default=10000,
        min=-1,
        help='Most resources of one stack, with those of all stacks that are nested in it. -1: no limit.',
    ),
    cfg.IntOpt(
        'max_nested_stack_depth',
        default=5,
        min=0,
        help='In how many stacks, one in the other, a stack may be. 0: no nested stacks.',
    ),
    cfg.IntOpt('max_stacks_per_project', default=512, min=-1, help='Most stacks of one project. -1: no limit.'),
    cfg.IntOpt(
        'max_events_per_stack',
        default=1000,
        min=-1,
        help='Most events kept for one stack; the oldest are removed first. -1: no limit.',
    ),
    cfg.IntOpt(
        'max_operations_per_stack',
        default=100,
        min=-1,
        help='Most operations kept in the history of one stack; the oldest are removed first. -1: no limit.',
    ),
    cfg.IntOpt(
        'max_stored_bytes',
        default=1048576,
        min=1024,
        help='Largest size in bytes, as JSON, of what one resource may store of each kind: its properties, its '
        'metadata, each attribute, its private data. Whoever reads it needs some twenty times as much memory.',
    ),
    cfg.IntOpt(
        'max_input_bytes',
        default=33554432,
        min=1048576,
        help='Largest size in bytes, as it is stored, of what one resource may take from others in all: the attributes '
        'that they hand on. A thread of a worker holds all of it at once, in some ten times as much memory.',
    ),
    cfg.IntOpt(
        'max_signal_bytes',
        default=1048576,
        min=1024,
        help='Largest size in bytes, as it is stored, of what all signals say that one resource receives; what comes '
        'after that is refused. Whoever shows the metadata of the resource, or waits for its signals, reads all of it.',
    ),
    cfg.IntOpt('max_snapshots_per_stack', default=32, min=-1, help='Most snapshots of one stack. -1: no limit.'),
    cfg.IntOpt(
        'deleted_stacks_days',
        default=30,
        min=-1,
        help='Days for which a deleted stack can still be shown; then all that is left of it is removed. -1: for ever.',
    ),
    cfg.IntOpt(
        'stack_timeout_mins',
        default=60,
        min=1,
        help='Minutes after which an operation on a stack fails, where the request sets no limit of its own.',
    ),
]


@dataclass(frozen=True, slots=True)
class LimitSettings:
    """What a project may use. None: no limit."""

    max_template_bytes: int = 4194304
    max_resources_per_stack: int | None = 10000
    max_nested_stack_depth: int = 5
    max_stacks_per_project: int | None = 512
    max_events_per_stack: int | None = 1000
    max_operations_per_stack: int | None = 100
    max_snapshots_per_stack: int | None = 32
    deleted_stacks_days: int | None = 30
    stack_timeout_mins: int = 60
    max_stored_bytes: int = 1048576
    max_input_bytes: int = 33554432
    max_signal_bytes: int = 1048576
