"""Failpoints: places at which the test run has a process die, fail, wait or lose a message.

There is one before and one after each commit and each send of a message. A commit is named after the function that
decided and what it decided, ``Steps.begin:CREATE``; a send after its method, ``check_resource``.

`VARIABLE` names a directory for `tests.chaos.process`, which alone has failpoints. The directory holds

* ``rules.json``: what is to happen, read again whenever it changes: a list of `Rule` as objects;
* ``passed``: one line for each place that was passed, process id and place;
* ``fired``: one file for each rule of which a process has died, so that only one does.
"""

from __future__ import annotations

import fnmatch
import json
import os
import random
import signal
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum, StrEnum
from pathlib import Path
from typing import Any

from convergence import concurrency

VARIABLE = 'CONVERGENCE_FAILPOINTS'


class Do(StrEnum):
    """What happens at a place."""

    KILL = 'kill'
    RAISE = 'raise'
    SLEEP = 'sleep'
    LOSE = 'lose'


class Injected(Exception):
    """What `Do.RAISE` raises."""


@dataclass(frozen=True, slots=True)
class Rule:
    """What is to happen where.

    :param name: of this rule, for the file that says that it has fired.
    :param place: a pattern, as for file names: ``before commit of Steps._finish:*``.
    :param at: the passing, counted in each process since the rules were read, at which a process is killed, or the
        first one at which it fails.
    :param seconds: how long `Do.SLEEP` is.
    :param share: which part of the messages `Do.LOSE` loses, 0 to 1.
    """

    name: str
    place: str
    do: Do
    at: int = 1
    seconds: float = 0.0
    share: float = 1.0


def from_environment() -> Failpoints:
    """Those of the directory that the environment names."""
    return Failpoints(Path(os.environ[VARIABLE]))


class Failpoints:
    """Carries the rules of a directory out in this process.

    :param die: ends this process at once.
    """

    def __init__(self, directory: Path, die: Callable[[], object] | None = None) -> None:
        self._directory = directory
        self._die = die or (lambda: os.kill(os.getpid(), signal.SIGKILL))
        self._lock = concurrency.Lock()
        self._stamp: tuple[int, int] | None = None
        self._rules: list[Rule] = []
        self._counts: Counter[str] = Counter()
        self._random = random.Random()
        (directory / 'fired').mkdir(exist_ok=True)

    def commit(self, commit: Callable[[], None], by: object, verdict: object = None) -> None:
        """Commit, with the failpoints around it.

        :param by: the function that decided.
        :param verdict: what it decided.
        """
        place = name_of(by, verdict)
        self._pass(f'before commit of {place}')
        commit()
        self._pass(f'after commit of {place}')

    def send(self, send: Callable[[], None], method: str) -> None:
        """Send a message, with the failpoints around it, or lose it."""
        if self._pass(f'before send of {method}'):
            send()
        self._pass(f'after send of {method}')

    def request(self, ask: Callable[[], Any], what: str) -> Any:
        """Send a request to a service, with the failpoints around it; what it answers."""
        self._pass(f'before {what}')
        answer = ask()
        self._pass(f'after {what}')
        return answer

    def _pass(self, place: str) -> bool:
        """Do what the rules say of a place; False: what comes now is to be lost."""
        with self._lock:
            self._read()
            self._note(place)
            due = [(rule, self._count(rule)) for rule in self._rules if fnmatch.fnmatchcase(place, rule.place)]
        # All of it is said before the process dies: which rule that is may not depend on their order.
        lost = False
        for rule, count in due:
            if rule.do is Do.LOSE:
                lost = lost or self._random.random() < rule.share
            elif rule.do is Do.SLEEP:
                time.sleep(rule.seconds)
            elif rule.do is Do.RAISE and count >= rule.at:
                raise Injected(f'failpoint {rule.name}: {place}')
            elif rule.do is Do.KILL and count >= rule.at and self._is_first(rule):
                self._die()
        return not lost

    def _count(self, rule: Rule) -> int:
        self._counts[rule.name] += 1
        return self._counts[rule.name]

    def _read(self) -> None:
        try:
            seen = os.stat(self._directory / 'rules.json')
        except FileNotFoundError:
            self._rules, self._stamp = [], None
            return
        stamp = (seen.st_mtime_ns, seen.st_ino)
        if stamp != self._stamp:
            rules = json.loads((self._directory / 'rules.json').read_text(encoding='utf-8'))
            self._rules = [Rule(**{**each, 'do': Do(each['do'])}) for each in rules]
            self._stamp = stamp
            self._counts.clear()

    def _note(self, place: str) -> None:
        with (self._directory / 'passed').open('a', encoding='utf-8') as passed:
            passed.write(f'{os.getpid()} {place}\n')

    def _is_first(self, rule: Rule) -> bool:
        """Whether no process has died of this rule before."""
        try:
            (self._directory / 'fired' / rule.name).touch(exist_ok=False)
        except FileExistsError:
            return False
        return True


def name_of(by: object, verdict: object) -> str:
    """The function in which a decision was written down, and what it came to where that is one of few things."""
    function = str(getattr(by, '__qualname__', type(by).__name__)).partition('.<locals>')[0]
    decided = getattr(verdict, 'step', None) or getattr(getattr(verdict, 'traversal', None), 'action', None) or verdict
    return f'{function}:{decided.value}' if isinstance(decided, Enum) else function
