"""The store: lock and read, decide, write, commit. One method, one transaction.

The decision is a pure function, so the whole transaction can be run again: after a conflict, a deadlock or a lost
connection everything is read again and decided again, for a bounded time.
"""

from __future__ import annotations

import contextlib
import itertools
import logging
import random
import time
from collections.abc import Callable, Iterator, Sequence
from typing import Any, TypeVar

from sqlalchemy.engine import Connection, Engine

from convergence import concurrency
from convergence.core.effects import Decision, Effect, FinishNode, InsertEvents, UpdateResource
from convergence.core.views import NodeView, PlanView
from convergence.db.connections import failures
from convergence.db.connections.drivers import read_alone
from convergence.db.scopes import FreeNodes, Scope
from convergence.db.stale_reads import assumption, require_checked
from convergence.db.statements.applying.apply import FollowUp, apply
from convergence.db.statements.applying.changing import BeginNode
from convergence.db.statements.applying.outbox import Audience, narrowed, needs_notification, write_outbox
from convergence.db.statements.applying.statistics import analyze, grown_by
from convergence.db.statements.loading.load import load
from convergence.db.statements.loading.nodes import read_free_node, read_free_nodes, view_of_free_node
from convergence.db.statements.prepared.batch import StatementBatch
from convergence.db.transaction import Committed, Following, Missing, Ready
from convergence.errors import Conflict, DatabaseUnavailable, OlderState
from convergence.values import replace

LOG = logging.getLogger(__name__)

ViewT = TypeVar('ViewT')
V = TypeVar('V')

AroundCommit = Callable[[Callable[[], None], object, object], None]

TRANSIENT = (Conflict, DatabaseUnavailable)


class Store:
    """Carries out decisions on the rows of one database.

    :param interval_s: mean pause in seconds before the first repetition; it doubles each time, up to 64 times. While
        the database cannot be reached, pauses are 10 to 400 times as long.
    :param patience_s: seconds for which a transaction is repeated before its last error is raised. Only time counts:
        on a cluster that certifies transactions at their commit, many attempts take little time. It bounds the sum
        of all waits for locks and connections.
    :param around_commit: called instead of a commit, with the commit, the deciding function and its verdict; tests
        place failpoints there.
    :param clock: seconds on any clock that only goes forward; patience is measured by it.
    :param audience: recipients of notifications.
    """

    def __init__(
        self,
        engine: Engine,
        *,
        interval_s: float = 0.01,
        patience_s: float = 30.0,
        around_commit: AroundCommit | None = None,
        clock: Callable[[], float] = time.monotonic,
        audience: Audience = Audience.NONE,
    ) -> None:
        self.engine = engine
        self._around_commit = around_commit
        self._interval_s = interval_s
        self._patience_s = patience_s
        self._clock = clock
        self._audience = audience
        self._random = random.Random()
        self._not_analyzed: set[str] = set()
        # SQLite has one writer at a time. Inside the process they wait here, in order, not in the busy handler.
        self._one_writer = concurrency.Lock() if engine.dialect.name == 'sqlite' else contextlib.nullcontext()

    def transact(
        self, scope: Scope[ViewT], decide: Callable[[ViewT], Decision[V]], following: Following | None = None
    ) -> Committed[V] | None:
        """Lock and read `scope`, call `decide`, and carry out its decision, all or nothing.

        :param decide: a pure function; it may be called several times.
        :param following: see `convergence.db.transaction.Transactions.transact`.
        :returns: None if the scope's stack, node or resource does not exist (any more).
        :raises Conflict: the rows kept changing.
        :raises DatabaseUnavailable: the database cannot be reached.
        """
        try:
            return self._repeated(lambda: self._once(scope, decide, following), type(scope).__name__, TRANSIENT)
        except Missing:
            return None

    def write(self, act: Callable[[Connection], V], by: object) -> V:
        """Carry out `act` and commit, for what needs no decision. After a conflict all of it is done again.

        :param act: writes on the connection that it is given; it may be called several times.
        :param by: see `commit`.
        :raises Conflict: the rows kept changing under our hands.
        :raises DatabaseUnavailable: the database cannot be reached. That is not waited for.
        """

        def once() -> V:
            with self.writing() as connection:
                result = act(connection)
                self.commit(connection, by)
            return result

        return self._repeated(once, getattr(by, '__qualname__', str(by)), (Conflict,))

    def _repeated(self, once: Callable[[], V], name: str, transient: tuple[type[Exception], ...]) -> V:
        begun, paused_s = self._clock(), 0.0
        for attempt in itertools.count(1):
            try:
                return once()
            except transient as error:
                if max(self._clock() - begun, paused_s) >= self._patience_s:
                    if isinstance(error, DatabaseUnavailable | OlderState):
                        raise
                    raise Conflict(f'{name} kept changing; the operation can be repeated: {error}') from error
                LOG.debug('Repeating transaction on %s: %s', name, error)
                pause_s = self._pause_s(attempt, error)
                concurrency.sleep(pause_s)
                paused_s += pause_s
        raise AssertionError('unreachable')

    def _pause_s(self, attempt: int, error: Exception) -> float:
        """How long to wait before the next attempt. A conflict is over soon, an outage is not."""
        if isinstance(error, DatabaseUnavailable):
            return self._random.uniform(0.75, 1.0) * self._interval_s * min(10 << min(attempt - 1, 6), 400)
        return self._random.uniform(0.0, self._interval_s * 2 ** min(attempt, 6))

    def _once(
        self, scope: Scope[ViewT], decide: Callable[[ViewT], Decision[V]], following: Following | None
    ) -> Committed[V]:
        assumed = assumption(scope)
        if assumed is not None:
            with contextlib.suppress(Conflict):
                return self._decided(scope, decide, assumed, following)
        return self._decided(scope, decide)

    def _decided(
        self,
        scope: Scope[ViewT],
        decide: Callable[[ViewT], Decision[V]],
        assumed: ViewT | None = None,
        following: Following | None = None,
    ) -> Committed[V]:
        follow = _Follow(following, self._audience) if following is not None else None
        with self.writing() as connection:
            view = load(connection, scope) if assumed is None else assumed
            decision = decide(view)
            if assumed is not None:
                require_checked(decision)
            if not decision.effects:
                connection.rollback()
                return Committed.of(decision, ())
            if follow is not None:
                follow.after = decision.effects
            batch = StatementBatch(connection)
            _carry_out(batch, decision.effects, self._audience_of(view), follow)
            batch.send_with_commit()
            with batch.refused():
                self.commit(connection, decide, decision.verdict)
        self._analyze_grown_tables(decision.effects)
        committed = Committed.of(decision, batch.ready)
        return committed if follow is None else follow.on(committed)

    def _analyze_grown_tables(self, effects: Sequence[Effect]) -> None:
        """Analyze tables that have grown. A failure does not repeat the committed transaction."""
        if self.engine.dialect.name != 'postgresql':
            return
        for name, rows in grown_by(effects).items():
            try:
                with self.writing() as connection:
                    analyze(connection, name, rows)
            except Exception:
                if name not in self._not_analyzed:
                    LOG.warning(
                        'ANALYZE of the grown table %s failed; plans may be slow until autovacuum analyzes it',
                        name,
                        exc_info=True,
                    )
                self._not_analyzed.add(name)

    def decide_free(
        self, nodes: FreeNodes, decide: Callable[[NodeView], Decision[V] | None]
    ) -> tuple[Committed[V], ...]:
        """See `convergence.db.transaction.Transactions.decide_free`."""
        with contextlib.suppress(Conflict):
            return self._decided_free(nodes, decide)
        return ()

    def _decided_free(
        self, nodes: FreeNodes, decide: Callable[[NodeView], Decision[V] | None]
    ) -> tuple[Committed[V], ...]:
        decided: list[Decision[V]] = []
        with self.writing() as connection:
            batch = StatementBatch(connection)
            free = read_free_nodes(batch, nodes)
            for number in (number for number in nodes.numbers if number in free):
                view = view_of_free_node(connection, nodes.one(number), free[number])
                decision = decide(view)
                if decision is not None:
                    effects = tuple(_held_against(view, effect) for effect in decision.effects)
                    decided.append(replace(decision, effects=effects))
            if not decided:
                connection.rollback()
                return ()
            effects = tuple(itertools.chain.from_iterable(each.effects for each in decided))
            _carry_out(batch, effects, self._audience)
            batch.send_with_commit()
            with batch.refused():
                self.commit(connection, decide, [each.verdict for each in decided])
        return tuple(Committed.of(each, ()) for each in decided)

    def _audience_of(self, view: object) -> Audience:
        seen = view if isinstance(view, tuple) else (view,)
        told = any(each.has_webhook if isinstance(each, PlanView | NodeView) else each is not None for each in seen)
        return narrowed(self._audience, has_webhook=told)

    def carry_out(self, connection: Connection, effects: Sequence[Effect]) -> Ready:
        """Carry out effects inside the caller's transaction, and store their notifications.

        :returns: the nodes that became ready and are to be dispatched.
        """
        batch = StatementBatch(connection)
        _carry_out(batch, effects, self._audience)
        batch.end()
        return batch.ready

    def commit(self, connection: Connection, by: object, verdict: object = None) -> None:
        """Commit the transaction.

        :param by: the deciding function, for failpoints.
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
        with self._one_writer, failures.translated_errors(), self.engine.connect() as connection:
            yield connection

    @contextlib.contextmanager
    def reading(self) -> Iterator[Connection]:
        """A connection for reads of committed rows: each statement sees all commits before its turn.

        :raises DatabaseUnavailable: the database cannot be reached (any more).
        """
        with (
            failures.translated_errors(),
            self.engine.connect().execution_options(reads_only=True) as connection,
            read_alone(connection),
        ):
            yield connection


def _carry_out(
    batch: StatementBatch, effects: Sequence[Effect], audience: Audience, follow_up: FollowUp | None = None
) -> None:
    # Other transactions wait for the nodes that are arrived at: notifications are read and written before.
    first, last = _arriving_last(effects) if needs_notification(effects, audience) else ((), effects)
    apply(batch, first)
    write_outbox(batch, effects, audience)
    apply(batch, last, follow_up)


def _arriving_last(effects: Sequence[Effect]) -> tuple[Sequence[Effect], Sequence[Effect]]:
    """Effects, cut where a node is done and arrives at others; an event that belongs to that is with it."""
    arrivals = [place for place, each in enumerate(effects) if isinstance(each, FinishNode) and each.last is None]
    place = arrivals[-1] if arrivals else len(effects)
    if arrivals and place and isinstance(effects[place - 1], InsertEvents):
        place -= 1
    return effects[:place], effects[place:]


class _Follow:
    """Decides about the node that follows, inside the transaction that finishes another one.

    :ivar after: the effects of the decision that finishes that one.
    """

    def __init__(self, following: Following, audience: Audience) -> None:
        self._following = following
        self._audience = audience
        self._begun: tuple[int, Decision[Any]] | None = None
        self.after: Sequence[Effect] = ()
        self.comes_first = following.number is not None

    def effects(self, batch: StatementBatch) -> Sequence[Effect]:
        """See `convergence.db.statements.applying.apply.FollowUp`."""
        number = self._number(batch.ready)
        if number is None:
            return ()
        scope = self._following.scope(number, self.after)
        looked = read_free_node(batch, scope)
        try:
            view = view_of_free_node(batch.connection, scope, looked)
        except (Missing, Conflict):  # nothing of it is written yet, so nothing has to be undone
            return ()
        decision = self._following.decide(view)
        if decision is None or needs_notification(
            decision.effects, self._audience
        ):  # that is written down after all others
            return ()
        decision = replace(decision, effects=tuple(_held_against(view, effect) for effect in decision.effects))
        self._begun = (number, decision)
        return decision.effects

    def _number(self, ready: Ready) -> int | None:
        if self.comes_first:
            return self._following.number
        number = self._following.first_of(ready)
        return self._following.otherwise() if number is None else number

    def on(self, committed: Committed[V]) -> Committed[V]:
        """Return the outcome of the transaction with that of the node that follows."""
        if self._begun is None:
            return committed
        number, decision = self._begun
        return committed.followed_by((self._following.traversal_id, number), Committed.of(decision, ()))


def _held_against(view: NodeView, effect: Effect) -> Effect:
    """An effect that comes true only if its node is as it was seen."""
    if not isinstance(effect, UpdateResource) or view.resource is None or effect.resource_id != view.resource.id:
        return effect
    node = (view.traversal.id, view.node.number)
    return BeginNode(effect.resource_id, effect.owner, effect.fence, effect.changes, *node)
