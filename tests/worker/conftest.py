"""The harness on SQLite."""

from tests.on_sqlite import engine, harness, sqlite

__all__ = ('engine', 'harness', 'sqlite')
