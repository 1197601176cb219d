"""Results are at hand and cannot be told: database or broker away, connections cut, the worker frozen.

Nobody dies, so that nothing may be forgotten whatever the type: whoever made an object is alive and will say so.
"""

from __future__ import annotations

import signal
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from itertools import count

from tests.chaos.installation import SHORT, Broken, Installation, until
from tests.chaos.kinds import KINDS
from tests.chaos.lost_creations import amiss, orphans
from tests.chaos.storm import Surroundings
from tests.functional.cloud import Goal, template

AWAY_S = 40.0
"""Longer than a transaction is tried again, and than many leases."""

BROKER_AWAY_S = 10.0
STORM_S = 15.0
CUT_EVERY_S = 0.5
ENDS_S = 180.0


@dataclass
class Outage:
    """One of them, and for how long it took afterwards until the stack was complete and the cloud as it should be."""

    name: str
    settled_s: float
    problems: list[str]


@dataclass
class Found:
    """All of them."""

    outages: list[Outage] = field(default_factory=list)

    @property
    def problems(self) -> list[str]:
        """What did not hold."""
        return [f'{each.name}: {problem}' for each in self.outages for problem in each.problems]


class _Trials:
    """Each with a stack of one resource of each sort, whose creations are held up once their objects are there."""

    def __init__(self, around: Surroundings, say: Callable[[str], object]) -> None:
        self._around = around
        self._say = say
        self._numbers = count()
        self.cloud = around.installation.cloud
        self.found = Found()

    def try_one(self, name: str, meanwhile: Callable[[Callable[[], None], str], None], *, leaves: bool = False) -> None:
        """Create a stack.

        :param meanwhile: is told how to let the creations go on, and the stack's name, when all are held up; brings the
            outage about and ends it.
        :param leaves: whether an object may come too late for the creation: the stack's next operation removes it.
        """
        installation, number = self._around.installation, next(self._numbers)
        stack, gate = f'outage-{number}', f'gate-{number}'
        goal = {kind.lower(): {'type': f'Kind::{kind}', 'value': 'v1'} for kind in KINDS}
        for kind in goal:
            self.cloud.plan(stack, kind, f'hold {gate}')
        stack_id = installation.create(stack, template(goal))
        until(lambda: self._held(stack) == len(goal), 'all creations are held up')
        meanwhile(lambda: self.cloud.open(gate), stack)
        began = time.monotonic()
        if leaves:
            installation.ended(stack_id, ENDS_S)
            with suppress(Broken):
                until(lambda: not orphans(installation, stack_id), 'every object is known', 60.0)
            installation.update(stack_id, template(goal, 'next'))
        problems = self._ends(installation, stack_id, 'UPDATE_COMPLETE' if leaves else 'CREATE_COMPLETE', goal)
        settled_s = time.monotonic() - began
        installation.delete(stack_id)
        problems += self._ends(installation, stack_id, 'DELETE_COMPLETE', {})
        self.found.outages.append(Outage(name, round(settled_s, 1), problems))
        self._say(f'{name}: {"; ".join(problems) or "held"}; settled after {settled_s:.1f} s')

    def _held(self, stack: str) -> int:
        return sum(each.what == 'hold' for each in self.cloud.journal(stack))

    def _ends(self, installation: Installation, stack_id: str, expected: str, goal: Goal) -> list[str]:
        strict = {kind.lower(): 'Kind::Find' for kind in KINDS}
        try:
            state = installation.ended(stack_id, ENDS_S)
        except Broken as broken:
            return [str(broken)]
        wrong = [] if state == expected else [f'{state}: {installation.row(stack_id).status_reason}']
        with suppress(Broken):
            until(lambda: not amiss(installation, stack_id, goal, strict), 'all is as it should be', 60.0)
        return wrong + amiss(installation, stack_id, goal, strict)


def run(around: Surroundings, say: Callable[[str], object], *, away_s: float = AWAY_S) -> Found:
    """All outages, one after the other."""
    trials = _Trials(around, say)

    def database_away(go_on: Callable[[], None], stack: str) -> None:
        with _closed(around, 'database'):
            go_on()
            time.sleep(away_s)

    def broker_away(go_on: Callable[[], None], stack: str) -> None:
        with _closed(around, 'broker'):
            go_on()
            time.sleep(min(away_s, BROKER_AWAY_S))

    def frozen(go_on: Callable[[], None], stack: str) -> None:
        # The others take its resources meanwhile, and make them once more: what it has made is left over.
        held = trials.cloud.journal(stack)
        pid = next(each.pid for each in held if each.what == 'hold' and each.name == 'neither')
        worker = next(each for each in around.installation.processes() if each.pid == pid)
        worker.send(signal.SIGSTOP)
        go_on()
        time.sleep(3 * float(SHORT['lease_s']))
        worker.send(signal.SIGCONT)

    def cut_again_and_again(go_on: Callable[[], None], stack: str) -> None:
        ends = time.monotonic() + min(away_s, STORM_S)
        go_on()
        while time.monotonic() < ends:
            for role in ('database', 'broker'):
                with _closed(around, role):
                    pass
            time.sleep(CUT_EVERY_S)

    trials.try_one(f'database away for {away_s:g} s', database_away)
    trials.try_one('broker away', broker_away)
    trials.try_one('a worker frozen for three leases', frozen, leaves=True)
    trials.try_one('all connections cut twice a second', cut_again_and_again)
    return trials.found


@contextmanager
def _closed(around: Surroundings, role: str) -> Iterator[None]:
    around.proxies[role].close()
    try:
        yield
    finally:
        around.proxies[role].open()
