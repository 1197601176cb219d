"""Messages are lost: some, many, all. Stacks are late then, and nothing else."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

from tests.chaos.failpoints import Do, Rule
from tests.chaos.goals import counted, differences
from tests.chaos.installation import Broken, Installation
from tests.functional.cloud import Goal

SHARES = (0.0, 0.01, 0.1, 1.0)
"""Of all casts. Calls, by which clients ask, are answered: those who do not get an answer ask again."""


@dataclass(frozen=True)
class Lost:
    """What came of one operation.

    :param count: how many messages it would have sent.
    """

    share: float
    operation: str
    seconds: float
    count: int
    problem: str


def tree(size: int, generation: int = 0) -> dict[str, dict[str, Any]]:
    """So many resources, each after one of the others; a fourth of them is another in each generation."""
    goal: dict[str, dict[str, Any]] = {}
    for number in range(size):
        value = str(generation if number % 4 == generation % 4 else 0)
        goal[f'r{number}'] = {'value': value, 'after': [f'r{(number - 1) // 4}'] if number else []}
    return goal


def run(
    installation: Installation, say: Callable[[str], object], size: int = 40, shares: Iterable[float] = SHARES
) -> list[Lost]:
    """Create, update and delete a stack at each share."""
    found = []
    for share in shares:
        name = f'lost-{round(share * 100)}'
        rule = Rule(name, 'before send of *', Do.LOSE, share=share)
        installation.points.set(*([rule] if share else []))
        stack = ''
        for operation, goal in (('create', tree(size)), ('update', tree(size, 1)), ('delete', {})):
            before, began = len(installation.points.passed()), time.monotonic()
            if operation == 'create':
                stack = installation.create(name, counted(goal))
            elif operation == 'update':
                installation.update(stack, counted(goal))
            else:
                installation.delete(stack)
            problem = _end(installation, stack, f'{operation.upper()}_COMPLETE', goal)
            seconds = time.monotonic() - began
            sends = [each for each in installation.points.passed(before) if each.startswith('before send')]
            found.append(Lost(share, operation, seconds, len(sends), problem))
            say(f'{share:.0%} lost, {operation} of {size}: {problem or "complete"} after {seconds:.1f} s')
            if problem:
                break
    installation.points.set()
    return found


def _end(installation: Installation, stack: str, wanted: str, goal: Goal) -> str:
    try:
        state = installation.ended(stack)
    except Broken as broken:
        return str(broken)
    if state != wanted:
        return f'{state} instead of {wanted}'
    return '; '.join(differences(installation, stack, goal))
