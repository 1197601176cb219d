"""Rows that are stored together are read as they were given, whatever they have in common."""

from __future__ import annotations

import itertools
from collections import Counter
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

import pytest
from oslo_db.exception import DBDuplicateEntry, DBError
from sqlalchemy import event, select
from sqlalchemy.exc import DBAPIError, IntegrityError

from convergence.core.effects import InsertResources, InsertTraversal
from convergence.core.model import Action, Definition, Status
from convergence.core.rows import Acceptance, Resource
from convergence.db.connections.counting import count
from convergence.db.repositories.wiring import ports_of
from convergence.db.schema.models import RESOURCE as TABLE
from convergence.db.schema.sealing import Seal, apply_seal, is_sealed, new_key
from convergence.db.statements.prepared.batch import LONGEST
from convergence.db.statements.store import Store
from convergence.errors import DatabaseUnavailable
from tests.contract.rows import DEFINITION, NODES, OUTPUT, RESOURCE, TRAVERSAL, Backend, node
from tests.contract.test_connections import lose

TEXTS = (
    '',
    ' ',
    'null',
    'tab\tline\nreturn\rquote"\'`back\\slash\\n\\u0041',
    '%s %(name)s %% :name $1 {} [] ; -- /*',
    'ü€😀\u2028\u00a0\x7f\x01\x1f',
    '\\N',
    '{"a":["\\"b\\""]}',
    'x' * 300_000,
)
NUMBERS = (0.0, 1 / 3, -1e300, 5e-324, 1_704_067_200.123_456_7, 0.1 + 0.2, 12.0, 2.0**53)


@pytest.fixture
def backend(engine: Any) -> Backend:
    return Backend.of(engine.dialect.name, ports_of(Store(engine, interval_s=0.0, patience_s=0.0)))


def new_row(number: int, **changes: Any) -> Resource:
    """A row that nothing was done with yet."""
    row = Resource(f'R{number}', 'S', f'r{number}', f'Type{number % 2}', Action.INIT, Status.COMPLETE, 1.5)
    return replace(row, **changes)


@contextmanager
def seen(engine: Any) -> Any:
    """The texts of the statements that store rows of resources or nodes."""
    texts: list[str] = []

    def note(connection: Any, cursor: Any, text: str, *rest: Any) -> None:
        texts.extend(each for each in text.split('; ') if each.startswith(('INSERT INTO resource', 'INSERT INTO sync')))

    event.listen(engine, 'before_cursor_execute', note)
    try:
        yield texts
    finally:
        event.remove(engine, 'before_cursor_execute', note)


def read(backend: Backend) -> dict[str, Resource]:
    return {row.id: row for row in backend.reader.resources('S')}


@pytest.mark.parametrize('number', [1, 2, 16, 17, 40])
def test_new_rows_are_read_as_they_were_stored(backend: Backend, number: int) -> None:
    rows = tuple(new_row(place) for place in range(number))
    backend.write(InsertResources(rows))
    assert read(backend) == {row.id: row for row in rows}


def test_rows_may_differ_in_every_column(backend: Backend) -> None:
    full = replace(
        RESOURCE,
        id='R0',
        nothing_made=True,
        clearing=True,
        repairable=True,
        revocation='by chance',
        accepted=Acceptance({'p': True}, {'p': 1}),
        crash_count=3,
        deadline=9.25,
    )
    rows = (
        full,
        new_row(1),
        replace(full, id='R2', repairable=False, fence=2**31 - 1),
        new_row(3, status_reason='why'),
    )
    backend.write(InsertResources(rows))
    assert read(backend) == {row.id: row for row in rows}


@pytest.mark.parametrize('makes', ['the same everywhere', 'different'])
def test_texts_and_numbers_are_stored_as_they_are(backend: Backend, makes: str) -> None:
    rows = []
    for place, (text, at) in enumerate(itertools.product(TEXTS, NUMBERS)):
        if makes == 'different':
            row = new_row(place, name=text[:255], status_reason=text, physical_id=text or None, wake_at=at)
            row = replace(row, data={'text': text, 'number': at}, output=replace(OUTPUT, reference=text))
        else:
            row = new_row(place, name=text[:255], created_at=NUMBERS[4], status_reason=TEXTS[3], physical_id=TEXTS[5])
        rows.append(row)
    backend.write(InsertResources(tuple(rows)))
    assert read(backend) == {row.id: row for row in rows}


def test_what_python_takes_for_equal_is_stored_as_it_is(backend: Backend) -> None:
    rows = (new_row(0, data={'a': 1}), new_row(1, data={'a': True}), new_row(2, data={'a': 1.0}), new_row(3))
    backend.write(InsertResources(rows))
    found = read(backend)
    assert [str(found[row.id].data) for row in rows] == ["{'a': 1}", "{'a': True}", "{'a': 1.0}", '{}']


def test_nodes_are_read_as_they_were_stored(backend: Backend) -> None:
    texts = [
        node(number, name=text[:255], definition=Definition(text[:255], 'Type', {'p': text}, {'m': [text]}))
        for number, text in enumerate(TEXTS, len(NODES))
    ]
    backend.write(InsertTraversal(TRAVERSAL, (*NODES, *texts)))
    assert sorted(backend.reader.nodes('V'), key=lambda each: each.number) == [*NODES, *texts]


def test_a_traversal_without_nodes_and_no_rows_are_nothing(backend: Backend) -> None:
    backend.write(InsertTraversal(TRAVERSAL, ()), InsertResources(()))
    assert not backend.reader.nodes('V')
    assert read(backend) == {}


def test_what_users_have_said_is_sealed_for_each_row(
    engine: Any, backend: Backend, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two rows with the same secret cannot be told from two with different ones; that there is none may be seen."""
    monkeypatch.setattr(engine.dialect, 'convergence_seal', None, raising=False)
    apply_seal(engine, Seal([new_key()], 'test'))
    secret = {'password': 'x'}
    nodes = tuple(node(number, definition=DEFINITION) for number in range(20))
    rows = tuple(new_row(number, data=secret, definition=DEFINITION) for number in range(20))
    backend.write(InsertTraversal(TRAVERSAL, nodes), InsertResources(rows))
    assert read(backend) == {row.id: row for row in rows}
    assert sorted(backend.reader.nodes('V'), key=lambda each: each.number) == list(nodes)
    with engine.connect() as connection:
        for name in ('data', 'definition', 'properties'):
            column = TABLE.c[name]
            stored = list(connection.exec_driver_sql(str(select(column).compile(engine))).scalars())
            assert all(map(is_sealed, stored)), name
            assert len(set(stored)) == (1 if name == 'properties' else 20), name


def test_a_number_of_rows_needs_no_statement_of_its_own(engine: Any, backend: Backend) -> None:
    """PostgreSQL plans each text once for each connection, and keeps it: there are two of each table."""
    with seen(engine) as texts:
        for number in range(1, 20):
            rows = [new_row(1000 * number + place) for place in range(number)]
            backend.write(InsertResources(tuple(rows)))
        assert len(texts) == 19
        assert len(set(texts)) == 1
        rows = [new_row(place, **{name: 'x'}) for place, name in enumerate(('token', 'owner', 'digest', 'replaces'))]
        for pair in itertools.combinations(rows, 2):
            backend.write(InsertResources(tuple(replace(row, id=f'{pair[0].id}{pair[1].id}{row.id}') for row in pair)))
        assert len(set(texts)) == (1 if backend.kind == 'sqlite' else 2)


def test_many_rows_take_few_statements(engine: Any, backend: Backend) -> None:
    """Of a bounded length: servers refuse messages that are longer than they were told to take."""
    sent: Counter[str] = Counter()
    stop = count(engine, lambda kind: sent.update([kind]))
    nodes = tuple(node(number, definition=DEFINITION) for number in range(10_002))
    rows = tuple(new_row(number) for number in range(10_000))
    try:
        with engine.connect() as connection:
            connection.exec_driver_sql('SELECT 1')
        sent.clear()
        with seen(engine) as texts:
            backend.write(InsertTraversal(TRAVERSAL, nodes), InsertResources(rows))
    finally:
        stop()
    looks = (
        2 if backend.kind == 'postgresql' else 0
    )  # at a table each; see `convergence.db.statements.applying.statistics`
    assert sent['commits'] == 1 + looks
    assert sent['statements'] <= 20 + 3 * looks
    assert 2 <= len(texts) <= 20
    assert len(backend.reader.nodes('V')) == 10_002
    assert len(read(backend)) == 10_000


def test_what_is_long_goes_in_pieces(engine: Any, backend: Backend) -> None:
    rows = tuple(new_row(number, data={'text': 'x' * (LONGEST // 2)}) for number in range(7))
    with seen(engine) as texts:
        backend.write(InsertResources(rows))
    assert read(backend) == {row.id: row for row in rows}
    assert len(texts) == (1 if backend.kind == 'sqlite' else 7)


@pytest.mark.parametrize('number', [3, 30, 3000])
def test_of_rows_of_which_one_is_there_none_is_stored(backend: Backend, number: int) -> None:
    rows = tuple(new_row(place) for place in range(number))
    backend.write(InsertResources(rows[-1:]))
    with pytest.raises((DBDuplicateEntry, IntegrityError), match=r'(?i)unique|duplicate'):
        backend.write(InsertResources(rows))
    assert list(read(backend)) == [rows[-1].id]


@pytest.mark.parametrize('number', [3, 3000])
@pytest.mark.parametrize(
    'changes',
    [{'name': 'x' * 256}, {'replaces': 'x' * 37}, {'fence': 2**40}, {'type': None}],
    ids=['too long', 'too long in one row', 'too large', 'missing'],
)
def test_what_does_not_fit_is_refused(backend: Backend, number: int, changes: dict[str, Any]) -> None:
    """And not cut. (SQLite takes any text and number.)"""
    rows = (*(new_row(place) for place in range(number)), new_row(number, **changes))
    if backend.kind == 'sqlite' and 'type' not in changes:
        backend.write(InsertResources(rows))
        return
    with pytest.raises((DBError, DBAPIError), match=r'(?i)too long|out of range|null'):
        backend.write(InsertResources(rows))
    assert read(backend) == {}


def test_a_connection_that_is_lost_is_told_as_such(server_engine: Any) -> None:
    store = Store(server_engine, interval_s=0.0, patience_s=0.0)
    backend = Backend.of('sql', ports_of(store))
    rows = tuple(new_row(place) for place in range(3000))
    lose(server_engine)
    with pytest.raises(DatabaseUnavailable):
        backend.write(InsertResources(rows))
    assert read(backend) == {}
