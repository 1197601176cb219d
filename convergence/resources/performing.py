"""Selects the hook for an action, and puts a snapshot before a deletion where the policy requires one."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from convergence.core.model import Action, DeletionPolicy, Json
from convergence.core.rows import Resource
from convergence.resources.contract import Answer, Call, InProgress, ObjectNotFound, ResourceType
from convergence.values import replace

_FIRST = 'snapshot_first'
"""Marks the progress of a deletion that is still busy with the snapshot that has to come before it."""


def perform(kind: ResourceType[Any], action: Action, call: Call[Any], snapshot_id: str) -> Answer:
    """Make the first call of an action in `convergence.core.model.PERFORMED`.

    :param snapshot_id: for a snapshot, its id.
    """
    match action:
        case Action.CHECK:
            return kind.check(call)
        case Action.SUSPEND:
            return kind.suspend(call)
        case Action.RESUME:
            return kind.resume(call)
        case Action.SNAPSHOT:
            return kind.snapshot(call, snapshot_id)
    raise AssertionError(f'{action} is not an action on unchanged objects')


def wants_snapshot_first(kind: ResourceType[Any], resource: Resource) -> bool:
    """Return True if a snapshot must be taken before the object is deleted."""
    definition = resource.definition
    return (
        definition is not None
        and definition.deletion_policy is DeletionPolicy.SNAPSHOT
        and kind.keeps_snapshots_of_deleted()
    )


def delete_after_snapshot(kind: ResourceType[Any], call: Call[Any]) -> Answer:
    """Begin to delete an object, by keeping what it is. The snapshot is named after the resource's row."""
    try:
        answer = kind.snapshot(call, call.resource_id)
    except ObjectNotFound:
        return kind.delete(call)  # nothing is there of which anything could be kept
    return _then_delete(kind, call, answer)


def poll_deletion(kind: ResourceType[Any], call: Call[Any], progress: Mapping[str, Json]) -> Answer:
    """Poll a deletion, be it still busy with its snapshot or not."""
    inner = progress.get(_FIRST)
    if not isinstance(inner, dict):
        return kind.poll(call, Action.DELETE, progress)
    return _then_delete(kind, call, kind.poll(call, Action.SNAPSHOT, inner))


def _then_delete(kind: ResourceType[Any], call: Call[Any], answer: Answer) -> Answer:
    if isinstance(answer, InProgress):
        return replace(answer, progress={_FIRST: dict(answer.progress)}, physical_id=None)
    return kind.delete(call)
