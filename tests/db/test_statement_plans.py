"""What a step costs does not grow with what is in the database: no statement of an operation reads a whole table."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import psycopg2.extensions
import pytest
from sqlalchemy import event

from convergence.db.connections.drivers import connection_class, opened
from tests.bench.copies import copy_stack, take_statistics
from tests.bench.shapes import layers
from tests.harness import Context, Harness, database
from tests.services import service

STACKS = 1500
"""Stacks that are at rest beside the one that something is done to."""

GROWING = ('stack', 'template', 'traversal', 'sync_point', 'resource', 'event', 'observation')
FOUND_BEFORE = re.compile(r'row_count\(\) <> \d+')
EXPLAINED = ('SELECT', 'UPDATE', 'DELETE', 'WITH')


def chain(value: str) -> dict[str, Any]:
    """Resources that require each other, several of them one."""
    first = {'a': {'value': value}, 'b': {'value': {'get_attr': ['a', 'value']}}, 'c': {'value': value}}
    return {**first, 'd': {'value': 'x', 'after': ['a', 'b', 'c']}}


def listen(engine: Any, note: Callable[[str], None], explained: dict[str, str]) -> None:
    """Have `note` called with each statement as the server gets it, whoever sends it, on connections to come.

    :param explained: gets the plans of statements that are planned once for a connection: only there they are known.
    """

    def explain(connection: Any, sent: str) -> None:
        called, _, _ = sent.partition(' (')
        if called.startswith('EXECUTE') and called not in explained:
            with psycopg2.extensions.cursor(connection) as asking:
                asking.execute('EXPLAIN ' + sent)
                explained[called] = '\n'.join(line for (line,) in asking)

    def connect(dialect: Any, record: Any, arguments: Any, options: Any) -> Any:
        base = connection_class(dialect)
        if engine.dialect.name == 'postgresql':

            class Cursor(base.cursor_class):  # type: ignore[misc]
                def execute(self, *arguments: Any) -> None:
                    super().execute(*arguments)
                    for statement in bytes(self.query or b'').decode().split('; '):
                        note(statement)
                        explain(self.connection, statement)

            class Explained(base):  # type: ignore[misc]
                cursor_class = Cursor

            return opened(dialect, record, arguments, options, Explained)

        class Connection(base):  # type: ignore[misc]
            def query(self, sql: Any, *more: Any) -> Any:
                for statement in (sql if isinstance(sql, str) else bytes(sql).decode()).split('; '):
                    note(statement)
                return super().query(sql, *more)

        return opened(dialect, record, arguments, options, Connection)

    event.remove(engine, 'do_connect', opened)
    event.listen(engine, 'do_connect', connect)
    engine.dispose()


@pytest.fixture(params=['postgresql', 'mariadb'])
def engine(request: Any) -> Iterator[Any]:
    server = service(request.param)
    url = server.create()
    engine = database(url)
    yield engine
    engine.dispose()
    server.drop(url.partition('?')[0].rpartition('/')[2])


def scanned(plan: str) -> list[str]:
    """The tables that grow, and that PostgreSQL would read from one end to the other."""
    return [name for name in GROWING if f'Seq Scan on {name}' in plan]


def prefer_nothing(connection: Any) -> None:
    """Have PostgreSQL say what it would do by its statistics, until the end of the transaction."""
    if connection.dialect.name == 'postgresql':
        connection.exec_driver_sql('SET LOCAL enable_seqscan = on')


def whole_tables(engine: Any, statement: str) -> list[str]:
    """The tables, of those that grow, that the server would read from one end to the other."""
    statement = FOUND_BEFORE.sub('FALSE', statement)  # there is none before it here
    with engine.connect() as connection:
        prefer_nothing(connection)
        rows = connection.exec_driver_sql('EXPLAIN ' + statement.replace('%', '%%')).all()
    if engine.dialect.name == 'postgresql':
        return scanned('\n'.join(line for (line,) in rows))
    return [row.table for row in rows if row.table in GROWING and row.type in ('ALL', 'index')]


def test_no_statement_of_an_operation_reads_a_whole_table(engine: Any) -> None:
    harness = Harness(engine)
    copy_stack(engine, harness.created(chain('x'), name='old'), STACKS)
    take_statistics(engine)
    sent: dict[str, str] = {}
    recorded: list[str] = []
    explained: dict[str, str] = {}
    listen(engine, recorded.append, explained)
    harness.context = Context('q')
    stack_id = harness.created(chain('x'))
    for value in 'xyz':
        harness.update(stack_id, chain(value))
        harness.run()
    harness.delete(stack_id)
    harness.run()
    shape = partial(str.split, sep=' WHERE ')
    for statement in recorded:
        if statement.lstrip().upper().startswith(EXPLAINED):
            sent.setdefault(shape(statement.replace('\n', ' '))[0], statement)
    assert len(sent) + len(explained) > 30, 'the statements are heard'
    assert whole_tables(engine, "SELECT * FROM resource WHERE token = 'x'") == ['resource'], 'a scan would be seen'
    found = {statement: tables for statement in sent.values() if (tables := whole_tables(engine, statement))}
    found |= {plan: tables for plan in explained.values() if (tables := scanned(plan))}
    assert found == {}


RESOURCES = 300
READ_EACH = 200
"""Rows of these tables that PostgreSQL may read for each resource that is created and deleted, fewer than there are.

It is about 44. While others use the server, in whatever database, indexes still lead to rows as they were: then it is
80 or so.
"""


def counted(engine: Any, question: str) -> list[Any]:
    """What PostgreSQL answers to a question about what it has counted so far, in this database."""
    engine.dispose()  # a connection that ends tells what it has counted
    clients = (
        "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND backend_type = 'client backend'"
    )
    while True:
        with engine.connect() as connection:
            if connection.exec_driver_sql(clients).scalar_one() == 1:  # this one
                return list(connection.exec_driver_sql(question).all())


def read_by(engine: Any) -> int:
    """How many rows of nodes and resources have been read so far, by indexes and otherwise."""
    of_both = "WHERE relname IN ('sync_point', 'resource')"
    indexes = f'SELECT sum(idx_tup_read) FROM pg_stat_user_indexes {of_both}'
    tables = f'SELECT sum(seq_tup_read) FROM pg_stat_user_tables {of_both}'
    return sum(int(found or 0) for (found,) in counted(engine, f'{indexes} UNION ALL {tables}'))


@pytest.mark.parametrize('is_known', [False, True], ids=['nobody has looked', 'looked at when it was empty'])
def test_a_new_database_is_not_read_through_for_each_resource(is_known: bool) -> None:
    """PostgreSQL takes every condition for one that few rows meet, if nobody has looked at its tables yet, or while
    nothing was in them, as is the rule with the nodes of an installation at rest."""
    server = service('postgresql')
    url = server.create()
    engine = database(url)
    every = {
        f'r{number}': {'after': [f'r{other}' for other in layers(number, RESOURCES)]} for number in range(RESOURCES)
    }
    harness = Harness(engine)
    harness.delete(harness.created(dict(list(every.items())[:20])))  # plans are made while the tables are small
    harness.run()
    if is_known:
        with engine.connect() as connection:
            connection.exec_driver_sql('DELETE FROM sync_point')
            connection.exec_driver_sql('DELETE FROM resource')
            connection.commit()
        take_statistics(engine)
    before = read_by(engine)
    harness.delete(harness.created(every))
    harness.run(limit=20 * RESOURCES)
    assert read_by(engine) - before < READ_EACH * RESOURCES
    engine.dispose()
    server.drop(url.partition('?')[0].rpartition('/')[2])


def scans_of(engine: Any) -> dict[str, int]:
    """How often each table that grows has been read from one end to the other so far."""
    asked = counted(engine, 'SELECT relname, seq_scan FROM pg_stat_user_tables')
    return {name: scans for name, scans in asked if name in GROWING}


def test_plans_made_while_tables_are_small_do_not_read_them_whole_when_they_have_grown() -> None:
    """A connection keeps its plans until somebody takes statistics anew."""
    server = service('postgresql')
    url = server.create()
    engine = database(url)
    with engine.connect() as connection:
        connection.execution_options(isolation_level='AUTOCOMMIT').exec_driver_sql('ANALYZE')
    before = scans_of(engine)
    harness = Harness(engine)
    for value in 'abcdef':  # the sixth time a plan is made that is kept
        stack_id = harness.created({f'r{number}': {'value': value} for number in range(4)}, name=value)
        harness.update(stack_id, {f'r{number}': {'value': value + value} for number in range(4)})
        harness.run()
    many = {f'r{number}': {'value': 'x'} for number in range(RESOURCES)}
    stack_id = harness.created(many)
    harness.update(stack_id, many)
    harness.run()
    harness.update(stack_id, {**many, 'r7': {'value': 'y'}})
    harness.run()
    harness.delete(stack_id)
    harness.run()
    assert scans_of(engine) == before
    engine.dispose()
    server.drop(url.partition('?')[0].rpartition('/')[2])
