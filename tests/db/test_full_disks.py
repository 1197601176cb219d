"""A database that is there and stores nothing."""

from __future__ import annotations

import sqlite3
from pathlib import Path

import pytest
from sqlalchemy import text
from sqlalchemy.exc import OperationalError

from convergence import errors
from convergence.db.connections import database as connection
from convergence.db.connections.failures import translated_errors
from convergence.db.repositories.roster import Roster
from convergence.db.statements.store import Store
from tests.harness import database


def test_a_disk_that_is_full_is_an_outage_and_no_mistake(tmp_path: Path) -> None:
    """So what is to be stored is kept until there is room."""
    store = Store(database(f'sqlite:///{tmp_path / "convergence.sqlite"}'))
    with store.writing() as opened:
        opened.execute(text('CREATE TABLE filling (content TEXT)'))
        opened.commit()
    full = pytest.raises(errors.DatabaseUnavailable, match='stores nothing now: database or disk is full')
    with full, store.writing() as opened:
        pages = opened.execute(text('PRAGMA page_count')).scalar_one()
        opened.execute(text(f'PRAGMA max_page_count = {pages}'))
        opened.execute(text('INSERT INTO filling VALUES (:content)'), {'content': 'x' * 100_000})
    with store.writing() as opened:
        opened.execute(text('PRAGMA max_page_count = 1000000'))
    Roster(store).register('W', 'worker', 'host', '1', 30.0)


def test_a_process_that_finds_the_disk_full_says_so_and_ends_at_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is no server that is about to start: to wait for it would only hide the reason."""
    tried: list[object] = []
    waits: list[float] = []

    def full(opened: object, record: object) -> None:
        tried.append(opened)
        raise sqlite3.OperationalError('database or disk is full')

    monkeypatch.setattr(connection, '_prepare_sqlite', full)
    monkeypatch.setattr(connection.time, 'sleep', lambda duration_s: waits.append(duration_s))
    with pytest.raises(errors.DatabaseUnavailable, match=r'disk is full.*the space on its disk'):
        connection.connect(f'sqlite:///{tmp_path / "convergence.sqlite"}', attempts=11, interval_s=10.0)
    assert len(tried) == 1
    assert not any(waits)


def test_a_file_that_somebody_else_has_locked_is_waited_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    tried: list[object] = []

    def locked(opened: object, record: object) -> None:
        tried.append(opened)
        raise sqlite3.OperationalError('database is locked')

    monkeypatch.setattr(connection, '_prepare_sqlite', locked)
    monkeypatch.setattr(connection.time, 'sleep', lambda duration_s: None)
    with pytest.raises(errors.DatabaseUnavailable, match='database is locked'):
        connection.connect(f'sqlite:///{tmp_path / "convergence.sqlite"}', attempts=3, interval_s=10.0)
    assert len(tried) == 3


def test_what_sqlite_says_of_a_full_disk_is_explained() -> None:
    """Its text for a disk without room may be the one for a disk that is broken."""
    with (
        pytest.raises(errors.DatabaseUnavailable, match=r'disk I/O error\. The disk may be full, or broken'),
        translated_errors(),
    ):
        raise OperationalError('UPDATE x', {}, sqlite3.OperationalError('disk I/O error'))
