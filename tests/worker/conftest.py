"""The harness on SQLite."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.harness import Harness, database


@pytest.fixture
def engine(tmp_path: Path) -> Iterator[Any]:
    """A database of the test's own."""
    engine = database(f'sqlite:///{tmp_path / "convergence.sqlite"}')
    yield engine
    engine.dispose()


@pytest.fixture
def harness(engine: Any) -> Harness:
    """An engine, two workers and a sweeper on it."""
    return Harness(engine)
