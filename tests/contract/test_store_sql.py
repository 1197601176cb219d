"""What only stores on SQL have: deadlocks, lost connections, the schema and its versions."""

import pytest
from oslo_db import exception as db_exception
from sqlalchemy import event, func, inspect, select, text

from convergence import concurrency, errors
from convergence.core.effects import Decision
from convergence.db.connections.database import connect, normalise
from convergence.db.repositories.wiring import ports_of
from convergence.db.schema import migration
from convergence.db.schema.models import DUTY, METADATA, STACK
from convergence.db.scopes import NewStack, OneNode
from convergence.db.statements.store import Store
from tests.contract.rows import Backend
from tests.contract.test_store_effects import GOOD

MOVING = ('notified_at', 'finished_at', 'sequence')
"""Columns that differ from run to run."""


class Trouble:
    """Raises an error before a given statement, once or always."""

    def __init__(self, engine, error, always=False):
        self.engine, self.error, self.always = engine, error, always
        self.number, self.seen, self.raised = 0, 0, 0

    def __enter__(self):
        event.listen(self.engine, 'before_cursor_execute', self._statement)
        return self

    def __exit__(self, *raised):
        event.remove(self.engine, 'before_cursor_execute', self._statement)

    def at(self, number):
        """From now on, before the statement of this number; 0: never."""
        self.number, self.seen, self.raised = number, 0, 0

    def _statement(self, connection, cursor, statement, *rest):
        if statement.startswith('BEGIN'):
            return
        self.seen += 1
        if self.number and self.seen >= self.number and (self.always or not self.raised):
            self.raised += 1
            raise self.error


def backend_on(engine, patience_s=30.0):
    """A store without pauses."""
    store = Store(engine, interval_s=0.0, patience_s=patience_s)
    return Backend.of('sql', ports_of(store))


@pytest.mark.parametrize('effect', GOOD.values(), ids=GOOD)
def test_a_deadlock_at_any_statement_repeats_the_whole_transaction(engine, effect):
    """F131, F132: whatever came before it is done again; the result is as if nothing had happened.

    Before, not in the middle of what goes together to MariaDB: see `tests.contract.test_statement_batch`.
    """
    backend = backend_on(engine)
    decided = []

    def decide(view):
        decided.append(view)
        return Decision('done', (effect,))

    backend.fill()
    backend.store.transact(OneNode('V', 0), decide)
    expected = backend_rows(engine)
    with Trouble(engine, db_exception.DBDeadlock()) as trouble:
        for number in range(1, 20):
            trouble.at(0)
            empty(engine)
            backend.fill()
            decided.clear()
            trouble.at(number)
            assert backend.store.transact(OneNode('V', 0), decide).verdict == 'done'
            if not trouble.raised:
                break
            trouble.at(0)
            assert len(decided) in (1, 2)
            assert backend_rows(engine) == expected
    assert 3 <= number < 19


def backend_rows(engine):
    """Everything that is stored, as it is stored."""
    with engine.connect().execution_options(reads_only=True) as connection:
        return [
            sorted(map(repr, connection.execute(select(*(each for each in table.c if each.name not in MOVING)))))
            for table in METADATA.sorted_tables
        ]


def empty(engine):
    """Remove all rows but the duties."""
    with engine.connect() as connection:
        for table in METADATA.sorted_tables:
            if table is not DUTY:
                connection.execute(table.delete())
        connection.commit()


@pytest.mark.parametrize(
    ('error', 'raised'),
    [
        (db_exception.DBDeadlock(), errors.Conflict),
        (db_exception.DBConnectionError(), errors.DatabaseUnavailable),
    ],
)
def test_what_never_ends_is_told_after_a_bounded_time(engine, error, raised):
    """F131, F133: the text names what it was about."""
    backend = backend_on(engine, patience_s=0.5)
    backend.fill()
    before = backend_rows(engine)
    with Trouble(engine, error, always=True) as trouble:
        trouble.at(1)
        with pytest.raises(raised):
            backend.write(GOOD['events'], scope=OneNode('V', 0))
        assert trouble.raised > 1
    assert backend_rows(engine) == before


def test_a_connection_that_was_cut_is_replaced(server_engine):
    """F133: by the server, while nobody used it, and in the middle of a transaction."""
    backend = backend_on(server_engine)
    backend.fill()
    kind = server_engine.dialect.name
    cut = []

    def decide(view):
        if not cut:
            cut.append(True)
            cut_all(server_engine, kind)
        return Decision(view.stack.name, (GOOD['events'],))

    cut_all(server_engine, kind)
    assert backend.store.transact(OneNode('V', 0), decide).verdict == 'stack'
    assert len(backend.reader.events('S')) == 1


def cut_all(engine, kind):
    """End every other connection to the database."""
    other = connect(engine.url.render_as_string(hide_password=False))
    with other.connect() as connection:
        if kind == 'postgresql':
            connection.execute(
                text(
                    'SELECT pg_terminate_backend(pid) FROM pg_stat_activity '
                    'WHERE datname = current_database() AND pid <> pg_backend_pid()'
                )
            )
        else:
            mine = connection.execute(text('SELECT connection_id()')).scalar_one()
            found = connection.execute(text('SELECT id FROM information_schema.processlist WHERE db = database()'))
            for (number,) in found.all():
                if number != mine:
                    connection.execute(text(f'KILL {int(number)}'))
    other.dispose()


def test_a_transaction_that_was_given_up_leaves_its_connection_usable(engine):
    """Many more than there are connections."""
    backend = backend_on(engine)
    backend.fill()

    def refuse(view):
        raise errors.Invalid('no')

    for _ in range(60):
        with pytest.raises(errors.Invalid):
            backend.store.transact(OneNode('V', 0), refuse)
    assert backend.look(NewStack('p')).stack_count == 1


def test_a_statement_sees_what_was_committed_before_it_began(server_engine):
    """READ COMMITTED: a transaction that waited for a lock must not decide on what was there before it waited."""
    backend = backend_on(server_engine)
    backend.fill()
    with server_engine.connect() as connection:
        before = connection.execute(select(STACK.c.status_reason)).scalar_one()
        with server_engine.connect() as other:
            other.execute(STACK.update().values(status_reason='changed'))
            other.commit()
        assert (before, connection.execute(select(STACK.c.status_reason)).scalar_one()) == ('why', 'changed')


# --- the schema -------------------------------------------------------------------------------------------------


def test_the_schema_goes_up_and_down_and_is_what_the_code_says(database_url):
    """From nothing, to the newest, back to nothing, and up again; the second time with everything as the first."""
    engine = connect(database_url)
    try:
        assert migration.version(engine) is None
        with pytest.raises(errors.DatabaseUnavailable, match='db sync'):
            migration.require_newest(engine)
        for _ in range(2):
            assert migration.sync(engine) == migration.newest()
            migration.require_newest(engine)
            assert migration.differences(engine) == []
            assert set(METADATA.tables) <= set(inspect(engine).get_table_names())
            with engine.connect() as connection:
                assert set(connection.execute(select(DUTY.c.name)).scalars()) == set(migration.DUTIES)
            assert migration.sync(engine) == migration.newest()
            assert migration.sync(engine, 'base') is None
            assert set(METADATA.tables) & set(inspect(engine).get_table_names()) == set()
    finally:
        engine.dispose()


def test_a_difference_between_schema_and_code_is_found(database_url):
    engine = connect(database_url)
    try:
        migration.sync(engine)
        with engine.connect() as connection:
            connection.execute(text('ALTER TABLE stack ADD COLUMN surplus INTEGER'))
            connection.execute(text('DROP TABLE duty'))
            connection.commit()
        found = ' '.join(migration.differences(engine))
        assert 'surplus' in found
        assert 'duty' in found
    finally:
        engine.dispose()


def test_a_migrated_schema_does_what_the_tables_of_the_code_do(database_url):
    """The store works on what the migrations make."""
    engine = connect(database_url)
    try:
        migration.sync(engine)
        backend = backend_on(engine)
        backend.fill()
        backend.write(GOOD['finished node'])
        assert backend.sweeps.take_duty('sweeper', 'a', 60.0)
        with engine.connect() as connection:
            assert connection.execute(select(func.count()).select_from(STACK)).scalar_one() == 1
    finally:
        engine.dispose()


# --- the way there ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ('url', 'driver'),
    [
        ('postgresql://h/d', 'postgresql+psycopg2'),
        ('mysql://h/d', 'mysql+pymysql'),
        ('mariadb://h/d', 'mysql+pymysql'),
        ('mysql+pymysql://h/d', 'mysql+pymysql'),
        ('sqlite:///a.db', 'sqlite'),
    ],
)
def test_short_names_of_databases_get_their_drivers(url, driver):
    assert normalise(url).drivername == driver


@pytest.mark.parametrize('url', ['', 'nonsense', 'oracle://h/d', 'sqlite://', 'sqlite:///:memory:'])
def test_a_url_that_cannot_be_used_is_refused(url):
    with pytest.raises(errors.ConfigurationError, match='connection'):
        normalise(url)


def test_a_driver_that_stalls_green_threads_is_refused_where_there_are_some(monkeypatch):
    assert normalise('mysql+mysqldb://h/d').drivername == 'mysql+mysqldb'
    monkeypatch.setattr(concurrency, 'installed', lambda: concurrency.Executor.EVENTLET)
    assert normalise('mysql://h/d').drivername == 'mysql+pymysql'
    with pytest.raises(errors.ConfigurationError, match='mysqlclient stalls'):
        normalise('mysql+mysqldb://h/d')


def test_a_database_that_does_not_answer_is_named_without_its_password():
    with pytest.raises(errors.DatabaseUnavailable) as raised:
        connect('postgresql://me:s3cr3t@127.0.0.1:1/d')
    assert '127.0.0.1:1/d' in str(raised.value)
    assert 's3cr3t' not in str(raised.value)
