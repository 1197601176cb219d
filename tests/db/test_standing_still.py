"""A process that stands still in the middle of a transaction: stopped, swapped out, its host without power."""

from dataclasses import replace

import pytest
from sqlalchemy import text

from convergence import errors
from convergence.core.effects import Decision, InsertStack, UpdateStack
from convergence.db.connections.database import UNKNOWN_VARIABLE, Timeouts, _prepare_mysql, connect
from convergence.db.repositories.reads.stacks import StackReader
from convergence.db.repositories.roster import Roster
from convergence.db.schema.models import RESOURCE, SERVICE, STACK
from convergence.db.scopes import NewStack, StackAlone
from convergence.db.statements.store import Store
from tests.db.test_outages import STACK as STORED
from tests.harness import Harness, database
from tests.services import service

SERVERS = ('postgresql', 'mariadb')


@pytest.fixture(params=SERVERS)
def url(request):
    """An empty database of each kind that several processes use at once."""
    server = service(request.param)
    url = server.create()
    yield url
    server.drop(url.partition('?')[0].rpartition('/')[2])


@pytest.fixture
def open_store(url):
    """A function that gives a store, as if it were that of another process."""
    opened = []

    def open_it(timeouts, **options):
        engine = database(url) if not opened else connect(url, timeouts=timeouts)
        opened.append(engine)
        if len(opened) == 1:
            store = Store(engine)
            store.transact(NewStack('p'), lambda view: Decision(None, (InsertStack(STORED),)))
            return open_it(timeouts, **options)
        return Store(engine, interval_s=0.0, **options)

    yield open_it
    for engine in opened:
        engine.dispose()


def rename(view):
    """A decision that can be seen."""
    return Decision('renamed', (UpdateStack('S', None, {'status_reason': 'renamed'}),))


def test_a_transaction_in_which_nothing_happens_is_undone_and_the_others_go_on(open_store):
    """It holds a row that another process waits for. The late one is told when it wakes, and has changed nothing."""
    still = open_store(Timeouts(idle_s=1))
    other = open_store(Timeouts(lock_s=30))
    with pytest.raises(errors.DatabaseUnavailable), still.writing() as connection:
        connection.execute(STACK.update().values(status_reason='by the one that stands still'))
        assert other.transact(StackAlone('S'), rename).verdict == 'renamed'
        connection.execute(text('SELECT 1'))
    assert StackReader(still).stack('S').status_reason == 'renamed'


def test_a_lock_that_is_not_to_be_had_is_waited_for_for_a_bounded_time(open_store):
    """And then the request is refused in words that say whether to repeat it; other rows are not concerned."""
    holder = open_store(Timeouts())
    waiting = open_store(Timeouts(lock_s=1), patience_s=1.5)
    tried = []
    with holder.writing() as connection:
        connection.execute(STACK.update().values(status_reason='held'))
        with pytest.raises(errors.Conflict, match='can be repeated'):
            waiting.transact(StackAlone('S'), lambda view: tried.append(view) or rename(view))
        other = replace(STORED, id='T', name='t')
        waiting.transact(NewStack('p'), lambda view: Decision(None, (InsertStack(other),)))
    assert tried == []
    assert StackReader(waiting).stack('T').name == 't'
    assert waiting.transact(StackAlone('S'), rename).verdict == 'renamed'


def test_patience_bounds_the_waiting_for_locks_too(open_store):
    """No caller waits for one lock timeout after the other for longer than that."""
    holder = open_store(Timeouts())
    waiting = open_store(Timeouts(lock_s=1), patience_s=0.5)
    with holder.writing() as connection:
        connection.execute(STACK.update().values(status_reason='held'))
        with pytest.raises(errors.Conflict):
            waiting.transact(StackAlone('S'), rename)


def test_a_sweeper_goes_on_to_what_is_not_held(url):
    """A worker has died; another process stands still with a lock on one of its rows."""
    database(url).dispose()
    engine, holder = connect(url, timeouts=Timeouts(lock_s=1)), Store(connect(url))
    try:
        harness = Harness(engine)
        harness.store._patience_s = 1.5
        stacks = [harness.create({'r': 'x'}, name) for name in 'ab']
        for address in harness.messages.checks:
            harness.workers[0]._parts.checks._steps.begin(*address)
        harness.messages.checks.clear()
        harness.die(harness.workers[0])
        held = harness.sweeps.expired_claims(1)[0].resource_id
        with holder.writing() as connection:
            connection.execute(RESOURCE.update().where(RESOURCE.c.id == held).values(status_reason='held'))
            harness.sweep()
            free = {row.id: row.owner is None for stack in stacks for row in harness.rows(stack)}
            assert free.pop(held) is False
            assert list(free.values()) == [True]
        harness.recover()
        assert [harness.state(stack) for stack in stacks] == ['CREATE_COMPLETE'] * 2
    finally:
        engine.dispose()
        holder.engine.dispose()


def test_what_is_written_without_a_transaction_of_the_store_is_refused_in_the_same_words(open_store):
    holder, waiting = open_store(Timeouts()), open_store(Timeouts(lock_s=1), patience_s=0.5)
    Roster(holder).register('W', 'worker', 'host', '1', 60.0)
    with holder.writing() as connection:
        connection.execute(SERVICE.update().values(version='2'))
        with pytest.raises(errors.Conflict):
            Roster(waiting).beat('W')
    assert Roster(waiting).beat('W')


SETTINGS = {
    'postgresql': {
        "SELECT current_setting('lock_timeout')": '7s',
        "SELECT current_setting('idle_in_transaction_session_timeout')": '13s',
        'SHOW transaction_isolation': 'read committed',
    },
    'mysql': {'SELECT @@innodb_lock_wait_timeout': 7, 'SELECT @@idle_transaction_timeout': 13},
}


def test_the_limits_hold_in_every_connection_and_after_a_transaction_was_undone(url):
    engine = connect(url, timeouts=Timeouts(lock_s=7, idle_s=13))
    try:
        for _ in range(2):
            with engine.connect() as one, engine.connect() as two:
                for connection in (one, two):
                    for question, answer in SETTINGS[engine.dialect.name].items():
                        assert connection.exec_driver_sql(question).scalar_one() == answer
                    connection.rollback()
    finally:
        engine.dispose()


def test_a_connection_that_was_used_at_another_isolation_level_comes_back_to_read_committed(open_store):
    """MySQL begins with REPEATABLE READ: whoever waited for a lock would then read what was there before it."""
    used, other = open_store(Timeouts()), open_store(Timeouts())
    with used.engine.connect().execution_options(isolation_level='REPEATABLE READ') as connection:
        connection.execute(STACK.select())
        driven = connection.connection.dbapi_connection
    with used.engine.connect() as connection:
        assert connection.connection.dbapi_connection is driven
        connection.execute(STACK.select())
        other.transact(StackAlone('S'), rename)
        assert [row.status_reason for row in connection.execute(STACK.select())] == ['renamed']


@pytest.mark.parametrize(
    ('url', 'wanted'),
    [
        ('postgresql', {'connect_timeout': '10', 'tcp_user_timeout': '60000', 'keepalives': '1'}),
        ('mariadb', {'connect_timeout': '10', 'read_timeout': '60', 'write_timeout': '60'}),
    ],
    indirect=['url'],
)
def test_a_server_that_says_nothing_any_more_is_not_waited_for_for_ever(url, wanted):
    engine = connect(url)
    assert wanted.items() <= dict(engine.url.query).items()
    engine.dispose()
    engine = connect(f'{url}{"&" if "?" in url else "?"}connect_timeout=3')
    assert engine.url.query['connect_timeout'] == '3'
    engine.dispose()


class Server:
    """Takes every statement but those that name some variables, as a server does that has no such variables."""

    def __init__(self, *unknown):
        self.unknown, self.taken = unknown, []
        self.info = {}

    def cursor(self):
        """Itself."""
        return self

    def __enter__(self):
        return self

    def __exit__(self, *raised):
        pass

    def execute(self, statement, values=()):
        """Take a statement or refuse it."""
        for name in self.unknown:
            if name in statement:
                raise OSError(UNKNOWN_VARIABLE, f"Unknown system variable '{name}'")
        self.taken.append(statement.replace('%s', '{}').format(*values))

    def fetchone(self):
        """Every variable that there is, is on."""
        return (1,)


def test_a_server_without_a_limit_for_idle_transactions_limits_idle_sessions():
    server = Server('idle_transaction_timeout', 'wsrep_on')
    _prepare_mysql(Timeouts(), server, server)
    assert server.taken[-1] == 'SET SESSION wait_timeout = 60'
    assert server.info == {}


def test_a_server_of_a_galera_cluster_applies_what_the_others_have_committed_before_it_answers():
    server = Server()
    _prepare_mysql(Timeouts(), server, server)
    assert server.taken[-1] == 'SET SESSION wsrep_sync_wait = @@GLOBAL.wsrep_sync_wait | 3'
    assert server.info == {'galera': True}
