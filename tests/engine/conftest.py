"""The harness on SQLite, and databases of each kind."""

from tests.on_databases import engines
from tests.on_sqlite import engine, harness, sqlite

__all__ = ('engine', 'engines', 'harness', 'sqlite')
