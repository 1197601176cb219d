"""The store and the cloud of a crew, whose threads pause by chance in transactions and calls."""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any, TypeVar

from typing_extensions import override

from convergence.concurrency import Lock
from convergence.core.effects import Decision
from convergence.core.model import Action, Json
from convergence.core.views import NodeView
from convergence.db.connections.database import Database
from convergence.db.scopes import FreeNodes, Scope
from convergence.db.statements.store import Store
from convergence.db.transaction import Committed, Following
from convergence_simulator.cloud.reality import TYPE, Mishap, PhysicalObject, Reality
from convergence_simulator.crew.belongings import Belongings
from convergence_simulator.crew.ledger import CommitLedger
from convergence_simulator.stores.deciding import Decisions, SeveralDecisions

ViewT = TypeVar('ViewT')
V = TypeVar('V')

LINGERS = 0.3
"""Share of the transactions, and of the calls to a service, that pause for a while."""
LINGER_S = 0.02
"""Maximum duration of such a pause in seconds: several times the duration of a transaction."""


class Gone(BaseException):
    """The process of this thread has been killed."""


class Moments:
    """Decides by chance at which moments threads pause."""

    def __init__(self, seed: int) -> None:
        self._random = random.Random(f'crew {seed}')
        self._lock = Lock()

    def happens(self, rate: float) -> bool:
        """Decide by chance, at this rate, if something happens now; True if it does."""
        with self._lock:
            return bool(rate) and self._random.random() < rate

    def below(self, count: int) -> int:
        """Return a random number from 0 to below `count`."""
        with self._lock:
            return self._random.randrange(count)

    def linger(self) -> None:
        """Pause by chance, so that other threads can run first."""
        with self._lock:
            lingers = self._random.random() < LINGERS
            duration_s = self._random.random() * LINGER_S
        if lingers:
            time.sleep(duration_s)


class CrewStore(Store):
    """The store of one process. It pauses in its transactions, reports commits to the ledger, and can be dead.

    :ivar dead: True after its process was killed.
    :ivar frozen_until: time until which its process stands still.
    :ivar accident: called before each transaction; it may kill or freeze the process.
    """

    def __init__(self, database: Database, moments: Moments, ledger: CommitLedger, belongings: Belongings) -> None:
        super().__init__(database)
        self.dead = False
        self.frozen_until = 0.0
        self.accident: Callable[[], None] = lambda: None
        self._moments = moments
        self._ledger = ledger
        self._belongings = belongings

    @override
    def transact(
        self, scope: Scope[ViewT], decide: Callable[[ViewT], Decision[V]], following: Following | None = None
    ) -> Committed[V] | None:
        """Run a transaction with a pause before the write. Without a lock, its decision may be outdated then."""
        decisions = Decisions(before=self._moments.linger)
        self.accident()
        committed = super().transact(scope, decisions.noting(decide), decisions.noting_both(following))
        true = decisions.come_true(committed)
        for decision, view in zip(true, decisions.views(), strict=False):
            self._ledger.committed(decision)
            self._belongings.committed(decision, view)
        if true:
            self._moments.linger()
        return committed

    @override
    def decide_free(
        self, nodes: FreeNodes, decide: Callable[[NodeView], Decision[V] | None]
    ) -> tuple[Committed[V], ...]:
        """Decide about free nodes, with pauses; see `transact`."""
        decisions = SeveralDecisions(before=self._moments.linger)
        self.accident()
        committed = super().decide_free(nodes, decisions.noting(decide))
        for decision, view in decisions.come_true(committed):
            self._ledger.committed(decision)
            self._belongings.committed(decision, view)
        if committed:
            self._moments.linger()
        return committed

    @contextmanager
    @override
    def writing(self) -> Iterator[Any]:
        """Open a connection for writing, while the process lives."""
        self._live()
        with super().writing() as connection:
            yield connection
            self._live()

    @contextmanager
    @override
    def reading(self) -> Iterator[Any]:
        """Open a connection for reading, while the process lives."""
        self._live()
        with super().reading() as connection:
            yield connection

    def _live(self) -> None:
        while not self.dead and self.frozen_until > time.monotonic():
            time.sleep(0.01)
        if self.dead:
            raise Gone

    @override
    def commit(self, connection: Any, by: object, verdict: object = None) -> None:
        """Commit, unless the process was killed."""
        self._live()
        super().commit(connection, by, verdict)


class SharedObjects(dict[Any, Any]):
    """A dictionary that one thread may iterate while another one changes it."""

    @override
    def values(self) -> Any:
        """Return all values at this moment."""
        return list(super().values())

    @override
    def items(self) -> Any:
        """Return all pairs at this moment."""
        return list(super().items())


class ThreadedReality(Reality):
    """A simulated cloud that real threads share."""

    def __init__(self, moments: Moments) -> None:
        super().__init__(objects=SharedObjects(), now=time.time, block=_block, pause=lambda point: moments.linger())
        self._one_at_a_time = Lock()

    @override
    def create(
        self, name: str, stack_id: str, token: str, properties: Mapping[str, Json], kind: str = TYPE
    ) -> PhysicalObject:
        """Create an object with a unique number."""
        with self._one_at_a_time:
            return super().create(name, stack_id, token, properties, kind)

    @override
    def goes_wrong(self, name: str, action: Action) -> Mishap | None:
        """Count an action once, with a lock, and return its mishap or None."""
        with self._one_at_a_time:
            return super().goes_wrong(name, action)


def _block(duration_s: float | None) -> None:
    time.sleep(3600.0 if duration_s is None else duration_s)
