"""Workers are told to stop in the middle of a backlog: what runs comes to its end, and nothing more is begun."""

from __future__ import annotations

import re
import signal
import time
from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import datetime

from convergence_simulator.real.launcher import LaunchedProcess

from tests.chaos.installation import Broken, Installation, until
from tests.chaos.kinds import KINDS
from tests.chaos.lost_creations import amiss
from tests.functional.cloud import Goal, template

SIZE = 40
TAKES_S = 1.5
"""Of each call, so that a backlog of 40 lasts several seconds whatever the machine."""

LATE_S = 1.0
"""Between the line in the log that the signal was received and the last call that another thread begins."""

BEGINNINGS, ENDINGS = ('create', 'update', 'delete'), ('created', 'updated', 'deleted')
_RECEIVED = re.compile(r'^(\S+ \S+) .*ending, SIGTERM', re.MULTILINE)

HOUR_S = 3600.0


@dataclass
class Found:
    """What came of it.

    :param drained: workers that were told to stop while they had calls in hand.
    :param begun_after: calls that one of them began afterwards.
    :param cut_off: calls that did not come to their end.
    :param lasts_s: for how long workers are told to stop during each operation.
    """

    drained: int = 0
    begun_after: int = 0
    cut_off: int = 0
    longest_drain_s: float = 0.0
    lasts_s: float = HOUR_S
    problems: list[str] = field(default_factory=list)


def run(
    installation: Installation, say: Callable[[str], object], size: int = SIZE, seconds: float | None = None
) -> Found:
    """Create, update and delete a stack while its workers are told to stop in turn.

    :param seconds: each of the three goes on without that after a third of this time; None: to its end.
    """
    found = Found() if seconds is None else Found(lasts_s=seconds / 3)
    goal: dict[str, dict[str, object]] = {
        f'r{number}': {'type': f'Kind::{KINDS[number % len(KINDS)]}', 'value': 'v1', 'takes': TAKES_S}
        for number in range(size)
    }
    stack = installation.create('drained', template(goal))
    _drain(installation, stack, 'CREATE_COMPLETE', goal, found, say)
    changed = {name: {**each, 'value': 'v2'} for name, each in goal.items()}
    installation.update(stack, template(changed))
    _drain(installation, stack, 'UPDATE_COMPLETE', changed, found, say)
    installation.delete(stack)
    _drain(installation, stack, 'DELETE_COMPLETE', {}, found, say)
    return found


def _drain(
    installation: Installation,
    stack: str,
    expected: str,
    goal: Goal,
    found: Found,
    say: Callable[[str], object],
) -> None:
    """Stop workers until the operation has ended, then look whether anything was lost."""
    ends = time.monotonic() + found.lasts_s
    while installation.state(stack).endswith('IN_PROGRESS') and time.monotonic() < ends:
        busy = [
            each for each in installation.processes() if each.module == 'worker' and _in_hand(installation, each.pid)
        ]
        if not busy:
            time.sleep(0.05)
            continue
        _stop(installation, busy[0], found)
    state = installation.ended(stack)
    # Nobody died, so even of types that can tell nothing every object must be known.
    strict = {f'r{number}': 'Kind::Find' for number in range(1000)}
    with suppress(Broken):
        until(lambda: not amiss(installation, stack, goal, strict), 'all is as it should be', 30.0)
    wrong = amiss(installation, stack, goal, strict)
    if state != expected:
        wrong.append(f'{state} instead of {expected}: {installation.row(stack).status_reason}')
    found.problems += wrong
    say(f'{found.drained} workers were drained, {expected}: {"; ".join(found.problems) or "held"}')


def _in_hand(installation: Installation, pid: int) -> int:
    """How many calls a process has begun and not ended."""
    counts = Counter(each.what for each in installation.cloud.journal() if each.pid == pid)
    return sum(counts[each] for each in BEGINNINGS) - sum(counts[each] for each in ENDINGS)


def _stop(installation: Installation, worker: LaunchedProcess, found: Found) -> None:
    began = time.monotonic()
    worker.send(signal.SIGTERM)
    code = worker.wait()
    found.drained += 1
    found.longest_drain_s = max(found.longest_drain_s, time.monotonic() - began)
    if code:
        found.problems.append(f'worker {worker.pid} ended with {code}')
    told = _RECEIVED.search(worker.text())
    if told is None:
        found.problems.append(f'worker {worker.pid} did not say that it received the signal')
        return
    received = datetime.strptime(told[1], '%Y-%m-%d %H:%M:%S.%f').timestamp()  # noqa: DTZ007 - logs have local time
    late = [
        each
        for each in installation.cloud.journal()
        if each.pid == worker.pid and each.what in BEGINNINGS and each.at > received + LATE_S
    ]
    found.begun_after += len(late)
    found.problems += [
        f'{each.what} of {each.name} was begun {each.at - received:.1f} s after SIGTERM' for each in late
    ]
    # An update of Kind::Replaced ends by wanting a new object, and without a line.
    lines = [each for each in installation.cloud.journal() if each.pid == worker.pid]
    ended = Counter((each.name, each.what.removesuffix('d')) for each in lines if each.what in ENDINGS)
    begun = Counter((each.name, each.what) for each in lines if each.what in BEGINNINGS)
    cut = [
        name
        for name, what in begun - ended
        if not (what == 'update' and KINDS[int(name[1:]) % len(KINDS)] == 'Replaced')
    ]
    found.cut_off += len(cut)
    found.problems += [f'a call of {name} was cut off' for name in cut]
