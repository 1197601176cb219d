"""Everything at once: stacks change their goals while processes die and freeze and servers are restarted or cut off."""

from __future__ import annotations

import contextlib
import random
import signal
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import urlsplit

from tests.chaos.goals import counted, differences, twelve
from tests.chaos.installation import SHORT, Broken, Installation, until
from tests.chaos.servers import Server, Unavailable, private
from tests.db.proxy import Proxy
from tests.functional.cloud import Goal
from tests.services import SERVICES

FAULTS = {
    'kill worker': 6,
    'kill engine': 3,
    'freeze worker': 3,
    'freeze engine': 1,
    'cut database': 3,
    'cut broker': 2,
    'restart database': 1,
    'restart broker': 1,
}
"""What is done, and how often in proportion."""

END_S = 600.0
PATIENCE = 'workers in a row have died'
"""In the reason of a resource that was given up because each worker that touched it died. That is meant to be so."""


@dataclass
class Storm:
    """What came of it.

    :param faults: how often each fault was injected.
    :param calm_s: from the last fault until the last stack was in its final state.
    :param asked_again: how often the last goal had to be asked for once more, because of `PATIENCE`.
    """

    seed: int
    seconds: float = 0.0
    calm_s: float = 0.0
    updates: int = 0
    made: int = 0
    asked_again: int = 0
    faults: Counter[str] = field(default_factory=Counter)
    deaths: Counter[str] = field(default_factory=Counter)
    problems: list[str] = field(default_factory=list)


@dataclass(frozen=True)
class Surroundings:
    """An installation whose servers can be hurt.

    :param servers: those of its own, by kind; without one that server is not restarted.
    :param proxies: the ways to database and broker.
    """

    installation: Installation
    servers: dict[str, Server]
    proxies: dict[str, Proxy]


@contextlib.contextmanager
def surroundings(
    directory: Path, database: str, say: Callable[[str], object], **options: int
) -> Iterator[Surroundings]:
    """An installation with servers of its own, where they can be started, behind proxies."""
    with contextlib.ExitStack() as stack:
        servers: dict[str, Server] = {}
        urls = {}
        for role, kind in (('database', database), ('broker', 'rabbit')):
            try:
                servers[role] = stack.enter_context(private(kind, directory / kind))
                urls[role] = servers[role].url  # type: ignore[attr-defined]
            except Unavailable as reason:
                say(f'the {role} is not restarted: {reason}')
                urls[role] = SERVICES.get(kind).url
        if database == 'postgresql' and 'database' in servers:
            urls['database'] = urls['database'].rpartition('/')[0] + '/template1'
        proxies, given = {}, {}
        for role, port in (('database', {'postgresql': 5432, 'mariadb': 3306}[database]), ('broker', 5672)):
            parts = urlsplit(urls[role])
            proxies[role] = Proxy((parts.hostname or '127.0.0.1', parts.port or port))
            stack.callback(proxies[role].close)
            account = parts.netloc.rpartition('@')[0]
            given[role] = parts._replace(netloc=f'{account}@127.0.0.1:{proxies[role].port}').geturl()
        direct, given['database'] = _database(database, urls['database'], given['database'])
        installation = Installation(
            directory / 'installation', (given['database'], given['broker']), seen=direct, **options
        )
        stack.callback(installation.close)
        yield Surroundings(installation, servers, proxies)


def _database(kind: str, direct: str, proxied: str) -> tuple[str, str]:
    """A database of the run's own on the server at `direct`, and both ways to it."""
    from tests.services import KINDS

    made = KINDS[kind].make(direct).create()
    parts = urlsplit(made)
    return made, parts._replace(netloc=urlsplit(proxied).netloc).geturl()


class Weather:
    """Injects faults until it is stopped."""

    def __init__(self, around: Surroundings, seed: int, pace_s: float, say: Callable[[str], object]) -> None:
        self._around = around
        self._random = random.Random(seed)
        self._pace_s = pace_s
        self._say = say
        self._stopping = threading.Event()
        self._thawing: list[threading.Timer] = []
        self.counts: Counter[str] = Counter()
        self._thread = threading.Thread(target=self._run, daemon=True)

    def start(self) -> None:
        """Begin."""
        self._thread.start()

    def stop(self) -> None:
        """No more faults; what is frozen is let go on."""
        self._stopping.set()
        self._thread.join()
        for timer in self._thawing:
            timer.join()

    def _run(self) -> None:
        possible = {name: weight for name, weight in FAULTS.items() if self._is_possible(name)}
        while not self._stopping.wait(self._random.uniform(0.3, 1.7) * self._pace_s):
            name = self._random.choices(list(possible), list(possible.values()))[0]
            what, _, whom = name.partition(' ')
            said = self._process(what, whom) if whom in ('worker', 'engine') else self._server(what, whom)
            if said:
                self.counts[name] += 1
                self._say(f'{name}: {said}')

    def _is_possible(self, name: str) -> bool:
        what, _, whom = name.partition(' ')
        return what != 'restart' or whom in self._around.servers

    def _process(self, what: str, module: str) -> str:
        running = [each for each in self._around.installation.processes() if each.module == module]
        if not running:
            return ''
        process = self._random.choice(sorted(running, key=lambda each: each.log.name))
        if what == 'kill':
            process.send(signal.SIGKILL)
            return f'process {process.pid}'
        seconds = float(SHORT['lease_s']) * self._random.uniform(1.2, 2.5)
        process.send(signal.SIGSTOP)
        timer = threading.Timer(seconds, process.send, (signal.SIGCONT,))
        timer.start()
        self._thawing.append(timer)
        return f'process {process.pid} for {seconds:.1f} s'

    def _server(self, what: str, role: str) -> str:
        proxy, seconds = self._around.proxies[role], self._random.uniform(0.0, 1.5)
        if what == 'restart':
            self._around.servers[role].restart()
            return self._around.servers[role].name
        proxy.close()
        time.sleep(seconds)
        proxy.open()
        return f'all connections, for {seconds:.1f} s'


def goal_of(size: int, chance: random.Random, generation: int) -> Goal:
    """A goal of so many resources: a tree, of which each generation changes, replaces and leaves out some."""
    goal: dict[str, dict[str, object]] = {}
    for number in range(size):
        if number >= 10 and chance.random() < 0.03:
            continue
        after = [f'r{(number - 1) // 4}'] if number and f'r{(number - 1) // 4}' in goal else []
        changed, elsewhere = chance.random() < 0.2, chance.random() < 0.05
        goal[f'r{number}'] = {
            'value': f'g{generation}' if changed else 'same',
            'place': f'p{generation}' if elsewhere else 'here',
            'takes': round(chance.uniform(0.1, 2.0), 1) if chance.random() < 0.1 else 0.0,
            'after': after,
        }
    return goal


def run(
    around: Surroundings, say: Callable[[str], object], *, seed: int, seconds: float, size: int, pace_s: float = 1.5
) -> Storm:
    """Have it blow for so many seconds, then see that all comes to rest."""
    installation, chance, result = around.installation, random.Random(seed), Storm(seed)
    say(f'seed {seed}, {size} resources, {seconds:g} s')
    began = time.monotonic()
    goals: dict[str, Goal] = {'large': goal_of(size, chance, 0)}
    stacks = {'large': installation.create('large', counted(goals['large']))}
    for number in range(3):
        goals[f'small-{number}'] = twelve()
        stacks[f'small-{number}'] = installation.create(f'small-{number}', counted(twelve()))
    weather = Weather(around, seed, pace_s, say)
    weather.start()
    generation = 0
    while time.monotonic() - began < seconds:
        time.sleep(chance.uniform(1.0, max(2.0, size / 200)))
        generation += 1
        name = 'large' if chance.random() < 0.6 else f'small-{chance.randrange(3)}'
        goals[name] = goal_of(size if name == 'large' else 12, chance, generation)
        say(f'{name} gets goal {generation}')
        installation.update(stacks[name], counted(goals[name], str(generation)))
        result.updates += 1
    weather.stop()
    result.faults = weather.counts
    calm = time.monotonic()
    say('no more faults')
    for name, stack in stacks.items():
        result.problems += [f'{name}: {each}' for each in _rest(installation, stack, goals[name], result)]
        result.made += len(installation.cloud.journal(name, what='made'))
    result.calm_s, result.seconds = time.monotonic() - calm, time.monotonic() - began
    result.deaths = installation.deaths
    return result


def _rest(installation: Installation, stack: str, goal: Goal, result: Storm) -> list[str]:
    """What does not hold once a stack has come to rest."""
    try:
        state = installation.ended(stack, END_S)
        while state.endswith('FAILED') and PATIENCE in installation.row(stack).status_reason and result.asked_again < 5:
            result.asked_again += 1
            installation.update(stack, counted(goal, f'again {result.asked_again}'))
            state = installation.ended(stack, END_S)
        with contextlib.suppress(Broken):
            until(lambda: not differences(installation, stack, goal), 'all is as it should be', 20)
    except Broken as broken:
        return [str(broken)]
    problems = differences(installation, stack, goal)
    if not state.endswith('COMPLETE'):
        problems.insert(0, f'{state}: {installation.row(stack).status_reason}')
    return problems
