"""What is amiss in the cloud with a stack whose creations may have got lost.

Nothing here asks the engine what it has made: objects, doubles and orphans are counted in the cloud.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence

from tests.chaos.installation import AWAY, Installation
from tests.functional.cloud import Goal, Object

UNTOLD = frozenset({'Kind::Neither', 'Kind::AsyncNeither'})
"""Types of which nobody can tell what a lost creation has made: that has to be said, and the object stays."""


def amiss(installation: Installation, stack_id: str, wanted: Goal, kinds: Mapping[str, str]) -> list[str]:
    """What of the cloud is not as it should be; nothing where all is.

    :param wanted: what the stack is to be; nothing once it is deleted.
    :param kinds: the type of each resource that the stack ever had.
    """
    name = installation.row(stack_id).name
    objects, rows = installation.cloud.objects(name), installation.rows(stack_id)
    known = {row.physical_id for row in rows}
    unknown = [each for each in objects if each.id not in known]
    wrong = [f'{each} was made twice under one token' for each in installation.cloud.doubles(name)]
    wrong += [f'{row.name} is held by {row.owner}' for row in rows if row.owner is not None]
    for each in unknown:
        if kinds[each.name] not in UNTOLD:
            wrong.append(f'{each.name} ({kinds[each.name]}, {each.id}) is forgotten')
        else:
            wrong += [f'{each.name} ({kinds[each.name]}): {gap}' for gap in _untold(installation, stack_id, each)]
    real = sorted((each.name, each.value, each.place) for each in objects if each.id in known)
    expected = sorted((key, str(each.get('value', '')), str(each.get('place', ''))) for key, each in wanted.items())
    wrong += [f'{each} is not wanted' for each in _without(real, expected)]
    wrong += [f'{each} is missing' for each in _without(expected, real)]
    return sorted(wrong)


def orphans(installation: Installation, stack_id: str) -> list[Object]:
    """Objects of a stack that none of its rows knows."""
    known = {row.physical_id for row in installation.rows(stack_id)}
    return [each for each in installation.cloud.objects(installation.row(stack_id).name) if each.id not in known]


def _untold(installation: Installation, stack_id: str, orphan: Object) -> list[str]:
    """Where nobody was told of an object that stays."""
    while True:
        try:
            reasons = [each.reason for each in installation.reader.events(stack_id)]
            break
        except AWAY:
            continue
    missing = []
    if not any(orphan.token in (reason or '') for reason in reasons):
        missing.append(f'no event tells of {orphan.id}')
    warned = (line for line in installation.cluster.logs().splitlines() if 'WARNING' in line)
    if not any(orphan.token in line for line in warned):
        missing.append(f'no warning tells of {orphan.id}')
    return missing


def _without(
    some: Sequence[tuple[str, str, str]], others: Sequence[tuple[str, str, str]]
) -> list[tuple[str, str, str]]:
    return sorted((Counter(some) - Counter(others)).elements())
