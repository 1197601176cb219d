"""The stores of the contract: one in memory, one on each kind of database.

Another store is tried by one more entry in `BACKENDS`: everything in ``test_store_*.py`` that uses the fixture
`backend` is about what every store has to do.
"""

from __future__ import annotations

import itertools
import time
from typing import Any

import pytest
from convergence_simulator.stores.storage import in_memory

from convergence.db.repositories.wiring import ports_of
from convergence.db.statements.store import Store
from tests.contract.rows import Backend
from tests.harness import emptied
from tests.on_databases import DATABASES, engines

__all__ = ('backend', 'engine', 'engines', 'server_engine')

SERVERS = ('postgresql', 'mariadb')
BACKENDS = ('memory', *DATABASES)


@pytest.fixture(params=BACKENDS)
def backend(request: pytest.FixtureRequest, engines: Any) -> Backend:
    """An empty store of each kind."""
    if request.param == 'memory':
        return Backend.of('memory', in_memory(time.time).ports)
    # Each look at the clock takes a second: what can never be stored is tried some thirty times, not for thirty seconds.
    store = Store(emptied(engines(request.param)), interval_s=0.0, clock=map(float, itertools.count()).__next__)
    return Backend.of(request.param, ports_of(store))


@pytest.fixture(params=DATABASES)
def engine(request: pytest.FixtureRequest, engines: Any) -> Any:
    """An empty database of each kind."""
    return emptied(engines(request.param))


@pytest.fixture(params=SERVERS)
def server_engine(request: pytest.FixtureRequest, engines: Any) -> Any:
    """An empty database of each kind that lets several transactions write at once."""
    return emptied(engines(request.param))
