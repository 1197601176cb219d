"""Compares the preview of an update with its result, resource by resource. Pure functions."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from enum import StrEnum

from convergence.documents import Document


class ResourceOutcome(StrEnum):
    """The effect of an update on a resource."""

    KEPT = 'kept'
    UPDATED = 'updated in place'
    REPLACED = 'replaced'
    ADDED = 'added'
    REMOVED = 'removed'


_ANNOUNCED = {
    'unchanged': ResourceOutcome.KEPT,
    'updated': ResourceOutcome.UPDATED,
    'replaced': ResourceOutcome.REPLACED,
    'added': ResourceOutcome.ADDED,
    'deleted': ResourceOutcome.REMOVED,
}
"""The keys in the answer of `preview_update_stack`."""


def announced(preview: Mapping[str, Iterable[Document]]) -> dict[str, ResourceOutcome]:
    """Return the effect on each resource that a preview lists, by name."""
    return {str(one['resource_name']): change for key, change in _ANNOUNCED.items() for one in preview.get(key, ())}


def happened(
    before: Iterable[Document], after: Iterable[Document], events: Iterable[Document], stack_id: str
) -> dict[str, ResourceOutcome]:
    """Return the effect that an update had on each resource, by name.

    :param before: the resources before the update; `after`: the resources when it was complete.
    :param events: the events of the update; those of the stack itself have the stack's id.
    """
    old = {str(one['resource_name']): one['physical_resource_id'] for one in before}
    new = {str(one['resource_name']): one['physical_resource_id'] for one in after}
    updated = {
        str(event['resource_name'])
        for event in events
        if event['resource_status'] == 'UPDATE_COMPLETE' and event['physical_resource_id'] != stack_id
    }
    changes: dict[str, ResourceOutcome] = {}
    for name in (*new, *(name for name in old if name not in new)):
        if name not in old:
            changes[name] = ResourceOutcome.ADDED
        elif name not in new:
            changes[name] = ResourceOutcome.REMOVED
        elif old[name] != new[name]:
            changes[name] = ResourceOutcome.REPLACED
        else:
            changes[name] = ResourceOutcome.UPDATED if name in updated else ResourceOutcome.KEPT
    return changes
