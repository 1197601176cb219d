"""The store: lock and read, decide, write, commit. One method, one transaction.

The decision is a pure function, so the whole transaction can be run again: after a conflict, a deadlock or a lost
connection everything is read again and decided again, a bounded number of times.
"""

from __future__ import annotations

import contextlib
import logging
import random
from collections.abc import Callable, Iterator
from typing import Any, TypeVar

from oslo_db import exception as db_exception
from sqlalchemy.engine import Connection, Engine

from convergence import concurrency
from convergence.core.effects import Decision
from convergence.db.apply import apply
from convergence.db.load import load
from convergence.db.scopes import Scope
from convergence.db.transaction import Committed, Missing
from convergence.errors import Conflict, DatabaseUnavailable

LOG = logging.getLogger(__name__)

ViewT = TypeVar('ViewT')
V = TypeVar('V')

TRANSIENT = (
    Conflict,
    db_exception.DBDeadlock,
    db_exception.DBConnectionError,
    db_exception.RetryRequest,
)


class Store:
    """Carries out decisions on the rows of one database.

    :param attempts: how often a transaction is tried before its last error is raised.
    :param interval_s: mean pause before the first repetition; it doubles each time, up to 64 times.
    """

    def __init__(self, engine: Engine, *, attempts: int = 12, interval_s: float = 0.01) -> None:
        self.engine = engine
        self._attempts = attempts
        self._interval_s = interval_s
        self._random = random.Random()
        # SQLite has one writer at a time. Inside the process they wait here, in order, not in the busy handler.
        self._one_writer = concurrency.Lock() if engine.dialect.name == 'sqlite' else contextlib.nullcontext()

    def transact(self, scope: Scope[ViewT], decide: Callable[[ViewT], Decision[V]]) -> Committed[V] | None:
        """Lock and read `scope`, let `decide` look at it, and make its decision true, all or nothing.

        :param decide: a pure function; it may be called several times.
        :returns: None where what the scope names does not exist (any more).
        :raises Conflict: the rows kept changing under our hands.
        :raises DatabaseUnavailable: the database cannot be reached.
        """
        for attempt in range(1, self._attempts + 1):
            try:
                return self._once(scope, decide)
            except Missing:
                return None
            except TRANSIENT as error:
                if attempt == self._attempts:
                    raise self._given_up(scope, error) from error
                LOG.debug('Transaction on %s is repeated: %s', scope, error)
                limit = self._interval_s * 2 ** min(attempt, 6)
                concurrency.sleep(self._random.uniform(0.0, limit))
        raise AssertionError('unreachable')

    def _once(self, scope: Scope[ViewT], decide: Callable[[ViewT], Decision[V]]) -> Committed[V]:
        with self.writing() as connection:
            decision = decide(load(connection, scope))
            if not decision.effects:
                connection.rollback()
                return Committed.of(decision, ())
            ready = apply(connection, decision.effects)
            connection.commit()
        return Committed.of(decision, ready)

    @contextlib.contextmanager
    def writing(self) -> Iterator[Connection]:
        """A connection in a transaction; it is rolled back unless the caller commits."""
        with self._one_writer, self.engine.connect() as connection:
            yield connection

    @contextlib.contextmanager
    def reading(self) -> Iterator[Connection]:
        """A connection for reading what is committed."""
        with self.engine.connect().execution_options(reads_only=True) as connection:
            yield connection

    @staticmethod
    def _given_up(scope: Scope[Any], error: Exception) -> Exception:
        if isinstance(error, db_exception.DBConnectionError):
            return DatabaseUnavailable(f'The database cannot be reached: {str(error).splitlines()[0]}')
        return Conflict(f'{type(scope).__name__} kept changing; the operation can be repeated: {error}')
