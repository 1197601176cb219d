"""Storms: generated programs in which each operation begins before the earlier ones are finished.

They test stores with real concurrency: planning, claims, results and the arrival of several dependencies at one node
meet all the time.
"""

from __future__ import annotations

import random
import re
from pathlib import Path

from convergence_simulator.scenarios.templates import GetAtt, GetRes, RsrcDef, Template

NAME = re.compile(r'storm:(\d{1,12})')
"""Name of a storm in place of a file name."""

WIDTH = 7
"""Maximum number of resources on which one resource depends."""
FLURRIES = 0.5
"""Share of the storms that end with a fast sequence of updates."""


def storm_of(path: Path) -> int | None:
    """Return the number of the storm with this name; None for a file."""
    match = NAME.fullmatch(str(path))
    return int(match[1]) if match else None


def storm(number: int) -> str:
    """Generate the storm of a number, as the text of a scenario file."""
    chance = random.Random(f'storm {number}')
    templates = [_template(chance) for _ in range(3)]
    lines = [f'"""Storm {number}."""', '']
    lines += [f't{index} = {template!r}' for index, template in enumerate(templates)]
    stacks = ['s', 'other'][: chance.randint(1, 2)]
    lines += [f"engine.create_stack('{name}', t{chance.randrange(3)})" for name in stacks]
    for _ in range(chance.randint(4, 8)):
        name, goal = chance.choice(stacks), chance.randrange(3)
        if chance.random() < 0.4:
            lines.append('engine.settle()')
        lines.append(f"engine.update_stack('{name}', t{goal})")
        if chance.random() < 0.6:  # two updates that return to the same goal, while the first one has just begun
            other = (goal + chance.choice([1, 2])) % 3
            if chance.random() < 0.7:
                lines.append('engine.settle()')
            lines.append(f"engine.update_stack('{name}', t{other})")
            lines.append(f'engine.pass_time({chance.choice([0, 0.02, 0.05, 0.1, 0.2])})')
            lines.append(f"engine.update_stack('{name}', t{goal})")
    lines += _flurry(random.Random(f'flurry of storm {number}'))
    if chance.random() < 0.3:
        lines.append("engine.delete_stack('s')")
    return '\n'.join((*lines, 'engine.settle()', ''))


def _flurry(chance: random.Random) -> list[str]:
    """Generate a fast sequence of updates with slow services, in some storms.

    Actions of one goal end while the goal after the next one is planned.
    """
    if chance.random() >= FLURRIES:
        return []
    slow = [f"engine.takes('A{index}', {chance.choice([0.3, 0.5, 1.0])})" for index in range(WIDTH)]
    lines = ['engine.settle()', *slow]
    for _ in range(12):
        lines.append(f"engine.update_stack('s', t{chance.randrange(3)})")
        lines.append(f'engine.pass_time({chance.choice([0, 0.1, 0.3])})')
    return lines


def _template(chance: random.Random) -> Template:
    """Generate a template with many parallel resources, and some that depend on all of them.

    All the parallel nodes finish at the same time, and each of them arrives at the same nodes.
    """
    first = [f'A{index}' for index in range(chance.randint(2, WIDTH))]
    resources = {name: RsrcDef({'v': chance.randint(0, 1), **_replacing(chance)}) for name in first}
    for name in ('B', 'C')[: chance.randint(1, 2)]:
        resources[name] = RsrcDef({other: GetAtt(other, 'v') for other in first})
    if chance.random() < 0.5:
        resources['D'] = RsrcDef({'b': GetRes('B')})
    return Template(resources)


def _replacing(chance: random.Random) -> dict[str, int]:
    return {'r!': chance.randint(0, 1)} if chance.random() < 0.3 else {}
