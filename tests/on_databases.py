"""Databases of each kind that tests share, as a fixture. Suites take it over in their conftest.py, and empty them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from tests.harness import database
from tests.services import service

DATABASES = ('sqlite', 'postgresql', 'mariadb')


@pytest.fixture(scope='session')
def engines(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    """A function that gives a database of each kind, with tables, one for the whole run.

    To make the tables takes a server longer than most tests take, and SQLAlchemy compiles each statement once for each
    engine.
    """
    made: dict[str, Any] = {}
    names: list[tuple[str, str]] = []

    def get(kind: str) -> Any:
        if kind not in made:
            if kind == 'sqlite':
                url = f'sqlite:///{tmp_path_factory.mktemp("databases") / "store.sqlite"}'
            else:
                url = service(kind).create()
                names.append((kind, url))
            made[kind] = database(url)
            if kind == 'postgresql':
                hurry(made[kind], url)
        return made[kind]

    yield get
    for engine in made.values():
        engine.dispose()
    for kind, url in names:
        service(kind).drop(url.partition('?')[0].rpartition('/')[2])


def hurry(engine: Any, url: str) -> None:
    """Nobody needs these rows after a power cut: do not wait for the disk."""
    name = url.partition('?')[0].rpartition('/')[2]
    with engine.connect() as connection:
        connection.exec_driver_sql(f'ALTER DATABASE {name} SET synchronous_commit = off')
        connection.commit()
    engine.dispose()
