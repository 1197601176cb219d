"""Whatever a row holds, a statement that is sent for every resource reads the same as any other."""

from __future__ import annotations

from typing import Any

from sqlalchemy import bindparam, event, func, insert, literal, select, update

from convergence.core.model import Action, Status
from convergence.db.schema.columns import database_now
from convergence.db.schema.models import PROJECT, RESOURCE, STACK
from convergence.db.statements.loading.nodes import READ_NODE
from convergence.db.statements.loading.resources import LOCK_RESOURCE
from convergence.db.statements.prepared.packing import packed
from convergence.db.statements.prepared.statement import PreparedStatement

ODD = 'Ü "quoted" \\ \n\t\x01 \u2028 漢 \U0001f600 %s {} [1, null]'
PRECISE = 1764000000.1234567
ROW: dict[str, Any] = {
    'id': 'one',
    'stack_id': '',
    'name': ODD,
    'type': 'null',
    'action': Action.CREATE,
    'status': Status.COMPLETE,
    'created_at': PRECISE,
    'status_reason': ODD,
    'properties': {ODD: [ODD, None, 0.1]},
    'data': {},
    'requires': ('a', ODD),
    'fence': 2**31 - 1,
    'wake_at': 1764000000.0,
    'updated_at': 0.1 + 0.2,
    'crash_count': 0,
    'event_count': -1,
    'polled_event_count': 0,
    'nothing_made': True,
    'clearing': False,
    'repairable': True,
    'revocation': '',
}
EVERY = [each for each in RESOURCE.c if each.name != 'lock_count']
READ = select(*EVERY, RESOURCE.c.id.is_(None), literal(None)).where(RESOURCE.c.id == bindparam('resource'))


def stored(engine: Any, **more: Any) -> None:
    with engine.begin() as connection:
        connection.execute(insert(RESOURCE), {**ROW, **more})


def test_each_value_comes_back_as_it_is_and_of_its_kind(engine: Any) -> None:
    stored(engine)
    with engine.connect() as connection:
        (plain,) = connection.execute(READ, {'resource': 'one'})
        (statement,) = PreparedStatement(READ).all(connection, {'resource': 'one'})
    assert statement == list(plain)
    assert [type(each) for each in statement] == [type(each) for each in plain]
    assert {column.name: each for column, each in zip(EVERY, statement, strict=False)}.items() >= ROW.items()


def test_each_value_is_written_as_it_is(engine: Any) -> None:
    with engine.begin() as connection:
        PreparedStatement(insert(RESOURCE), tuple(ROW)).write(connection, ROW)
        (plain,) = connection.execute(READ, {'resource': 'one'})
        odd = {'resource': f"one' OR '{ODD}", 'new': f"'; {ODD} --"}
        rename = PreparedStatement(
            update(RESOURCE).values(name=bindparam('new')).where(RESOURCE.c.id == bindparam('resource'))
        )
        assert [rename.write(connection, odd), rename.write(connection, {**odd, 'resource': 'one'})] == [0, 1]
        (renamed,) = connection.execute(select(RESOURCE.c.name))
    assert {column.name: each for column, each in zip(EVERY, plain, strict=False)}.items() >= ROW.items()
    assert renamed == (odd['new'],)


def test_rows_are_answered_in_their_order_and_none_where_there_is_none(engine: Any) -> None:
    for name in 'cab':
        stored(engine, id=name, name=f'name of {name}')
    every = PreparedStatement(select(*EVERY).where(RESOURCE.c.fence > bindparam('fence')).order_by(RESOURCE.c.id))
    with engine.connect() as connection:
        found = every.all(connection, {'fence': 1})
        assert [(row[0], row[2]) for row in found] == [(name, f'name of {name}') for name in 'abc']
        assert every.all(connection, {'fence': 2**31 - 1}) == []


def test_long_values_are_read_that_together_are_longer_than_a_server_makes_one(engine: Any) -> None:
    length = 9 * 1024 * 1024
    stored(engine)
    with engine.begin() as connection:
        for column in (RESOURCE.c.status_reason, RESOURCE.c.physical_id):
            letter = func.repeat('x', length) if connection.dialect.name != 'sqlite' else 'x' * length
            connection.execute(update(RESOURCE).values({column: letter}))
    with engine.connect() as connection:
        row = LOCK_RESOURCE.first(connection, {'resource': 'one'})
        connection.rollback()
    assert row is not None
    assert [len(each) for each in row if isinstance(each, str) and len(each) > 1000] == [length] * 2


def test_mariadb_describes_a_few_columns_of_a_node_not_all_of_them(engines: Any) -> None:
    described = []

    def note(connection: Any, cursor: Any, *sent: Any) -> None:
        described.append(len(cursor.description))

    engine = engines('mariadb')
    event.listen(engine, 'after_cursor_execute', note)
    try:
        with engine.connect() as connection:
            READ_NODE.all(connection, {'traversal': 'none', 'node': 1})
    finally:
        event.remove(engine, 'after_cursor_execute', note)
    assert described[0] * 4 < len(READ_NODE.form(engine.dialect).columns)


def test_what_has_few_short_columns_is_sent_as_it_is(engines: Any) -> None:
    dialect = engines('mariadb').dialect
    for statement in (
        select(STACK.c.id, STACK.c.tags, database_now()),
        select(STACK.c.tags, STACK.c.status_reason, STACK.c.type_rules),
        insert(PROJECT),
    ):
        sent, unpack = packed(statement, dialect)
        assert sent is statement
        assert unpack is None
