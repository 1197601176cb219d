"""The plan of an operation, and the file in which it is saved."""

from __future__ import annotations

import json
import os
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from enum import StrEnum
from pathlib import Path
from typing import Any

from convergence.cli.exits import Refused, UsageMistake
from convergence.documents import Document

FORMAT = 'convergence-plan/1'


class PlannedAction(StrEnum):
    """The effect on a resource, in the order of display. Removals come last, so that they stay visible."""

    UNCHANGED = 'unchanged'
    ADDED = 'added'
    UPDATED = 'updated'
    REPLACED = 'replaced'
    LEFT = 'left'
    DELETED = 'deleted'


class PlannedOperation(StrEnum):
    """The planned operation."""

    CREATE = 'create'
    UPDATE = 'update'
    DELETE = 'delete'


@dataclass(frozen=True, slots=True)
class PropertyChange:
    """The change of one property. `needs_new_object`: True if the change replaces the object."""

    name: str
    before: Any
    after: Any
    needs_new_object: bool = False


@dataclass(frozen=True, slots=True)
class PlannedResource:
    """The planned effect on one resource.

    :param path: the names of the resources that lead to it, its own name last.
    :param certain: True if the effect is certain; otherwise it is the largest possible one.
    :param reason: the cause; empty if it is obvious.
    :param changed_outside: the drift of its object; empty without drift.
    """

    name: str
    type: str
    fate: PlannedAction
    certain: bool = True
    reason: str = ''
    properties: tuple[PropertyChange, ...] = ()
    path: tuple[str, ...] = ()
    changed_outside: str = ''

    def __post_init__(self) -> None:
        if not self.path:
            object.__setattr__(self, 'path', (self.name,))


@dataclass(frozen=True, slots=True)
class Plan:
    """The planned effects of an operation on a stack.

    :param base: entity tag of the stack at the time of the plan; empty for a creation.
    """

    operation: PlannedOperation
    stack_name: str
    changes: tuple[PlannedResource, ...]
    base: str = ''

    @property
    def counts(self) -> dict[PlannedAction, int]:
        """Return the number of resources for each effect."""
        return {fate: sum(change.fate is fate for change in self.changes) for fate in PlannedAction}

    @property
    def summary(self) -> str:
        """Return a summary in one sentence."""
        counts = self.counts
        verbs = (
            (PlannedAction.ADDED, 'add'),
            (PlannedAction.UPDATED, 'update'),
            (PlannedAction.REPLACED, 'replace'),
            (PlannedAction.DELETED, 'remove'),
        )
        counted = ', '.join(f'{counts[fate]} to {verb}' for fate, verb in verbs)
        counted += f', {counts[PlannedAction.LEFT]} to keep unmanaged' if counts[PlannedAction.LEFT] else ''
        possible = sum(not change.certain for change in self.changes)
        open_ = f' ({possible} only possibly)' if possible else ''
        return f'Plan: {counted}{open_}; {counts[PlannedAction.UNCHANGED]} unchanged.'

    def document(self) -> dict[str, Any]:
        """The plan as JSON."""
        return {
            'operation': self.operation.value,
            'stack_name': self.stack_name,
            'changes': [_change_document(change) for change in self.changes],
            'counts': {fate.value: count for fate, count in self.counts.items()},
            'summary': self.summary,
        }


def of_creation(stack_name: str, resources: Iterable[Document]) -> Plan:
    """Return the plan of a creation.

    :param resources: the resources in the answer of a preview.
    """
    changes = tuple(
        PlannedResource(
            str(each['resource_name']),
            str(each['resource_type']),
            PlannedAction.ADDED,
            reason=str(each.get('reason') or ''),
            properties=tuple(
                PropertyChange(name, None, each['properties'][name]) for name in each.get('given_properties') or ()
            ),
            path=_path(each),
        )
        for each in resources
    )
    return Plan(PlannedOperation.CREATE, stack_name, changes)


def of_update(stack_name: str, lists: Mapping[str, Iterable[Document]], base: str) -> Plan:
    """Return the plan of an update.

    :param lists: the resources in the answer of a preview, by effect.
    """
    changes = [_changed(each, fate) for fate in PlannedAction for each in lists.get(fate.value, ())]
    return Plan(PlannedOperation.UPDATE, stack_name, tuple(changes), base)


def of_deletion(stack_name: str, resources: Iterable[Document], base: str, leave: Collection[str] = ()) -> Plan:
    """Return the plan of a deletion.

    :param leave: names of the resources whose objects are kept.
    :raises Refused: the stack has no resource of such a name.
    """
    changes = tuple(_deleted(each, _path(each)[0] in leave) for each in resources)
    names = sorted(change.name for change in changes if len(change.path) == 1)
    missing = sorted(set(leave) - set(names))
    if missing:
        raise Refused(
            f'--leave: stack {stack_name} has no resource {", ".join(missing)}. It has: {", ".join(names) or "none"}.'
        )
    return Plan(PlannedOperation.DELETE, stack_name, changes, base)


def _deleted(document: Document, stays: bool) -> PlannedResource:
    physical_id = document.get('physical_resource_id')
    reason = f'physical id {physical_id}' if stays and physical_id else ''
    fate = PlannedAction.LEFT if stays else PlannedAction.DELETED
    name, kind = str(document['resource_name']), str(document['resource_type'])
    return PlannedResource(name, kind, fate, reason=reason, path=_path(document))


def _path(document: Document) -> tuple[str, ...]:
    return tuple(str(document.get('path') or document['resource_name']).split('/'))


def _changed(document: Document, fate: PlannedAction) -> PlannedResource:
    if fate is PlannedAction.ADDED:
        values = (document.get('properties') or {}).items()
        properties = [PropertyChange(name, None, value) for name, value in values]
    else:
        properties = [
            PropertyChange(each['property'], each['before'], each['after'], bool(each.get('needs_new_object')))
            for each in document.get('property_changes') or ()
        ]
    return PlannedResource(
        str(document['resource_name']),
        str(document['resource_type']),
        fate,
        document.get('certainty', 'certain') == 'certain',
        str(document.get('reason') or ''),
        tuple(properties),
        _path(document),
        _outside(document.get('changed_outside') or {}),
    )


def _outside(document: Document) -> str:
    return f'{document["reason"] or document["state"]}, since {document["since"]}' if document else ''


def _change_document(change: PlannedResource) -> dict[str, Any]:
    shown = asdict(change)
    shown['fate'] = change.fate.value
    shown['path'] = '/'.join(change.path)
    shown['properties'] = [asdict(each) for each in change.properties]
    return shown


# --- the file -------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Saved:
    """A saved plan with the request that applies it.

    :param url: the server and project of the plan.
    :param stack_id: empty for a creation.
    :param method: the HTTP method of the request; `body`: its body.
    """

    operation: PlannedOperation
    url: str
    stack_name: str
    stack_id: str
    base: str
    method: str
    body: Mapping[str, Any]
    summary: str


def save(saved: Saved, path: Path) -> None:
    """Write a plan to a file that only its owner can read. It holds the values of all parameters.

    :raises UsageMistake: it cannot be written.
    """
    text = json.dumps({'format': FORMAT, **asdict(saved)}, indent=1, ensure_ascii=False)
    try:
        path.unlink(missing_ok=True)
        with open(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), 'w', encoding='utf-8') as file:
            file.write(text)
    except OSError as error:
        raise UsageMistake(f'The plan cannot be written to {path}: {error.strerror}') from None


def load(path: Path) -> Saved:
    """Read a plan.

    :raises UsageMistake: the file cannot be read, or is not a plan.
    """
    try:
        document = json.loads(path.read_text(encoding='utf-8'))
        if document.pop('format') != FORMAT:
            raise ValueError
        return Saved(**{**document, 'operation': PlannedOperation(document['operation'])})
    except OSError as error:
        raise UsageMistake(f'{path} cannot be read: {error.strerror}') from None
    except (ValueError, TypeError, KeyError, AttributeError):
        raise UsageMistake(f'{path} is not a plan of this version. Create one with "--plan FILE".') from None


def ordered(changes: Sequence[PlannedResource]) -> list[PlannedResource]:
    """Return the changes in the order of display: below their nested stack, removals last.

    Unchanged resources are left out unless they contain changes or have drifted.
    """
    order = list(PlannedAction)
    below: dict[tuple[str, ...], list[PlannedResource]] = {}
    for change in changes:
        below.setdefault(change.path[:-1], []).append(change)
    shown: list[PlannedResource] = []

    def walk(place: tuple[str, ...]) -> None:
        for change in sorted(below.get(place, ()), key=lambda each: order.index(each.fate)):
            here = len(shown)
            shown.append(change)
            walk(change.path)
            is_still = change.fate is PlannedAction.UNCHANGED and not change.changed_outside
            if is_still and len(shown) == here + 1:
                shown.pop()

    walk(())
    return shown
