"""Engines and workers on MariaDB."""

import pytest

from tests.functional.behaviour import Deaths, Operations

# PostgreSQL runs the same with each commit; MariaDB is behind the parked actions of test_parking.py.
pytestmark = pytest.mark.long
DATABASE = 'mariadb'


class TestOperations(Operations):
    """Two engines, three workers."""


class TestDeaths(Deaths):
    """The same."""
