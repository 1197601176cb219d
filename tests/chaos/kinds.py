"""Types of every sort lose a creation: the worker is killed with the object made, or the answer gets lost."""

from __future__ import annotations

import itertools
import random
import time
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

from tests.chaos.installation import PATIENCE_S, Broken, Installation, until
from tests.chaos.lost_creations import amiss, orphans
from tests.functional.cloud import Goal, template

KINDS = ('Find', 'Token', 'Both', 'Neither', 'Async', 'AsyncNeither', 'Replaced')
FAULTS = ('die', 'lose')
MOMENTS = ('creation', 'replacement')
"""The creation with the stack, or that of a resource which takes the place of another one."""

NEXT = ('wait', 'same', 'changed', 'removed', 'replaced', 'delete')
"""What is asked for as soon as it has happened."""

BATCH = 7
"""So many stacks at a time: five deaths in a row at one resource would be a reason to give it up."""

SETTLED_S = 30.0


@dataclass(frozen=True)
class Case:
    """One of them."""

    kind: str
    fault: str
    moment: str
    next: str

    def __str__(self) -> str:
        return f'{self.kind}, {self.fault} at {self.moment}, then {self.next}'


CASES = tuple(Case(*each) for each in itertools.product(KINDS, FAULTS, MOMENTS, NEXT))


@dataclass
class Found:
    """What came of them.

    :param told: objects that stay and of which an event and a warning tell, of the types that cannot tell more.
    :param doubles: tokens under which more than one object was made.
    :param orphans: objects that no row knew at the end of cases that did not hold.
    :param longest_s: from the request after the fault to the final state, at most.
    """

    cases: int = 0
    struck: int = 0
    told: int = 0
    doubles: int = 0
    orphans: int = 0
    longest_s: float = 0.0
    deaths: Counter[str] = field(default_factory=Counter)
    problems: list[str] = field(default_factory=list)


@dataclass
class _Trial:
    """A case under way."""

    case: Case
    stack: str
    stack_id: str = ''
    wanted: Goal = field(default_factory=dict)
    began: float = 0.0
    struck: bool = False


def sample(seed: int, count: int) -> list[Case]:
    """So many cases, of every kind alike."""
    chance = random.Random(seed)
    by_kind = {kind: chance.sample([each for each in CASES if each.kind == kind], len(NEXT) * 4) for kind in KINDS}
    return [by_kind[KINDS[number % len(KINDS)]][number // len(KINDS)] for number in range(count)]


def run(
    installation: Installation, say: Callable[[str], object], cases: Sequence[Case] = CASES, ends: float | None = None
) -> Found:
    """Try these cases.

    :param ends: monotonic time after which no further ones are begun.
    """
    found = Found()
    for first in range(0, len(cases), BATCH):
        if ends is not None and time.monotonic() > ends:
            break
        batch = [
            _Trial(case, f'kinds-{first + number}-{case.kind}')
            for number, case in enumerate(cases[first : first + BATCH])
        ]
        problems = _try(installation, batch, found)
        found.problems += problems
        say(f'{found.cases} of {len(cases)} cases: {"; ".join(problems) or "held"}')
    found.deaths = installation.deaths
    return found


def _goal(kind: str, **changes: Any) -> dict[str, dict[str, Any]]:
    """A resource that everything happens to, between two others."""
    return {
        'first': {'type': 'Kind::Find', 'value': 'f'},
        'it': {'type': f'Kind::{kind}', 'value': 'v1', 'place': 'one', 'after': ['first'], **changes},
        'last': {'type': 'Kind::Find', 'value': 'l', 'after': ['it']},
    }


def _try(installation: Installation, batch: Iterable[_Trial], found: Found) -> list[str]:
    problems: list[str] = []
    under_way = list(batch)
    for step in (_begin, _strike, _go_on, _end, _remove):
        if step is _end:
            found.longest_s = max(found.longest_s, _longest(installation, under_way))
        for trial in list(under_way):
            try:
                wrong = step(installation, trial, found)
            except Broken as broken:
                wrong = [str(broken)]
            if wrong:
                found.orphans += len(orphans(installation, trial.stack_id)) if trial.stack_id else 0
                problems += [f'{trial.case}: {each}' for each in wrong]
                under_way.remove(trial)
    return problems


def _longest(installation: Installation, under_way: Iterable[_Trial]) -> float:
    """Wait until all are in their final states; for how long that took at most."""
    waiting, longest_s = list(under_way), 0.0
    ends = time.monotonic() + PATIENCE_S
    while waiting and time.monotonic() < ends:
        for trial in list(waiting):
            if not installation.state(trial.stack_id).endswith('IN_PROGRESS'):
                longest_s = max(longest_s, time.monotonic() - trial.began)
                waiting.remove(trial)
        time.sleep(0.1)
    return longest_s


def _begin(installation: Installation, trial: _Trial, found: Found) -> list[str]:
    case = trial.case
    found.cases += 1
    trial.wanted = _goal(case.kind)
    if case.moment == 'creation':
        installation.cloud.plan(trial.stack, 'it', case.fault)
    trial.stack_id = installation.create(trial.stack, template(trial.wanted))
    return []


def _strike(installation: Installation, trial: _Trial, found: Found) -> list[str]:
    """Until the fault has happened; what is asked for next is asked for then."""
    case = trial.case
    if case.moment == 'replacement':
        state = installation.ended(trial.stack_id)
        if state != 'CREATE_COMPLETE':
            return [f'{state}: {installation.row(trial.stack_id).status_reason}']
        installation.cloud.plan(trial.stack, 'it', case.fault)
        trial.wanted = _goal(case.kind, place='two')
        installation.update(trial.stack_id, template(trial.wanted))
    until(lambda: installation.cloud.struck(trial.stack), f'{case} happens')
    trial.struck = True
    found.struck += 1
    return []


def _go_on(installation: Installation, trial: _Trial, found: Found) -> list[str]:
    case = trial.case
    trial.began = time.monotonic()
    changes = {
        'same': dict(trial.wanted['it']),
        'changed': {**trial.wanted['it'], 'value': 'v2'},
        'replaced': {**trial.wanted['it'], 'place': 'three'},
    }
    if case.next == 'delete':
        trial.wanted = {}
        installation.delete(trial.stack_id)
    elif case.next == 'removed':
        trial.wanted = {'first': trial.wanted['first'], 'last': {'type': 'Kind::Find', 'value': 'l'}}
        installation.update(trial.stack_id, template(trial.wanted, 'next'))
    elif case.next in changes:
        trial.wanted = _goal(case.kind, **{key: changes[case.next][key] for key in ('value', 'place')})
        installation.update(trial.stack_id, template(trial.wanted, 'next'))
    return []


def _end(installation: Installation, trial: _Trial, found: Found) -> list[str]:
    case = trial.case
    state = installation.ended(trial.stack_id)
    if case.fault == 'lose' and case.next == 'wait' and state.endswith('FAILED'):
        # A lost answer fails the resource: whoever asked for the stack decides what comes next.
        installation.update(trial.stack_id, template(trial.wanted, 'mended'))
        state = installation.ended(trial.stack_id)
    if not state.endswith('COMPLETE'):
        return [f'{state}: {installation.row(trial.stack_id).status_reason}']
    return _settled(installation, trial)


def _remove(installation: Installation, trial: _Trial, found: Found) -> list[str]:
    """The stack goes, and takes everything with it that can be known."""
    if trial.case.next != 'delete':
        trial.wanted = {}
        installation.delete(trial.stack_id)
    state = installation.ended(trial.stack_id)
    wrong = [] if state == 'DELETE_COMPLETE' else [f'{state}: {installation.row(trial.stack_id).status_reason}']
    wrong += _settled(installation, trial)
    found.doubles += len(installation.cloud.doubles(trial.stack))
    found.told += 0 if wrong else len(orphans(installation, trial.stack_id))
    return wrong


def _settled(installation: Installation, trial: _Trial) -> list[str]:
    """What stays wrong. What was superseded in the middle may take a moment to come to its end."""
    kinds = {name: each['type'] for name, each in _goal(trial.case.kind).items()}

    def look() -> list[str]:
        return amiss(installation, trial.stack_id, trial.wanted, kinds)

    with suppress(Broken):
        until(lambda: not look(), 'all is as it should be', SETTLED_S)
    return look()
