"""Engines and workers on MariaDB."""

from tests.functional.behaviour import Deaths, Operations

DATABASE = 'mariadb'


class TestOperations(Operations):
    """Two engines, three workers."""


class TestDeaths(Deaths):
    """The same."""
