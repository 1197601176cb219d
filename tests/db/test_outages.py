"""A database that is away for a while, on the servers that production uses."""

import logging

import pytest
from sqlalchemy import text

from convergence import concurrency, errors
from convergence.core.effects import Decision, InsertStack, UpdateStack
from convergence.core.model import Action, Status
from convergence.core.rows import Stack
from convergence.db.repositories.reads.stacks import StackReader
from convergence.db.repositories.roster import Roster
from convergence.db.repositories.sweeps import Sweeps
from convergence.db.scopes import NewStack, StackAlone
from convergence.db.statements.store import Store
from tests.db.proxy import proxied
from tests.harness import database

STACK = Stack('S', 'stack', 'p', Action.CREATE, Status.COMPLETE, 'why', None, None, None, 60, True, 0.0)
SECRET = 'value-of-a-secret'


class Pauses(list):
    """The pauses that would be made, in seconds; nothing is waited for. What `at[n]` says happens in the n-th."""

    def __init__(self):
        super().__init__()
        self.at = {}

    def __call__(self, duration_s):
        self.append(duration_s)
        self.at.pop(len(self), lambda: None)()


@pytest.fixture(params=['postgresql', 'mariadb'])
def away(request):
    """A server that can be taken away, and a store with one stack on it."""
    with proxied(request.param) as (proxy, url):
        engine = database(url)
        store = Store(engine)
        store.transact(NewStack('p'), lambda view: Decision(None, (InsertStack(STACK),)))
        yield proxy, store
        engine.dispose()


@pytest.fixture
def pauses(monkeypatch):
    """What the store takes for pauses."""
    made = Pauses()
    monkeypatch.setattr(concurrency, 'sleep', made)
    return made


def rename(view):
    """A decision that can be seen."""
    return Decision('renamed', (UpdateStack('S', None, {'status_reason': SECRET}),))


def test_a_transaction_outlasts_a_restart_of_its_database(away, pauses):
    """Its connection breaks in the middle, the server refuses new ones for a while, and then it is there again."""
    proxy, store = away
    pauses.at[4] = proxy.open
    decided = []

    def decide(view):
        if not decided:
            proxy.close()
        decided.append(view)
        return rename(view)

    assert store.transact(StackAlone('S'), decide).verdict == 'renamed'
    assert StackReader(store).stack('S').status_reason == SECRET
    assert len(pauses) == 4
    assert len(decided) == 2


def test_a_restart_is_waited_for_and_an_end_is_told(away, pauses):
    """Long enough for a server to restart, not for ever, and not all at once."""
    proxy, store = away
    proxy.close()
    with pytest.raises(errors.DatabaseUnavailable):
        store.transact(StackAlone('S'), rename)
    assert 30.0 <= sum(pauses) <= 34.0
    assert pauses[0] < 0.2
    assert max(pauses) <= 4.0


def test_a_conflict_is_tried_again_quickly(away, pauses):
    _, store = away

    def decide(view):
        raise errors.Conflict('no')

    with pytest.raises(errors.Conflict):
        store.transact(StackAlone('S'), decide)
    assert sum(pauses[:11]) < 6.0
    assert 30.0 <= sum(pauses) < 31.0


QUESTIONS = {
    'reader': lambda store: StackReader(store).stack('S'),
    'reader of counts': lambda store: StackReader(store).node_counts('V'),
    'roster': lambda store: Roster(store).beat('W'),
    'roster of services': lambda store: Roster(store).services(),
    'sweeps': lambda store: Sweeps(store).take_duty('sweeper', 'W', 1.0),
    'sweeps of rows': lambda store: Sweeps(store).expired_claims(10),
    'transaction': lambda store: store.transact(StackAlone('S'), rename),
}


@pytest.mark.parametrize('question', QUESTIONS.values(), ids=QUESTIONS)
def test_whoever_asks_is_told_in_one_line_that_the_database_cannot_be_reached(away, pauses, question, caplog):
    """Never in the words of a driver, and without anything secret: also not in the log."""
    proxy, store = away
    proxy.close()
    with caplog.at_level(logging.DEBUG), pytest.raises(errors.DatabaseUnavailable) as told:
        question(store)
    assert str(told.value).startswith('The database cannot be reached: ')
    assert '\n' not in str(told.value)
    assert SECRET not in str(told.value) + caplog.text
    proxy.open()
    assert StackReader(store).stack('S').id == 'S'


def test_a_connection_that_breaks_while_it_is_used_is_told_like_one_that_cannot_be_made(away):
    proxy, store = away
    for opened in (store.reading, store.writing):
        with pytest.raises(errors.DatabaseUnavailable), opened() as connection:
            connection.execute(text('SELECT 1'))
            proxy.close()
            connection.execute(text('SELECT 1'))
        proxy.open()
        assert StackReader(store).stack('S').id == 'S'


def test_connections_that_are_all_in_use_are_told_too(tmp_path, monkeypatch):
    """Of which kind the database is makes no difference: it is the pool that waits."""
    from sqlalchemy import exc

    store = Store(database(f'sqlite:///{tmp_path / "convergence.sqlite"}'))

    def none_left():
        raise exc.TimeoutError('QueuePool limit of size 1 overflow 0 reached')

    monkeypatch.setattr(store.engine, 'connect', none_left)
    with pytest.raises(errors.DatabaseUnavailable, match='max_pool_size'):
        StackReader(store).stack('S')
