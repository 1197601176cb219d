"""Compares the objects that really exist with a goal: none is missing, none exists twice, none is left over."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from convergence_simulator.cloud.reality import NOBODY, PhysicalObject, Reality
from convergence_simulator.scenarios.templates import GetAtt, GetRes, Template


class Violation(AssertionError):
    """A rule is violated.

    :param rule: name of the rule, for example ``I1`` or ``end state``.
    """

    def __init__(self, rule: str, text: str) -> None:
        super().__init__(f'{rule}: {text}')
        self.rule = rule


def verify(
    reality: Reality, template: Template, stack_id: str | None = None, nested: Mapping[str, str] | None = None
) -> None:
    """Compare reality with a template.

    :param stack_id: compare only the objects of this stack.
    :param nested: ids of its nested stacks, by resource name; they are verified separately.
    :raises Violation: reality and template differ; the text says where.
    """
    things = [
        thing
        for thing in reality.objects.values()
        if stack_id in (None, thing.stack_id) and thing.stack_id != NOBODY and thing.id not in reality.untold
    ]
    by_name: dict[str, PhysicalObject] = {}
    for thing in things:
        if thing.name not in template.resources:
            raise Violation('end state', f'{thing.id} exists, but the goal contains no {thing.name}')
        if thing.name in by_name:
            raise Violation('end state', f'{thing.name} exists twice: {by_name[thing.name].id} and {thing.id}')
        by_name[thing.name] = thing
    by_name |= _of_others(reality, template)
    ids = {**{name: thing.id for name, thing in by_name.items()}, **(nested or {})}
    told = {name: thing.properties for name, thing in by_name.items()}
    told |= {name: wanted.properties for name, wanted in template.resources.items() if not wanted.is_thing}
    for name, wanted in template.resources.items():
        if not wanted.is_thing:
            continue
        if name not in by_name:
            raise Violation('end state', f'{name} does not exist')
        if wanted.external_id is not None:
            continue
        properties = {key: _resolve(value, told, ids) for key, value in wanted.properties.items()}
        if properties != by_name[name].properties and by_name[name].id not in reality.late:
            raise Violation('end state', f'{name} has {by_name[name].properties}, but should have {properties}')


def _of_others(reality: Reality, template: Template) -> dict[str, PhysicalObject]:
    """Return the objects that a template uses but that belong to others, by resource name."""
    keys = {name: wanted.external_id for name, wanted in template.resources.items() if wanted.external_id is not None}
    return {name: reality.objects[key] for name, key in keys.items() if key in reality.objects}


def verify_part(reality: Reality, template: Template, stack_id: str) -> str | None:
    """Return the first object that a template requires and that does not exist; None if all exist.

    Other objects may exist as well.

    :returns: a sentence about the missing object.
    """
    by_name: dict[str, list[PhysicalObject]] = {}
    for thing in reality.objects.values():
        if thing.stack_id == stack_id:
            by_name.setdefault(thing.name, []).append(thing)
    by_name |= {name: [thing] for name, thing in _of_others(reality, template).items()}
    newest = {name: things[-1] for name, things in by_name.items()}
    for name, wanted in template.resources.items():
        if not wanted.is_thing:
            continue
        if name not in by_name:
            return f'{name} does not exist'
        if wanted.external_id is not None:
            continue
        if any(isinstance(value, (GetRes, GetAtt)) for value in wanted.properties.values()):
            continue  # if several objects exist, `verify` decides later, when only one is left
        if all(thing.properties != wanted.properties for thing in by_name[name]):
            return f'{name} has {newest[name].properties}, but should have {wanted.properties}'
    return None


def _resolve(value: Any, told: Mapping[str, Mapping[str, Any]], ids: Mapping[str, str]) -> Any:
    if isinstance(value, GetRes):
        return ids.get(value.target_name)
    if isinstance(value, GetAtt):
        return told.get(value.target_name, {}).get(value.attr)
    if isinstance(value, dict):
        return {key: _resolve(item, told, ids) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [_resolve(item, told, ids) for item in value]
    return value
