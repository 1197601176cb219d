"""Storms: programs in which one operation follows upon the other before any of them is done, made from a number.

They are for stores with real concurrency: planning, claims, results and arrivals at the same nodes meet all the time.
"""

from __future__ import annotations

import random
import re
from pathlib import Path

from convergence_simulator.scenarios.templates import GetAtt, GetRes, RsrcDef, Template

NAME = re.compile(r'storm:(\d{1,12})')
"""How a storm is named in the place of a file."""

WIDTH = 7
"""How many resources one resource is built on, at most."""
FLURRIES = 0.5
"""How many of the storms end in a flurry of updates."""


def storm_of(path: Path) -> int | None:
    """The number of the storm that stands in the place of a file; None for a file."""
    match = NAME.fullmatch(str(path))
    return int(match[1]) if match else None


def storm(number: int) -> str:
    """The program of a number, as a scenario file has it."""
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
        if chance.random() < 0.6:  # elsewhere and back, while the first of it has just begun
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
    """In some storms services take their time, and goal follows upon goal: what was begun for one ends while the next
    but one is planned."""
    if chance.random() >= FLURRIES:
        return []
    slow = [f"engine.takes('A{index}', {chance.choice([0.3, 0.5, 1.0])})" for index in range(WIDTH)]
    lines = ['engine.settle()', *slow]
    for _ in range(12):
        lines.append(f"engine.update_stack('s', t{chance.randrange(3)})")
        lines.append(f'engine.pass_time({chance.choice([0, 0.1, 0.3])})')
    return lines


def _template(chance: random.Random) -> Template:
    """Many resources side by side, and some that are built on all of them: their ends arrive there at once."""
    first = [f'A{index}' for index in range(chance.randint(2, WIDTH))]
    resources = {name: RsrcDef({'v': chance.randint(0, 1), **_replacing(chance)}) for name in first}
    for name in ('B', 'C')[: chance.randint(1, 2)]:
        resources[name] = RsrcDef({other: GetAtt(other, 'v') for other in first})
    if chance.random() < 0.5:
        resources['D'] = RsrcDef({'b': GetRes('B')})
    return Template(resources)


def _replacing(chance: random.Random) -> dict[str, int]:
    return {'r!': chance.randint(0, 1)} if chance.random() < 0.3 else {}
