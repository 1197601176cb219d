"""Clusters: processes spread over three Galera servers, a primary whose standby takes its place, three brokers."""

from __future__ import annotations

import contextlib
import itertools
import signal
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import psycopg2
from convergence_simulator.real.launcher import LaunchedProcess

from tests.chaos.cluster_servers import Galera, galera, pair
from tests.chaos.goals import changed, counted, differences, twelve
from tests.chaos.installation import Broken, Installation, until
from tests.chaos.rabbit_cluster import RabbitNode, Rabbits, rabbits
from tests.functional.cloud import Goal
from tests.services import SERVICES

ROUNDS = 3
ENDS_S = 240.0
"""For how long an operation is waited for: a stalled server holds all three up until it is left out."""
STALL_S = 12.0
LAG_S = 6.0
"""For how long a server applies nothing; a read that waits for the others gives up after 30 s."""


@dataclass
class Found:
    """What one part came to.

    :ivar longest_s: by trouble, from a request to the final state, at most.
    """

    name: str
    operations: int = 0
    longest_s: dict[str, float] = field(default_factory=dict)
    problems: list[str] = field(default_factory=list)
    seconds: float = 0.0


Say = Callable[[str], None]


def spread(installation: Installation, urls: Sequence[str], own: str) -> None:
    """Have the processes that are started from now on use the databases in turn.

    :param own: the URL in the configuration.
    """
    turn = itertools.cycle(urls)
    written = installation.cluster.configuration.read_text()
    assert own in written
    numbers = itertools.count()
    cluster = installation.cluster
    as_usual = cluster.launch

    def launch(module: str, *arguments: str) -> LaunchedProcess:
        path = cluster.directory / f'convergence-{next(numbers)}.conf'
        path.write_text(written.replace(own, next(turn)))
        return as_usual(module, *arguments, configuration=path)

    cluster.launch = launch  # type: ignore[method-assign]


def over_galera(directory: Path, say: Say) -> Found:
    """Operations while each process uses another server, one is killed, one stalls, one lags behind."""
    found, began = Found('galera'), time.monotonic()
    with galera(directory / 'servers') as cluster:
        say('three Galera servers are up')
        cluster.nodes[0].execute('CREATE DATABASE chaos CHARACTER SET utf8mb4')
        urls = [node.url('chaos') for node in cluster.nodes]
        broker = SERVICES.get('rabbit').url
        options = {'lease_s': 10, 'heartbeat_interval_s': 2, 'call_timeout_s': 60.0}
        installation = Installation(directory / 'installation', (urls[0], broker), **options)
        try:
            spread(installation, urls, urls[0])
            installation.start(engines=2, workers=3)
            _rounds(
                installation, found, say, [(trouble, cluster) for trouble in (_nothing, _killed, _stalled, _lagging)]
            )
        finally:
            installation.close()
    found.seconds = time.monotonic() - began
    return found


def over_rabbits(directory: Path, say: Say) -> Found:
    """Operations while one of three brokers is killed, then another one; and while one stalls."""
    found, began = Found('rabbitmq'), time.monotonic()
    with rabbits(directory / 'servers') as cluster:
        say('three RabbitMQ nodes are up')
        server = SERVICES.get('postgresql')
        url = server.create()
        options = {'lease_s': 10, 'heartbeat_interval_s': 2, 'call_timeout_s': 10.0}
        installation = Installation(directory / 'installation', (url, cluster.url), **options)
        turn = itertools.cycle(cluster.nodes)
        try:
            installation.start(engines=2, workers=3)
            troubles: list[tuple[Trouble, Any]] = [
                (_nothing, None),
                (lambda _: _kill_broker(cluster, next(turn)), 'killed'),
                (lambda _: _stall_broker(cluster, next(turn)), 'stalled'),
            ]
            _rounds(installation, found, say, troubles)
        finally:
            installation.close()
            server.drop(urlsplit(url).path.lstrip('/'))
    found.seconds = time.monotonic() - began
    return found


def _kill_broker(cluster: Rabbits, node: RabbitNode) -> None:
    node.end(signal.SIGKILL)
    time.sleep(5.0)
    node.start()
    cluster.await_all()


def _stall_broker(cluster: Rabbits, node: RabbitNode) -> None:
    node.stall(STALL_S)
    cluster.await_all()


Trouble = Callable[[Any], None]


def _rounds(installation: Installation, found: Found, say: Say, troubles: Sequence[tuple[Trouble, Any]]) -> None:
    """So many lives of a stack beside each trouble."""
    for trouble, subject in troubles:
        what = subject if isinstance(subject, str) else trouble.__name__.strip('_')
        for number in range(ROUNDS):
            before = len(found.problems)
            _life(installation, what, number, lambda: trouble(subject), found)  # noqa: B023 - called at once
            say(f'{found.name}, {what} {number}: {"; ".join(found.problems[before:]) or "held"}')


def _nothing(_: object) -> None:
    """No trouble: only what the servers do to each other."""


def _killed(cluster: Galera) -> None:
    node = cluster.nodes[2]
    node.end(signal.SIGKILL)
    time.sleep(1.0)
    node.start()


def _stalled(cluster: Galera) -> None:
    cluster.nodes[2].stall(STALL_S)
    until(cluster.nodes[2].is_ready, 'the server has come back', ENDS_S)
    cluster.nodes[2].stall(1.0)


def _lagging(cluster: Galera) -> None:
    for node in cluster.nodes[1:]:
        node.lag(LAG_S)


@contextlib.contextmanager
def _beside(trouble: Callable[[], object]) -> Iterator[None]:
    """Have a block run beside the trouble.

    :raises Broken: the trouble itself did not go as it should: a server that was killed did not come back.
    """
    wrong: list[Exception] = []

    def run() -> None:
        try:
            trouble()
        except Exception as error:  # noqa: BLE001 - raised where it is seen
            wrong.append(error)

    thread = threading.Thread(target=run)
    thread.start()
    try:
        yield
    finally:
        thread.join()
    if wrong:
        raise Broken(f'the trouble itself: {wrong[0]}')


def _life(installation: Installation, what: str, number: int, trouble: Callable[[], object], found: Found) -> None:
    """Create, update, delete, each beside the trouble; afterwards nothing is left and nothing is wrong."""
    name = f'{found.name}-{what}{number}'
    stack: list[str] = []

    def check(operation: str, expected: str, goal: Goal) -> None:
        began = time.monotonic()
        found.operations += 1
        state = installation.ended(stack[0], ENDS_S)
        found.longest_s[what] = max(found.longest_s.get(what, 0.0), round(time.monotonic() - began, 1))
        wrong = [] if state == expected else [f'{state} instead of {expected}']
        with contextlib.suppress(Broken):
            until(lambda: not differences(installation, stack[0], goal), 'reality agrees', 20.0)
        wrong += differences(installation, stack[0], goal)
        found.problems += [f'{name}, {operation}: {each}' for each in wrong]

    with _beside(trouble):
        stack.append(installation.create(name, counted(twelve())))
        check('create', 'CREATE_COMPLETE', twelve())
    with _beside(trouble):
        installation.update(stack[0], counted(changed()))
        check('update', 'UPDATE_COMPLETE', changed())
    with _beside(trouble):
        installation.delete(stack[0])
        check('delete', 'DELETE_COMPLETE', {})


LOST = 'The database has lost commits made'


def after_a_loss(directory: Path, say: Say) -> Found:
    """An asynchronous standby that lacks commits is promoted: what is left goes on, and the loss is told."""
    found, began = Found('postgresql'), time.monotonic()
    with pair(directory / 'servers') as (primary, standby):
        say('a PostgreSQL primary and its standby are up')
        _execute(primary.port, 'CREATE DATABASE chaos')
        hosts = f'host=127.0.0.1:{primary.port}&host=127.0.0.1:{standby.port}'
        url = f'postgresql+psycopg2://postgres@/chaos?{hosts}&target_session_attrs=read-write'
        installation = Installation(directory / 'installation', (url, SERVICES.get('rabbit').url))
        try:
            installation.start(engines=2, workers=3)
            before = installation.create('before', counted(twelve()))
            installation.ended(before)
            standby.hold_back()
            installation.update(before, counted(changed()))
            installation.ended(before)
            lost = installation.create('lost', counted(twelve()))
            installation.ended(lost)
            time.sleep(3.0)  # some heartbeats and sweeps are lost with them
            primary.stop()
            standby.promote()
            say('the standby was promoted')
            until(lambda: LOST in installation.cluster.logs(), 'the loss is told', ENDS_S)
            found.operations += 1
            until(lambda: 'may be lost in the database' in installation.cluster.logs(), 'results are named', ENDS_S)
            installation.update(before, counted(changed(), 'again'))
            state = installation.ended(before, ENDS_S)
            found.operations += 1
            if state != 'UPDATE_COMPLETE':
                found.problems.append(f'postgresql, after the loss: {state}')
        finally:
            installation.close()
    found.seconds = time.monotonic() - began
    return found


def _execute(port: int, statement: str) -> None:
    connection = psycopg2.connect(host='127.0.0.1', port=port, user='postgres', dbname='postgres')
    connection.autocommit = True
    with contextlib.closing(connection), connection.cursor() as cursor:
        cursor.execute(statement)


PARTS: dict[str, tuple[Callable[[Path, Say], Found], ...]] = {
    'mariadb': (over_galera,),
    'postgresql': (after_a_loss, over_rabbits),
}
"""By the kind of database."""
