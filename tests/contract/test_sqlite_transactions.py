"""SQLite lets one transaction write at a time. Whoever may write waits for the lock before it reads anything."""

import threading

import pytest
from oslo_db import exception as db_exception
from sqlalchemy import text

from convergence.db.connections.database import connect

COUNTS = 60


@pytest.fixture
def url(tmp_path):
    return f'sqlite:///{tmp_path / "convergence.sqlite"}'


@pytest.fixture
def engine(url):
    engine = connect(url)
    with engine.connect() as connection:
        connection.execute(text('CREATE TABLE counter (n INTEGER)'))
        connection.execute(text('INSERT INTO counter VALUES (0)'))
        connection.commit()
    yield engine
    engine.dispose()


def statements(connection):
    """What is really sent over a connection, from now on."""
    sent = []
    connection.connection.dbapi_connection.set_trace_callback(sent.append)
    return sent


def test_a_transaction_that_may_write_takes_the_lock_first(engine):
    with engine.connect() as connection:
        sent = statements(connection)
        connection.execute(text('SELECT n FROM counter'))
        assert sent[-2:] == ['BEGIN IMMEDIATE', 'SELECT n FROM counter']
        connection.commit()
        assert sent[-1] == 'COMMIT'


def test_a_transaction_that_only_reads_takes_no_lock(engine):
    with engine.connect() as writing, engine.connect().execution_options(reads_only=True) as reading:
        writing.execute(text('UPDATE counter SET n = 1'))
        sent = statements(reading)
        assert reading.execute(text('SELECT n FROM counter')).scalar_one() == 0
        assert sent == ['BEGIN', 'SELECT n FROM counter']
        writing.commit()
        assert reading.execute(text('SELECT n FROM counter')).scalar_one() == 0  # it still sees what it saw


def test_who_reads_and_then_writes_is_never_refused_because_another_process_wrote_in_between(engine, url):
    other, failures = connect(url), []

    def count(own):
        try:
            for _ in range(COUNTS):
                with own.connect() as connection:
                    seen = connection.execute(text('SELECT n FROM counter')).scalar_one()
                    connection.execute(text('UPDATE counter SET n = :n'), {'n': seen + 1})
                    connection.commit()
        except Exception as error:  # noqa: BLE001 - told by the test
            failures.append(error)

    threads = [threading.Thread(target=count, args=(own,)) for own in (engine, other)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    other.dispose()
    assert failures == []
    with engine.connect() as connection:
        assert connection.execute(text('SELECT n FROM counter')).scalar_one() == 2 * COUNTS


def test_a_lock_that_cannot_be_had_is_worth_a_retry_and_leaves_the_connection_usable(engine):
    with engine.connect() as holder:
        holder.execute(text('UPDATE counter SET n = 1'))
        with engine.connect() as refused:
            refused.connection.dbapi_connection.execute('PRAGMA busy_timeout=0')
            with pytest.raises(db_exception.DBDeadlock):
                refused.execute(text('SELECT n FROM counter'))
        holder.commit()
    with engine.connect() as one, engine.connect() as two:  # whichever of them the pool gives
        for each in (one, two):
            sent = statements(each)
            each.execute(text('UPDATE counter SET n = n + 1'))
            assert 'BEGIN IMMEDIATE' in sent
            each.rollback()
            sent.clear()
            reading = each.execution_options(reads_only=True)
            assert reading.execute(text('SELECT n FROM counter')).scalar_one() == 1
            assert sent[0] == 'BEGIN'
            reading.rollback()
