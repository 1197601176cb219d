"""What goes to a server together ends at its first failure, and nothing of it is committed that comes after one."""

from __future__ import annotations

import threading
from collections import Counter
from typing import Any

import pytest
from oslo_db import exception as db_exception
from sqlalchemy import bindparam, delete, event, func, insert, select, update

from convergence.db.connections.counting import count
from convergence.db.schema.models import DUTY, EVENT, PROJECT
from convergence.db.statements.prepared.batch import LONGEST, StatementBatch
from convergence.db.statements.prepared.statement import BoundStatement, FewRowsInsert, PreparedStatement
from convergence.db.statements.store import Store
from convergence.errors import Conflict, DatabaseUnavailable
from tests.contract.test_connections import lose
from tests.harness import Harness, emptied, things

INSERT = PreparedStatement(insert(PROJECT), ('id',))
TAKE = PreparedStatement(update(DUTY).where(DUTY.c.name == bindparam('duty')).values(holder=bindparam('new')))
READ = PreparedStatement(select(DUTY.c.holder).where(DUTY.c.name == bindparam('duty')).with_for_update())


@pytest.fixture(params=['mariadb', 'postgresql'])
def engine(engines: Any, request: Any) -> Any:
    """A server, with nothing in it."""
    return emptied(engines(request.param))


def is_postgresql(engine: Any) -> bool:
    return bool(engine.dialect.name == 'postgresql')


def project(name: str) -> BoundStatement:
    return INSERT.call({'id': name})


def duty_of(engine: Any) -> str:
    with engine.connect() as connection:
        return str(connection.execute(select(DUTY.c.name).order_by(DUTY.c.name).limit(1)).scalar_one())


def stored(engine: Any) -> list[str]:
    with engine.connect() as connection:
        return sorted(connection.execute(select(PROJECT.c.id)).scalars())


def write(engine: Any, *calls: BoundStatement | tuple[BoundStatement, str]) -> None:
    """Carry them out in a transaction; a pair has to find one row."""

    def act(connection: Any) -> None:
        batch = StatementBatch(connection)
        for call in calls:
            if isinstance(call, tuple):
                batch.add_one(*call)
            else:
                batch.add(call)
        batch.send_with_commit()

    Store(engine, patience_s=0.0).write(act, act)


def sent_by(engine: Any, *calls: BoundStatement | tuple[BoundStatement, str]) -> Counter[str]:
    sent: Counter[str] = Counter()
    stop = count(engine, lambda kind: sent.update([kind]))
    try:
        with engine.connect() as connection:
            connection.exec_driver_sql('SELECT 1')
        sent.clear()
        write(engine, *calls)
    finally:
        stop()
    return sent


def test_what_refuses_nothing_goes_with_the_commit(engine: Any) -> None:
    assert sent_by(engine, project('a'), project('b')) == {'statements': 1, 'commits': 1}
    assert stored(engine) == ['a', 'b']


def test_what_may_refuse_is_known_before_the_commit(engine: Any) -> None:
    """PostgreSQL commits nothing where a statement fails; MariaDB neither, but what fails there is the next statement.

    Where none follows, or one that cannot look at how many rows were found, MariaDB has to be asked.
    """
    taken = TAKE.call({'duty': duty_of(engine), 'new': 'me'})
    ways = 1 if is_postgresql(engine) else 2
    assert sent_by(engine, project('a'), (taken, 'duty'), (taken, 'duty'), taken) == {'statements': 1, 'commits': 1}
    assert sent_by(engine, project('b'), (taken, 'duty'), project('c')) == {'statements': ways, 'commits': 1}
    assert sent_by(engine, project('d'), (taken, 'duty')) == {'statements': 1, 'commits': 1}
    assert stored(engine) == ['a', 'b', 'c', 'd']


FEW_EVENTS = FewRowsInsert(EVENT, ('id', 'stack_id', 'action', 'status', 'reason', 'at'))


def told(name: str) -> BoundStatement:
    one = {'id': name, 'stack_id': 's', 'action': 'CREATE', 'status': 'COMPLETE', 'reason': '', 'at': 1.5}
    return FEW_EVENTS.call([one, {**one, 'id': f'{name}2'}])


READ_ALONE = PreparedStatement(select(DUTY.c.name).where(DUTY.c.name == 'nobody'))
FORGET = PreparedStatement(delete(DUTY).where(DUTY.c.name == 'nobody'))


@pytest.mark.parametrize('next_one', ['update', 'delete', 'insert', 'read', 'another', 'nothing'])
@pytest.mark.parametrize('is_there', [True, False])
def test_whatever_comes_next_sees_that_a_row_is_not_found(engine: Any, next_one: str, is_there: bool) -> None:
    """Also where it finds nothing itself. What was written before is not stored either, and locks nothing any more."""
    duty = duty_of(engine)
    missing = TAKE.call({'duty': duty if is_there else 'nobody', 'new': 'me'})
    what = (missing, 'a duty')
    follower: list[Any] = {
        'update': [TAKE.call({'duty': 'nobody', 'new': 'x'})],
        'delete': [FORGET.call({})],
        'insert': [told('e')],
        'read': [READ_ALONE.call({})],
        'another': [what, told('e')],
        'nothing': [],
    }[next_one]

    def seen() -> tuple[list[str], int]:
        with engine.connect() as connection:
            count = connection.execute(select(func.count()).select_from(EVENT).where(EVENT.c.stack_id == 's')).scalar()
            return stored(engine), int(count or 0)

    events = 2 if next_one in ('insert', 'another') else 0
    if is_there:
        write(engine, project('a'), what, *follower)
        assert seen() == (['a'], events)
    else:
        with pytest.raises(Conflict, match='is not as it was read'):
            write(engine, project('a'), what, *follower)
        assert seen() == ([], 0)
    write(engine, project('b'), TAKE.call({'duty': duty, 'new': 'me'}))


def test_nothing_is_committed_where_a_row_is_not_found(engine: Any) -> None:
    what = 'something' if is_postgresql(engine) else 'no such duty'
    with pytest.raises(Conflict, match=f'{what} is not as it was read'):
        write(engine, project('a'), (TAKE.call({'duty': 'nobody', 'new': 'me'}), 'no such duty'), project('b'))
    assert stored(engine) == []


@pytest.mark.parametrize('place', range(3))
def test_a_statement_that_fails_ends_what_goes_with_the_commit(engine: Any, place: int) -> None:
    """The error is its own, nothing is stored, and the connection holds no lock when it is used again."""
    write(engine, project('there'))
    names = ['a', 'b']
    names.insert(place, 'there')
    with pytest.raises(db_exception.DBDuplicateEntry, match='pk_project' if is_postgresql(engine) else '1062'):
        write(engine, *map(project, names))
    assert stored(engine) == ['there']
    write(engine, project('a'), project('b'))
    assert stored(engine) == ['a', 'b', 'there']


def test_a_lock_that_is_not_to_be_had_with_the_commit_is_a_conflict(engine: Any) -> None:
    """MariaDB undoes the statement alone: the rest is undone by us, or it would be committed by whoever comes next."""
    name = duty_of(engine)
    engine.dispose()
    with engine.connect() as holder:
        holder.execute(select(DUTY.c.name).where(DUTY.c.name == name).with_for_update())
        with engine.connect() as other:
            limit = "lock_timeout = '1s'" if is_postgresql(engine) else 'innodb_lock_wait_timeout = 1'
            other.exec_driver_sql(f'SET SESSION {limit}')
            other.commit()
        with pytest.raises(Conflict):
            write(engine, project('a'), TAKE.call({'duty': name, 'new': 'me'}), project('b'))
        assert stored(engine) == []
        write(engine, project('c'))
    assert stored(engine) == ['c']


def test_a_connection_that_is_lost_is_told_as_such(engine: Any) -> None:
    lose(engine)
    with pytest.raises(DatabaseUnavailable):
        write(engine, project('a'), project('b'))
    assert stored(engine) == []


def test_what_was_left_for_the_commit_is_forgotten_where_there_is_none(engine: Any) -> None:
    def act(connection: Any) -> None:
        batch = StatementBatch(connection)
        batch.add(project('a'))
        batch.send_with_commit()
        raise RuntimeError

    with pytest.raises(RuntimeError):
        Store(engine).write(act, act)
    write(engine, project('b'))
    assert stored(engine) == ['b']


def test_each_of_what_is_read_together_sees_what_was_committed_before_its_turn(engine: Any) -> None:
    """A locking read waits, and what comes after it in the same message is read when it has the lock."""
    name = duty_of(engine)
    taken, read = threading.Event(), []

    def wait() -> None:
        with engine.connect() as connection:
            taken.set()
            read.extend(
                StatementBatch(connection).read(
                    READ.call({'duty': name}), PreparedStatement(select(PROJECT.c.id)).call({})
                )
            )

    with engine.connect() as holder:
        holder.execute(update(DUTY).where(DUTY.c.name == name).values(holder='me'))
        waiting = threading.Thread(target=wait)
        waiting.start()
        assert taken.wait(60)
        waiting.join(0.2)  # most likely it waits for the lock by now
        holder.execute(insert(PROJECT), {'id': 'a'})
        holder.commit()
        waiting.join(60)
    assert read == [[['me']], [['a']]]


def test_what_is_long_goes_in_pieces(engine: Any) -> None:
    """A server refuses messages that are longer than it was told to take."""
    name = duty_of(engine)
    nobody = TAKE.call({'duty': 'x' * (LONGEST + 1), 'new': 'x'})
    assert sent_by(engine, nobody, nobody, TAKE.call({'duty': name, 'new': 'x'})) == {'statements': 3, 'commits': 1}


@pytest.mark.parametrize('requires', [False, True], ids=['independent', 'chain'])
@pytest.mark.parametrize('operation', ['create', 'update', 'delete'])
def test_a_resource_costs_few_ways_to_the_server(engine: Any, operation: str, requires: bool) -> None:
    """Lock and read; claim, with its event and the commit; what has become of it, with all else and the commit."""
    figures = []
    for size in (10, 20):
        harness = Harness(emptied(engine))
        names = [f'n{number}' for number in range(size)]
        resources: dict[str, Any] = things(names)
        if requires:
            resources = {
                name: {'value': 'x', 'after': names[max(0, number - 1) : number]} for number, name in enumerate(names)
            }
        stack = harness.create(resources)
        if operation != 'create':
            harness.run(limit=500)
        if operation == 'update':
            harness.update(stack, {name: {**each, 'value': 'y'} for name, each in resources.items()})
        elif operation == 'delete':
            harness.delete(stack)
        sent: Counter[str] = Counter()
        stop = count(engine, lambda kind: sent.update([kind]))  # noqa: B023 - it ends with this round
        with engine.connect() as connection:
            connection.exec_driver_sql('SELECT 1')
        sent.clear()
        harness.run(limit=500)
        stop()
        assert harness.state(stack) == f'{operation.upper()}_COMPLETE'
        figures.append(sent)
    more = {kind: (figures[1][kind] - figures[0][kind]) / 10 for kind in ('statements', 'commits')}
    inputs = requires and operation != 'delete' and is_postgresql(engine)  # MariaDB reads them along with the node
    assert more == {'statements': 3 + inputs, 'commits': 2}


@pytest.mark.parametrize('before', [1, 2, 3])
@pytest.mark.parametrize('operation', ['create', 'delete'])
def test_mariadb_gets_few_statements_for_a_resource_that_a_thread_goes_on_with(
    engines: Any, operation: str, before: int
) -> None:
    """What has become of the one before, its node, the arrival; look at the next one, claim it; both events; commit.

    Also where it requires several: each requires some of those before it.
    """
    engine = emptied(engines('mariadb'))
    figures = []
    for size in (10, 20):
        harness = Harness(emptied(engine), max_inline_nodes=100)
        names = [f'n{number}' for number in range(size)]
        stack = harness.create(
            {name: {'value': 'x', 'after': names[max(0, place - before) : place]} for place, name in enumerate(names)}
        )
        if operation == 'delete':
            harness.run(limit=500)
            harness.delete(stack)
        sent: list[str] = []

        def note(connection: Any, cursor: Any, statement: str, *rest: Any) -> None:
            sent.extend(statement.split('; '))  # noqa: B023 - it ends with this round

        event.listen(engine, 'before_cursor_execute', note)
        harness.run(limit=500)
        event.remove(engine, 'before_cursor_execute', note)
        assert harness.state(stack) == f'{operation.upper()}_COMPLETE'
        figures.append(len(sent))
    assert (figures[1] - figures[0]) / 10 == 7


def test_a_transaction_begins_with_its_first_statement(engines: Any) -> None:
    """What psycopg2 would send by itself, and wait for, goes along: one way to the server less."""
    engine = emptied(engines('postgresql'))
    with engine.connect() as connection:
        name = connection.execute(select(DUTY.c.name).limit(1)).scalar_one()
        driven = connection.connection.dbapi_connection
        assert driven.autocommit and driven.is_begun
        begun_at = connection.exec_driver_sql('SELECT now()').scalar_one()
        connection.execute(update(DUTY).where(DUTY.c.name == name).values(holder='me'))
        assert connection.exec_driver_sql('SELECT now()').scalar_one() == begun_at, 'all of it is one transaction'
        connection.rollback()
        assert connection.exec_driver_sql('SELECT now()').scalar_one() > begun_at
        assert connection.execute(select(DUTY.c.holder).where(DUTY.c.name == name)).scalar_one() is None
    with engine.connect().execution_options(isolation_level='REPEATABLE READ') as connection:
        level = connection.exec_driver_sql('SHOW transaction_isolation').scalar_one()
        assert (level, driven.closed) == ('repeatable read', 0)
    with engine.connect() as connection:
        assert connection.exec_driver_sql('SHOW transaction_isolation').scalar_one() == 'read committed'
        driven = connection.connection.dbapi_connection
        driven.set_isolation_level(0)
        connection.exec_driver_sql('VACUUM project')  # which no transaction may hold
        driven.set_isolation_level(1)
        connection.execute(insert(PROJECT), [{'id': each} for each in 'abc'])
        connection.rollback()
    assert stored(engine) == []


def test_what_could_not_be_sent_has_begun_no_transaction(engines: Any) -> None:
    """psycopg2 refuses a value: what comes next would be committed one by one, if it were taken for begun."""
    engine = emptied(engines('postgresql'))
    with engine.connect() as connection:
        connection.connection.dbapi_connection.rollback()
        with pytest.raises(Exception, match='NUL'):
            connection.execute(insert(PROJECT), {'id': 'a\0b'})
        connection.execute(insert(PROJECT), {'id': 'c'})
        connection.rollback()
    assert stored(engine) == []


def test_a_commit_on_a_connection_that_is_lost_is_an_error(engines: Any) -> None:
    engine = emptied(engines('postgresql'))

    def act(connection: Any) -> None:
        connection.execute(insert(PROJECT), {'id': 'a'})
        number = connection.exec_driver_sql('SELECT pg_backend_pid()').scalar_one()
        with engine.connect() as other:
            other.exec_driver_sql(f'SELECT pg_terminate_backend({number})')

    with pytest.raises(DatabaseUnavailable):
        Store(engine, patience_s=0.0).write(act, act)
    assert stored(engine) == []
