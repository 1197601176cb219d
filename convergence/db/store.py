"""The store: lock and read, decide, write, commit. One method, one transaction.

The decision is a pure function, so the whole transaction can be run again: after a conflict, a deadlock or a lost
connection everything is read again and decided again, a bounded number of times.
"""

from __future__ import annotations

import contextlib
import logging
import random
import time
from collections.abc import Callable, Iterator
from typing import TypeVar

from sqlalchemy.engine import Connection, Engine

from convergence import concurrency
from convergence.core.effects import Decision
from convergence.db import failures
from convergence.db.apply import apply
from convergence.db.load import load
from convergence.db.scopes import Scope
from convergence.db.transaction import Committed, Missing
from convergence.errors import Conflict, DatabaseUnavailable

LOG = logging.getLogger(__name__)

ViewT = TypeVar('ViewT')
V = TypeVar('V')

AroundCommit = Callable[[Callable[[], None], object, object], None]

TRANSIENT = (Conflict, DatabaseUnavailable)


class Store:
    """Carries out decisions on the rows of one database.

    :param attempts: how often a transaction is tried before its last error is raised.
    :param interval_s: mean pause before the first repetition; it doubles each time, up to 64 times. While the database
        cannot be reached pauses are longer, 10 to 400 times this: in all as long as a server takes to restart.
    :param patience_s: a transaction that has taken so long is not tried again, whatever the number of attempts. It
        bounds what waiting for locks and for connections adds up to.
    :param around_commit: called instead of a commit, with the commit, the function that decided and its verdict: the
        test run has failpoints there.
    """

    def __init__(
        self,
        engine: Engine,
        *,
        attempts: int = 12,
        interval_s: float = 0.01,
        patience_s: float = 30.0,
        around_commit: AroundCommit | None = None,
    ) -> None:
        self.engine = engine
        self._around_commit = around_commit
        self._attempts = attempts
        self._interval_s = interval_s
        self._patience_s = patience_s
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
        ends = time.monotonic() + self._patience_s
        for attempt in range(1, self._attempts + 1):
            try:
                return self._once(scope, decide)
            except Missing:
                return None
            except TRANSIENT as error:
                if attempt == self._attempts or time.monotonic() >= ends:
                    if isinstance(error, DatabaseUnavailable):
                        raise
                    name = type(scope).__name__
                    raise Conflict(f'{name} kept changing; the operation can be repeated: {error}') from error
                LOG.debug('Transaction on %s is repeated: %s', scope, error)
                concurrency.sleep(self._pause_s(attempt, error))
        raise AssertionError('unreachable')

    def _pause_s(self, attempt: int, error: Exception) -> float:
        """How long to wait before the next attempt. A conflict is over soon, an outage is not."""
        if isinstance(error, DatabaseUnavailable):
            return self._random.uniform(0.75, 1.0) * self._interval_s * min(10 << (attempt - 1), 400)
        return self._random.uniform(0.0, self._interval_s * 2 ** min(attempt, 6))

    def _once(self, scope: Scope[ViewT], decide: Callable[[ViewT], Decision[V]]) -> Committed[V]:
        with self.writing() as connection:
            decision = decide(load(connection, scope))
            if not decision.effects:
                connection.rollback()
                return Committed.of(decision, ())
            ready = apply(connection, decision.effects)
            self.commit(connection, decide, decision.verdict)
        return Committed.of(decision, ready)

    def commit(self, connection: Connection, by: object, verdict: object = None) -> None:
        """Commit what was written.

        :param by: the function that decided what, for failpoints.
        """
        if self._around_commit is None:
            connection.commit()
        else:
            self._around_commit(connection.commit, by, verdict)

    @contextlib.contextmanager
    def writing(self) -> Iterator[Connection]:
        """A connection in a transaction; it is rolled back unless the caller commits.

        :raises DatabaseUnavailable: the database cannot be reached (any more).
        :raises Conflict: another transaction was in the way.
        """
        with self._one_writer, failures.told(), self.engine.connect() as connection:
            yield connection

    @contextlib.contextmanager
    def reading(self) -> Iterator[Connection]:
        """A connection for reading what is committed.

        :raises DatabaseUnavailable: the database cannot be reached (any more).
        """
        with failures.told(), self.engine.connect().execution_options(reads_only=True) as connection:
            yield connection
