"""A stack is cancelled while its resources hold all threads of all workers, and most of them hear nothing."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass

from tests.chaos.goals import counted, differences
from tests.chaos.installation import Broken, Installation, until

WAYS = ('sleep', 'socket', 'subprocess', 'slow', 'sleep')
"""How the resources are held up, in turn. ``slow`` is polled, and can be stopped."""


@dataclass(frozen=True)
class Cancelled:
    """What came of it. Seconds count from the request to cancel.

    :param ended_s: until the stack was in its final state.
    :param free_s: until nobody held any of its resources.
    :param replaced: how many resources the next update replaced, of those for which it had no reason to.
    """

    ended_s: float
    free_s: float
    update_s: float
    replaced: int
    problem: str


def run(installation: Installation, say: Callable[[str], object], size: int = 30, name: str = 'stuck') -> Cancelled:
    """Create, hold up an update, cancel it, update again; beside it another stack that is to notice nothing."""
    plain = {f'r{number}': {'value': 'one'} for number in range(size)}
    stack = installation.create(name, counted(plain))
    _end(installation, stack, 'CREATE_COMPLETE')
    ids = {each.name: each.id for each in installation.cloud.objects(name)}
    installation.update(stack, counted(_held(plain)))
    stuck = sum(1 for number in range(size) if WAYS[number % len(WAYS)] != 'slow')
    until(lambda: len(installation.cloud.journal(name, what='stuck')) >= stuck, f'{stuck} calls are stuck')
    say(f'{stuck} calls are stuck and {size - stuck} go slowly')

    # A worker that has nothing of it, and a stack that it works on while the other one is cancelled.
    bystander = installation.add_worker()
    beside = {f'b{number}': {'value': 'b', 'takes': 3.0} for number in range(8)}
    other = installation.create(f'{name}-beside', counted(beside))
    until(lambda: len(installation.cloud.journal(f'{name}-beside', what='made')) == 8, 'the other stack is at work')
    began = time.monotonic()
    installation.cancel(stack, rollback=False)
    _end(installation, stack, 'UPDATE_FAILED')
    ended_s = time.monotonic() - began
    until(lambda: all(row.owner is None for row in installation.rows(stack)), 'nobody holds anything of it')
    free_s = time.monotonic() - began
    say(f'ended after {ended_s:.1f} s, let go of after {free_s:.1f} s')

    _end(installation, other, 'CREATE_COMPLETE')
    problems = differences(installation, other, beside)
    if not bystander.running():
        problems.append('the worker without anything stuck has ended')
    if installation.cloud.journal(f'{name}-beside', what='cancel'):
        problems.append('resources of the other stack were cancelled')
    wanted = {each: {'value': 'three'} for each in plain}
    began = time.monotonic()
    installation.update(stack, counted(wanted))
    _end(installation, stack, 'UPDATE_COMPLETE')
    update_s = time.monotonic() - began
    problems += differences(installation, stack, wanted)
    replaced = sum(ids[each.name] != each.id for each in installation.cloud.objects(name))
    say(f'the next update took {update_s:.1f} s and replaced {replaced}')
    return Cancelled(ended_s, free_s, update_s, replaced, '; '.join(problems))


def _held(plain: dict[str, dict[str, str]]) -> dict[str, dict[str, str]]:
    held = {}
    for number, each in enumerate(plain):
        way = WAYS[number % len(WAYS)]
        held[each] = {'value': 'two', **({'until': 'never'} if way == 'slow' else {'stuck': way})}
    return held


def _end(installation: Installation, stack: str, wanted: str) -> None:
    state = installation.ended(stack)
    if state != wanted:
        raise Broken(f'{state} instead of {wanted}: {installation.row(stack).status_reason}')
