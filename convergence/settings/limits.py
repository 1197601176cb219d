"""Settings of the quotas of a project."""

from __future__ import annotations

from dataclasses import dataclass

from convergence.settings.declaring import option


@dataclass(frozen=True, slots=True)
class LimitSettings:
    """The section ``limits``. None: no limit."""

    max_template_bytes: int = option(4194304, 'Maximum size of a template in bytes.', min=1)
    max_resources_per_stack: int | None = option(
        10000,
        'Maximum number of resources of one stack, including those of its nested stacks. -1: no limit.',
        min=-1,
        unlimited=-1,
    )
    max_nested_stack_depth: int = option(
        5, 'Maximum depth of nested stacks below a root stack. 0: no nested stacks.', min=0
    )
    max_stacks_per_project: int | None = option(
        512, 'Maximum number of stacks of one project. -1: no limit.', min=-1, unlimited=-1
    )
    max_events_per_stack: int | None = option(
        1000,
        'Maximum number of events stored for one stack. The oldest are removed first. -1: no limit.',
        min=-1,
        unlimited=-1,
    )
    max_operations_per_stack: int | None = option(
        100,
        'Maximum number of operations stored in the history of one stack. The oldest are removed first. -1: no limit.',
        min=-1,
        unlimited=-1,
    )
    max_stored_bytes: int = option(
        1048576,
        'Maximum size in bytes, as JSON, of each kind of data of one resource: its properties, its metadata, each '
        'attribute, its private data. A process that reads them needs about twenty times as much memory.',
        min=1024,
    )
    max_input_bytes: int = option(
        33554432,
        'Maximum size in bytes, as stored, of all attributes that one resource reads from other resources. A worker '
        'thread holds all of them at once, in about ten times as much memory.',
        min=1048576,
    )
    max_signal_bytes: int = option(
        1048576,
        'Maximum size in bytes, as stored, of all signals of one resource. Further signals are refused. Each request '
        'that shows the metadata of the resource, and each poll that waits for its signals, reads all of them.',
        min=1024,
    )
    max_snapshots_per_stack: int | None = option(
        32, 'Maximum number of snapshots of one stack. -1: no limit.', min=-1, unlimited=-1
    )
    deleted_stacks_days: int | None = option(
        30,
        'Days during which users can still show a deleted stack; then its rows are removed. -1: for ever.',
        min=-1,
        unlimited=-1,
    )
    stack_timeout_mins: int = option(
        60, 'Minutes after which an operation on a stack fails, if the request sets no limit of its own.', min=1
    )
