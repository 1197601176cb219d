"""What a connection is asked beside what the store wants of it: nothing, for as long as it is in use."""

import math
import select
import time
from collections import Counter

import pytest
from oslo_db.exception import DBError
from sqlalchemy import text
from sqlalchemy.exc import SQLAlchemyError

from convergence.db.connections.counting import count
from convergence.db.connections.database import connect
from convergence.db.statements.store import Store
from convergence.errors import DatabaseUnavailable


@pytest.fixture(params=('sqlite', 'postgresql', 'mariadb'))
def url(request, engines):
    return engines(request.param).url.render_as_string(hide_password=False)


def opened(url, idle_before_ping_s, idle_before_look_s=math.inf):
    """A database with one connection, and what is sent on it from now on."""
    idle = {'idle_before_look_s': idle_before_look_s, 'idle_before_ping_s': idle_before_ping_s}
    database, sent = connect(url, pool_size=1, **idle), Counter()
    count(database, lambda kind: sent.update([kind]))
    look(database)
    sent.clear()
    return database, sent


def look(database):
    with Store(database).reading() as connection:
        return connection.execute(text('SELECT 1')).scalar_one()


def write(database, holder=None, fails=False):
    def act(connection):
        where = text("UPDATE duty SET holder = NULL WHERE name = 'nobody'")
        connection.execute(where if holder is None else text('UPDATE duty SET holder = :holder'), {'holder': holder})
        if fails:
            raise RuntimeError

    Store(database).write(act, act)


def test_a_connection_in_use_is_not_asked_whether_it_is_there_and_nothing_is_undone_that_was_not_begun(url):
    database, sent = opened(url, math.inf)
    for _ in range(3):
        write(database)
    assert sent == {'statements': 3, 'commits': 3}
    look(database)
    begun = database.dialect.name == 'sqlite'  # elsewhere what only reads is in no transaction, or ends its own
    assert sent == {'statements': 4, 'commits': 3, **({'rollbacks': 1} if begun else {})}
    with pytest.raises(RuntimeError):
        write(database, fails=True)
    assert sent == {'statements': 5, 'commits': 3, 'rollbacks': 1 + begun}
    assert look(database) == 1
    database.dispose()


def test_who_reads_a_part_of_an_answer_or_gets_none_leaves_nothing_behind(url):
    database, _ = opened(url, math.inf)
    with Store(database).reading() as connection:
        connection.execute(text('SELECT 1 UNION SELECT 2'))
    assert look(database) == 1
    with pytest.raises((DBError, SQLAlchemyError)), Store(database).reading() as connection:
        connection.execute(text('SELECT nothing FROM nowhere'))
    assert look(database) == 1
    database.dispose()


def test_each_question_sees_what_was_committed_before_it(url):
    database, other = opened(url, math.inf)[0], opened(url, math.inf)[0]
    with Store(database).reading() as connection:
        names = [name for (name,) in connection.execute(text('SELECT name FROM duty'))]
        if other.dialect.name != 'sqlite':
            write(other, said := f'{time.monotonic()}')
            found = {each for (each,) in connection.execute(text('SELECT holder FROM duty'))}
            assert names and found == {said}
    database.dispose()
    other.dispose()


@pytest.mark.parametrize('url', ['postgresql', 'mariadb'], indirect=True)
def test_a_connection_that_was_lost_while_nobody_used_it_is_replaced_unnoticed(url):
    database, sent = opened(url, 0.0)
    lose(database)
    assert look(database) == 1
    assert sent['statements'] > 1
    database.dispose()


@pytest.mark.parametrize('url', ['postgresql', 'mariadb'], indirect=True)
def test_a_connection_that_rests_is_looked_at_and_the_server_is_asked_where_it_has_ended_it(url):
    database, sent = opened(url, math.inf, idle_before_look_s=0.0)
    for _ in range(3):
        look(database)
    assert sent['statements'] == 3
    lose(database)
    assert look(database) == 1
    database.dispose()


@pytest.mark.parametrize('url', ['postgresql', 'mariadb'], indirect=True)
def test_a_connection_that_was_lost_in_use_fails_once(url):
    database, _ = opened(url, math.inf)
    lose(database)
    with pytest.raises(DatabaseUnavailable):
        look(database)
    assert look(database) == 1
    lose(database)
    with pytest.raises(DatabaseUnavailable):
        write(database)
    write(database)
    database.dispose()


def lose(database):
    """The server ends the connection that rests in the pool, and it has arrived here."""
    with database.connect() as connection:
        driven = connection.connection.dbapi_connection
        ask, end = {
            'postgresql': ('SELECT pg_backend_pid()', 'SELECT pg_terminate_backend({})'),
            'mariadb': ('SELECT connection_id()', 'KILL {}'),
            'mysql': ('SELECT connection_id()', 'KILL {}'),
        }[database.dialect.name]
        number = connection.exec_driver_sql(ask).scalar_one()
    other = connect(database.url.render_as_string(hide_password=False), pool_size=1)
    with other.connect() as connection:
        connection.exec_driver_sql(end.format(number))
    other.dispose()
    arrived, _, _ = select.select([getattr(driven, '_sock', driven)], [], [], 60.0)
    assert arrived
