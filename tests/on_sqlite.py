"""The harness on SQLite, as fixtures. Suites take them over in their conftest.py."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from tests.harness import Harness, database, emptied


@pytest.fixture(scope='session')
def sqlite(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    """One database for all tests: SQLAlchemy compiles each statement once for each engine, which takes half a test."""
    engine = database(f'sqlite:///{tmp_path_factory.mktemp("harness") / "convergence.sqlite"}')
    yield engine
    engine.dispose()


@pytest.fixture
def engine(sqlite: Any) -> Any:
    """A database with nothing in it."""
    return emptied(sqlite)


@pytest.fixture
def harness(engine: Any) -> Harness:
    """An engine, two workers and a sweeper on it."""
    return Harness(engine)
