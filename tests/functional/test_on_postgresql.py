"""Engines and workers on PostgreSQL."""

from tests.functional.behaviour import Deaths, Operations

DATABASE = 'postgresql'


class TestOperations(Operations):
    """Two engines, three workers."""


class TestDeaths(Deaths):
    """The same."""
