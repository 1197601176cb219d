"""What stacks of the chaos runs are to be, and whether they are."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tests.chaos.installation import Installation
from tests.functional.cloud import Goal, template


def counted(goal: Goal, tag: str = '') -> str:
    """A template of resources whose polling is left to the engine."""
    return template({name: {'type': 'Test::Counted', **given} for name, given in goal.items()}, tag)


def _uses(name: str) -> dict[str, list[str]]:
    return {'get_attr': [name, 'value']}  # type: ignore[dict-item]


def twelve() -> dict[str, dict[str, Any]]:
    """A stack of twelve resources: wide in the middle, a chain before it and after it."""
    goal: dict[str, dict[str, Any]] = {'net': {'value': 'n1'}, 'subnet': {'value': _uses('net'), 'place': 'one'}}
    for number in '123':
        goal[f'port{number}'] = {'value': _uses('subnet')}
        goal[f'server{number}'] = {'value': 's1', 'place': 'one', 'after': [f'port{number}']}
    goal['volume'] = {'value': 'v1'}
    goal['spare'] = {'value': 'x1'}
    goal['attachment'] = {'value': 'a1', 'after': ['server1', 'volume']}
    goal['answer'] = {'value': _uses('net'), 'after': ['server1', 'server2', 'server3', 'attachment']}
    return goal


def changed() -> dict[str, dict[str, Any]]:
    """The same after an update: one changed in place, two replaced, one gone, one new."""
    goal = twelve()
    goal['net'] = {'value': 'n2'}
    goal['subnet'] = {**goal['subnet'], 'place': 'two'}
    goal['server2'] = {**goal['server2'], 'place': 'two', 'value': 's2'}
    del goal['spare']
    goal['extra'] = {'value': 'e1', 'after': ['volume']}
    return goal


def resolved(goal: Goal) -> dict[str, tuple[str, str]]:
    """Value and place of each resource."""

    def value(name: str) -> str:
        given = goal[name].get('value', '')
        return value(given['get_attr'][0]) if isinstance(given, Mapping) else given

    return {name: (value(name), str(goal[name].get('place', ''))) for name in goal}


def differences(installation: Installation, stack_id: str, goal: Goal | None) -> list[str]:
    """Where reality, the rows and the goal do not agree; nothing where they do.

    :param goal: None where it is not known what became of the stack: then every object must have a row all the same.
    """
    name = installation.row(stack_id).name
    objects, rows = installation.cloud.objects(name), installation.rows(stack_id)
    found = [f'{each} was made twice' for each in installation.cloud.doubles(name)]
    known = {row.physical_id for row in rows}
    found += [f'{each.name} ({each.id}) exists and no row knows of it' for each in objects if each.id not in known]
    found += [f'{row.name} is held by {row.owner}' for row in rows if row.owner is not None]
    if goal is None:
        # What was in the middle is told that nobody wants it any more; until then a later operation would take it up.
        return sorted([*found, *(f'{row.name} is in progress' for row in rows if row.status.value == 'IN_PROGRESS')])
    existing = {each.id for each in objects}
    found += [f'{row.name} has a row and no object' for row in rows if row.physical_id not in existing]
    found += [f'{row.name} is {row.action.value}_{row.status.value}' for row in rows if row.status.value != 'COMPLETE']
    real, wanted = sorted((each.name, each.value, each.place) for each in objects), resolved(goal)
    expected = sorted((name, *pair) for name, pair in wanted.items())
    found += [f'{each} is not wanted' for each in real if each not in expected]
    found += [f'{each} is missing' for each in expected if each not in real]
    if len(real) != len(expected):
        found.append(f'{len(real)} objects instead of {len(expected)}')
    return sorted(found)
