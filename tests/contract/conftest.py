"""The stores of the contract: one in memory, one on each kind of database.

Another store is tried by one more entry in `BACKENDS`: everything in ``test_store_*.py`` that uses the fixture
`backend` is about what every store has to do.
"""

from __future__ import annotations

import itertools
import time
from collections.abc import Iterator
from typing import Any

import pytest

from convergence.db.ports import Ports
from convergence.db.statements.store import Store
from convergence.simulator.storage import in_memory
from tests.contract.rows import Backend
from tests.harness import database, emptied
from tests.services import service

DATABASES = ('sqlite', 'postgresql', 'mariadb')
SERVERS = ('postgresql', 'mariadb')
BACKENDS = ('memory', *DATABASES)


@pytest.fixture(scope='session')
def engines(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    """A function that gives a database of each kind, with tables, one for the whole run."""
    made: dict[str, Any] = {}
    names: list[tuple[str, str]] = []

    def get(kind: str) -> Any:
        if kind not in made:
            if kind == 'sqlite':
                url = f'sqlite:///{tmp_path_factory.mktemp("contract") / "store.sqlite"}'
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


@pytest.fixture(params=BACKENDS)
def backend(request: pytest.FixtureRequest, engines: Any) -> Backend:
    """An empty store of each kind."""
    if request.param == 'memory':
        return Backend.of('memory', in_memory(time.time).ports)
    # Each look at the clock takes a second: what can never be stored is tried some thirty times, not for thirty seconds.
    store = Store(emptied(engines(request.param)), interval_s=0.0, clock=map(float, itertools.count()).__next__)
    return Backend.of(request.param, Ports.of(store))


@pytest.fixture(params=DATABASES)
def engine(request: pytest.FixtureRequest, engines: Any) -> Any:
    """An empty database of each kind."""
    return emptied(engines(request.param))


@pytest.fixture(params=SERVERS)
def server_engine(request: pytest.FixtureRequest, engines: Any) -> Any:
    """An empty database of each kind that lets several transactions write at once."""
    return emptied(engines(request.param))
