"""Rows of a whole stack: what is sealed in them is opened where somebody asks for it, and looks as it always does."""

from __future__ import annotations

import copy
from collections.abc import Callable
from dataclasses import fields, replace
from typing import Any

import pytest
from sqlalchemy import text

from convergence.core.rows import Acceptance, Resource, Retry
from convergence.db.repositories.wiring import ports_of
from convergence.db.schema import columns
from convergence.db.schema.row_columns import RESOURCE_COLUMNS
from convergence.db.schema.sealing import Seal, apply_seal, new_key
from convergence.db.scopes import WholeStack
from convergence.db.statements.store import Store
from convergence.values import replace as quickly_replaced
from tests.contract.rows import FREE, RESOURCE, Backend
from tests.harness import Harness, things

FULL = replace(RESOURCE, accepted=Acceptance({'p': 1}, {'p': 2}), retry=Retry(2, 'why'))
SEALED = ('definition', 'properties', 'pending', 'data', 'output', 'progress', 'retry', 'accepted')
UPDATED = 40
"""Resources of a stack that is updated; the half of them is compared with all."""


@pytest.fixture
def opened(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The texts that were opened since the test began."""
    texts: list[str] = []
    before = columns.opened

    def note(sealed: str, seal: Any) -> str:
        texts.append(sealed)
        return before(sealed, seal)

    monkeypatch.setattr(columns, 'opened', note)
    return texts


@pytest.fixture
def engine(engine: Any, monkeypatch: pytest.MonkeyPatch) -> Any:
    """The database as for all tests; it seals nothing any more when this one is over, for others use it too."""
    monkeypatch.setattr(engine.dialect, 'convergence_seal', None, raising=False)
    return engine


@pytest.fixture
def store(engine: Any, opened: list[str]) -> Backend:
    """A store on a database that seals, with the stack of one full row; nothing is opened yet."""
    apply_seal(engine, Seal([new_key()], 'a test'))
    backend = Backend.of('sql', ports_of(Store(engine)))
    backend.fill(resources=(FULL,))
    opened.clear()
    return backend


def row_of(backend: Backend) -> Resource:
    """The row, as who plans gets it."""
    (row,) = backend.look(WholeStack('S')).resources
    return row


def spoil(engine: Any, column: str, stored: str) -> None:
    """Put a text where another one stood."""
    with engine.connect() as connection:
        connection.execute(text(f"UPDATE resource SET {column} = :stored WHERE id = 'R'"), {'stored': stored})
        connection.commit()


def test_nothing_is_opened_before_somebody_asks_for_it_and_nothing_twice(store: Backend, opened: list[str]) -> None:
    row = row_of(store)
    stored = [each.name for each in fields(Resource) if each.name not in (*SEALED, 'damaged')]
    assert {name: getattr(row, name) for name in stored} == {name: getattr(FULL, name) for name in stored}
    assert opened == []
    for count, name in enumerate(SEALED, 1):
        assert [getattr(row, name), getattr(row, name)] == [getattr(FULL, name)] * 2
        assert len(opened) == count
    assert row == FULL
    assert row.damaged == ()
    assert len(opened) == len(SEALED)


@pytest.mark.parametrize(
    'seen',
    [
        lambda row: row,
        lambda row: replace(replace(row, name='x'), name='r'),
        lambda row: quickly_replaced(quickly_replaced(row, output=None), output=FULL.output),
        lambda row: (row.output, row)[1],
        lambda row: copy.copy(row),
    ],
    ids=['itself', 'a copy', 'a quick copy', 'after a look', 'another copy'],
)
def test_a_row_is_equal_to_one_that_was_never_sealed(store: Backend, seen: Callable[[Resource], Resource]) -> None:
    assert seen(row_of(store)) == FULL
    assert (seen(row_of(store)),) == (FULL,)
    assert seen(row_of(store)) == row_of(store)
    assert seen(row_of(store)) != replace(FULL, data={})
    assert repr(seen(row_of(store))) == repr(FULL)


def test_a_row_is_frozen_whether_it_is_opened_or_not(store: Backend) -> None:
    row = row_of(store)
    for name in ('name', 'output', 'damaged'):
        with pytest.raises(AttributeError):
            setattr(row, name, None)
    assert row == FULL


@pytest.mark.parametrize('column', SEALED)
@pytest.mark.parametrize('first', ['value', 'damage', 'comparison', 'copy'])
def test_what_cannot_be_read_is_absent_and_named_whatever_is_asked_first(
    store: Backend, engine: Any, column: str, first: str
) -> None:
    spoil(engine, column, '"half')
    expected = store.resource()
    assert expected is not None
    assert expected.damaged == (column,)
    row = row_of(store)
    seen = {
        'value': lambda: getattr(row, column),
        'damage': lambda: row.damaged,
        'comparison': lambda: row == expected,
        'copy': lambda: replace(row, name='x').damaged,
    }[first]()
    assert seen == {'value': getattr(expected, column), 'comparison': True}.get(first, (column,))
    assert getattr(row, column) == getattr(expected, column)
    assert row.damaged == (column,)
    assert row == expected


def test_what_was_sealed_with_another_key_is_named_like_all_that_cannot_be_read(store: Backend, engine: Any) -> None:
    apply_seal(engine, Seal([new_key()], 'a test'))
    row = row_of(store)
    assert (row.output, row.properties) == (None, {})
    assert row.damaged == SEALED
    assert row.name == FREE.name


def test_an_update_opens_no_more_in_a_large_stack_than_in_a_small_one(engine: Any, opened: list[str]) -> None:
    """F012: of what has not changed, and nobody takes anything from, nothing is opened."""
    apply_seal(engine, Seal([new_key()], 'a test'))
    harness = Harness(engine)
    counts = []
    for size in (UPDATED // 2, UPDATED):
        wanted = things([f'r{number}' for number in range(size)])
        stack = harness.created(wanted, name=f's{size}')
        for changed in ({}, {'r1': {'value': 'y'}}):
            opened.clear()
            harness.update(stack, {**wanted, **changed})
            harness.run()
            assert harness.state(stack) == 'UPDATE_COMPLETE'
            counts.append(len(opened))
    assert counts[:2] == counts[2:]
    assert max(counts) < UPDATED


def test_no_sealed_value_of_a_row_is_a_text_once_it_is_opened():
    """By that it is known what is not opened yet: a column of another kind would be opened twice."""
    sealed = [column.type for column in RESOURCE_COLUMNS if isinstance(column.type, columns.Sealable)]
    assert sealed
    assert all(isinstance(each, columns.Valued) or each.kind is dict for each in sealed)
