"""The store in memory: the same scopes, effects, guards and conflicts as the SQL store.

It serves the simulator and quick tests. Row locks are modelled: a transaction takes them one by one in the order of
`convergence.db.scopes`. Between two steps it calls `pause`, where a simulator lets other transactions run. The writes
of a transaction become visible at its commit, all at once. Without a `pause`, transactions run one after the other.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from typing import Any, TypeVar

from convergence import concurrency
from convergence.core.effects import Decision, Effect
from convergence.core.views import NodeView
from convergence.db.scopes import FreeNodes, Scope, SeveralStacks, WholeStack
from convergence.db.stale_reads import assumption, require_checked
from convergence.db.transaction import Committed, Following, Missing, Ready
from convergence.errors import Conflict, DatabaseUnavailable, OlderState
from convergence_simulator.memory.draft import Draft
from convergence_simulator.memory.effects import apply, drafted
from convergence_simulator.memory.load import load, lock_doubted, lock_written
from convergence_simulator.memory.look import UP_TO_DATE, History, Lag, Look, RowKey, Tables

ViewT = TypeVar('ViewT')
V = TypeVar('V')


def no_pause(point: str) -> None:
    """Do nothing; the default of `MemoryStore.pause`."""


class MemoryStore:
    """Keeps rows in dictionaries.

    :param clock: returns the time in seconds since the epoch.
    :ivar pause: called with the name of each point at which other transactions may run. It may raise
        `DatabaseUnavailable` at ``begin``, ``commit`` and ``committed``: the connection is lost before or after the
        commit.
    :ivar rest: called with the seconds to wait before a transaction without a database is tried again.
    :ivar block: called when another transaction has a lock; returns when the lock may be free.
    :ivar released: called when a transaction has released its locks: blocked transactions can try again.
    :ivar committed: called after each commit with its decision.
    :ivar lag: called for each transaction and each query; returns the lag of the server that it uses.
    """

    def __init__(self, clock: Callable[[], float], *, attempts: int = 12) -> None:
        self.clock = clock
        self.tables = Tables()
        self.pause: Callable[[str], None] = no_pause
        self.rest: Callable[[float], None] = lambda duration_s: None
        self.block: Callable[[], None] = lambda: None
        self.released: Callable[[], None] = lambda: None
        self.committed: Callable[[Decision[Any]], None] = lambda decision: None
        self.lag: Callable[[], Lag] = lambda: UP_TO_DATE
        self._history: History | None = None
        self._attempts = attempts
        self._locked: dict[RowKey, object] = {}
        self._promotions = 0
        self._one_at_a_time = concurrency.Lock()

    def transact(
        self, scope: Scope[ViewT], decide: Callable[[ViewT], Decision[V]], following: Following | None = None
    ) -> Committed[V] | None:
        """Run a transaction, as `convergence.db.transaction.Transactions.transact` does."""
        if self.pause is no_pause:
            with self._one_at_a_time:
                return self._transact(scope, decide, following)
        return self._transact(scope, decide, following)

    def _transact(
        self, scope: Scope[ViewT], decide: Callable[[ViewT], Decision[V]], following: Following | None
    ) -> Committed[V] | None:
        for attempt in range(self._attempts):
            try:
                return self._once(scope, decide, following)
            except Missing:
                return None
            except Conflict as error:
                if isinstance(error, OlderState) and attempt == self._attempts - 1:
                    raise
            except DatabaseUnavailable:
                if attempt == self._attempts - 1:
                    raise
                self.rest(min(0.1 * 2**attempt, 4.0))
        raise Conflict(f'{type(scope).__name__} kept changing')

    def spread(self, commits: int) -> None:
        """From now on simulate several servers, which may lag behind by up to `commits` commits; see `lag`."""
        self._history = History(commits)

    def promote(self, commits: int) -> None:
        """Promote the server that lags by `commits` commits: these commits and all connections are lost.

        `spread` must have been called with at least as many.
        """
        assert self._history is not None, 'older states are not kept'
        older = self._history.before(commits).as_they_are()
        older.notified_at = self.tables.notified_at
        vars(self.tables).update(vars(older))
        self._history.forget(commits)
        self._promotions += 1
        self._locked.clear()
        self.released()

    def seen(self) -> Tables:
        """Return the rows that the server of a query shows."""
        return self._shown(self.lag()) or self.tables

    def keep(self) -> None:
        """Record the state after a write without a decision, so that lagging servers show the write later."""
        if self._history is not None:
            self._history.keep(self.tables)

    def _shown(self, lag: Lag) -> Tables | None:
        return self._history.before(lag.commits) if self._history is not None and lag.commits else None

    def _once(
        self, scope: Scope[ViewT], decide: Callable[[ViewT], Decision[V]], following: Following | None
    ) -> Committed[V]:
        assumed = assumption(scope)
        if assumed is not None:
            with suppress(Conflict):
                return self._decided(scope, decide, assumed, following)
        return self._decided(scope, decide)

    def _decided(
        self,
        scope: Scope[ViewT],
        decide: Callable[[ViewT], Decision[V]],
        assumed: ViewT | None = None,
        following: Following | None = None,
    ) -> Committed[V]:
        self.pause('begin')
        connected = self._promotions
        with self._looking() as look:
            if assumed is None:
                decision = decide(load(look, scope))
            else:
                decision = decide(assumed)
                require_checked(decision)
                lock_written(look, decision.effects)
            if not decision.effects:
                return Committed.of(decision, ())
            begun = _begun(look, following, decision.effects) if following is not None else None
            lock_doubted(look, decision.effects)
            self.pause('commit')
            if connected != self._promotions:
                raise DatabaseUnavailable('another server has taken over')
            node, more, becomes_ready = begun or (None, Decision(None), False)
            of_arrival = node if becomes_ready else None
            ready = self._commit(look, scope, (*decision.effects, *more.effects), of_arrival)
            self.committed(decision)
            if begun is not None:
                self.committed(more)
        self.pause('committed')
        committed = Committed.of(decision, ready)
        return committed if node is None else committed.followed_by(node, Committed.of(more, ()))

    def decide_free(
        self, nodes: FreeNodes, decide: Callable[[NodeView], Decision[V] | None]
    ) -> tuple[Committed[V], ...]:
        """Decide about free nodes, as `convergence.db.transaction.Transactions.decide_free` does."""
        with suppress(Conflict):
            if self.pause is no_pause:
                with self._one_at_a_time:
                    return self._decided_free(nodes, decide)
            return self._decided_free(nodes, decide)
        return ()

    def _decided_free(
        self, nodes: FreeNodes, decide: Callable[[NodeView], Decision[V] | None]
    ) -> tuple[Committed[V], ...]:
        self.pause('begin')
        connected = self._promotions
        decided: list[Decision[V]] = []
        with self._looking() as look:
            for number in nodes.numbers:
                with suppress(Missing):
                    decision = decide(load(look, nodes.one(number)))
                    if decision is not None:
                        decided.append(decision)
            if not decided:
                return ()
            self.pause('commit')
            if connected != self._promotions:
                raise DatabaseUnavailable('another server has taken over')
            self._commit(look, None, [effect for each in decided for effect in each.effects], None)
            for each in decided:
                self.committed(each)
        self.pause('committed')
        return tuple(Committed.of(each, ()) for each in decided)

    def _commit(
        self, look: Look, scope: Scope[Any] | None, decided: Iterable[Effect], becomes_ready: tuple[str, int] | None
    ) -> Ready:
        if self._history is None:
            return apply(self.tables, decided, self.clock(), becomes_ready=becomes_ready)
        if not look.lags:
            look.require_held()
        # As in `convergence.db.statements.loading.plans` for a cluster, a plan writes each row that it locks.
        planned = look.held if isinstance(scope, WholeStack | SeveralStacks) else ()
        ready = apply(
            self.tables, decided, self.clock(), seen=look.tables, written=planned, becomes_ready=becomes_ready
        )
        self._history.keep(self.tables)
        return ready

    @contextmanager
    def _looking(self) -> Iterator[Look]:
        """Give the rows to a transaction, and release its locks afterwards."""
        lag = self.lag()
        older = self._shown(lag)
        mine, held = object(), []

        def wait(key: RowKey, patient: bool) -> bool:
            self.pause(f'lock {key[0]}')
            if older is not None:
                return True  # another server has other locks
            while self._locked.get(key, mine) is not mine:
                if not patient:
                    return False
                self.block()
            if key not in self._locked:
                self._locked[key] = mine
                held.append(key)
            return True

        try:
            yield Look(self.tables, wait, self.clock, older, catches_up=lag.catches_up)
        finally:
            for key in held:
                if self._locked.get(key) is mine:
                    del self._locked[key]
            if held:
                self.released()


def _begun(
    look: Look, following: Following, decided: Iterable[Effect]
) -> tuple[tuple[str, int], Decision[Any], bool] | None:
    """Return the node that follows, its decision, and True if it becomes ready by this; None without a decision.

    :param decided: the effects that the transaction writes before.
    """
    number, first = following.number, None
    if number is None:
        draft = drafted(Draft(look.tables, look.committed, look.now()), decided)
        first, look.written = following.first_of(draft.ready), draft.written_nodes
        number = following.otherwise() if first is None else first
    if number is None:
        return None
    try:
        decision = following.decide(load(look, following.scope(number)))
    except (Missing, Conflict):
        return None
    return ((following.traversal_id, number), decision, first is not None) if decision is not None else None
