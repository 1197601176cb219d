"""Faults that happen by chance, and the outages that last at the moment."""

from __future__ import annotations

import weakref
from dataclasses import dataclass
from typing import TYPE_CHECKING

from convergence.errors import DatabaseUnavailable
from convergence_simulator.memory.look import UP_TO_DATE, Lag
from convergence_simulator.world.kernel import Crashed, Fiber
from convergence_simulator.world.meddling import meddle
from convergence_simulator.world.rewinding import LOSSES, go_back

if TYPE_CHECKING:
    from convergence_simulator.world.world import World

LEASE_S = 30.0
SWEEP_S = 5.0

STANDSTILLS_S = (10.0, LEASE_S + 2 * SWEEP_S, 4 * LEASE_S)
"""Durations of a standstill of a process: shorter than its lease; longer; so long that others have finished its work.
"""
OUTAGES_S = (SWEEP_S / 2, 20.0, 2 * LEASE_S)
"""Durations of an outage of the broker or the database."""
IN_TRANSACTIONS = frozenset({'begin', 'commit', 'committed'})
"""Points at which a database can go away. Before ``commit`` nothing is stored. After ``committed`` everything is
stored, but the process gets no answer."""
IN_DATABASE = IN_TRANSACTIONS | {'read'}
MOST_DRIFTS = 6
"""Maximum number of times that an outsider changes an object by chance in one run."""
MOST_LOSSES = 2
"""Maximum number of times that the database loses commits by chance in one run."""
LAGS = (1, 2, 4, 12)
"""Numbers of commits by which a server of the database lags behind."""


@dataclass(frozen=True, slots=True)
class Faults:
    """Rates of faults, each between 0 and 1.

    :param drop: share of the sent messages that are lost.
    :param double: share of the delivered messages that are delivered again.
    :param crash: share of the points at which a process could die and does.
    :param freeze: share of the points at which a process stands still for a while, within its lease or beyond.
    :param database: share of the transactions that end without an answer: some were carried out, some not.
    :param outage: share of the sweep intervals in which the broker or the database goes away for a while.
    :param lag: share of the transactions and queries that reach a database server which lags behind the others: it
        shows the rows of some commits ago.
    :param back: share of the points at which the database goes back to its state of some commits ago.
    :param drift: share of the points at which an outsider changes, spoils or removes an object. The world has observers
        then.
    :param most_crashes: maximum number of crashes, so that every run ends; also the maximum number of standstills and
        of outages.
    """

    drop: float = 0.0
    double: float = 0.0
    crash: float = 0.0
    most_crashes: int = 3
    freeze: float = 0.0
    database: float = 0.0
    outage: float = 0.0
    lag: float = 0.0
    back: float = 0.0
    drift: float = 0.0

    @property
    def any(self) -> bool:
        """True if anything may go wrong at all."""
        return bool(self.drop or self.double or self.at_points or self.outage or self.lag)

    @property
    def at_points(self) -> bool:
        """True if a fault may happen at the points where a process may be interrupted."""
        return bool(self.crash or self.freeze or self.database or self.back or self.drift)


NONE = Faults()
"""No faults by chance."""


class Trouble:
    """Chooses the faults of a world by chance, and records the outages.

    :ivar broker_until: time at which the broker comes back; `database_until`: time at which the database does.
    :ivar last_at: time of the latest fault.
    :ivar excuses: True if a process may have lost a row although it did not die: it could not send its heartbeat, it
        did not stop when it was cancelled, or the clock was set.
    :ivar freezes: number of standstills by chance; `failures`: of transactions that ended without an answer; `outages`:
        of outages of broker or database; `lags`: of reads that showed an older state; `drifts`: of changes of objects
        by an outsider.
    """

    def __init__(self, world: World, faults: Faults) -> None:
        self._world = world
        self._faults = faults
        self.broker_until = self.database_until = 0.0
        self.last_at = 0.0
        self.excuses = False
        self.freezes = self.failures = self.outages = self.lags = self.drifts = 0
        self._asked: weakref.WeakKeyDictionary[Fiber, int] = weakref.WeakKeyDictionary()
        if faults.at_points:
            world.kernel.at_point = self._at_point

    @property
    def broker_is_away(self) -> bool:
        """True if the broker is away: no message arrives."""
        return self.broker_until > self._world.kernel.now

    @property
    def database_is_away(self) -> bool:
        """True if the database is away: every statement fails."""
        return self.database_until > self._world.kernel.now

    def ends_at(self) -> list[float]:
        """Return the times at which the broker and the database come back, if they are away."""
        now = self._world.kernel.now
        return [until for until in (self.broker_until, self.database_until) if until > now]

    def happened(self, until: float = 0.0) -> None:
        """Record a fault that happens now, or lasts until a given time. From here on the sweeper has work."""
        self._world.lost = True
        self.last_at = max(self._world.kernel.now, until, self.last_at)

    def end(self) -> None:
        """Stop all faults by chance from now on."""
        self._faults = self._world.faults = NONE

    # --- outages ----------------------------------------------------------------------------------------------

    def lose_broker(self, duration_s: float) -> None:
        """Take the broker away. All its messages are lost, and it comes back empty."""
        world = self._world
        world.watch.story('broker', f'is away for {duration_s:g} s', '')
        self.broker_until = max(self.broker_until, world.kernel.now + duration_s)
        world.dropped += len(world.bag)
        world.bag.clear()
        self.happened(self.broker_until)

    def lose_database(self, duration_s: float) -> None:
        """Take the database away. All commits are still there when it comes back."""
        world = self._world
        world.watch.story('rows', f'cannot be reached for {duration_s:g} s', '')
        self.database_until = max(self.database_until, world.kernel.now + duration_s)
        self.excuses |= duration_s + SWEEP_S >= LEASE_S
        world.kernel.at_point = self._at_point
        self.happened(self.database_until)

    # --- by chance --------------------------------------------------------------------------------------------

    def _at_point(self, fiber: Fiber, point: str) -> None:
        """Decide by chance, at a point of a fiber, if its process dies or stands still, or if the database fails.

        :raises Crashed: the process dies.
        :raises DatabaseUnavailable: the database does not answer.
        """
        faults, world = self._faults, self._world
        if fiber.process.name != 'user':
            if faults.crash and world.crashes < faults.most_crashes and world.choices.happens(faults.crash):
                world.crash(fiber.process)
                raise Crashed
            if faults.freeze and self.freezes < faults.most_crashes and world.choices.happens(faults.freeze):
                self.freezes += 1
                world.freeze(fiber.process, STANDSTILLS_S[world.choices.pick(len(STANDSTILLS_S))])
            if faults.back and world.losses < MOST_LOSSES and world.choices.happens(faults.back):
                go_back(world, LOSSES[world.choices.pick(len(LOSSES))])
            if faults.drift and self.drifts < MOST_DRIFTS and world.choices.happens(faults.drift):
                self.drifts += meddle(world)
        if point in IN_DATABASE and self.database_is_away:
            raise DatabaseUnavailable('the simulated database is away')
        if faults.database and point in IN_TRANSACTIONS and world.choices.happens(faults.database):
            self.failures += 1
            self.happened()
            world.watch.story('rows', 'do not answer', '')
            raise DatabaseUnavailable('the simulated database does not answer')

    def asked(self, fiber: Fiber) -> None:
        """Note the number of commits at the time at which a user sent the request that a fiber answers."""
        self._asked[fiber] = self._world.commits

    def lag(self) -> Lag:
        """Decide by chance if a read reaches a database server that lags behind; return how far.

        A fiber that answers a user never shows a state older than the request: a server that answers waits for the
        commits of the others (`convergence.db.connections.database.WAITS_FOR_THE_OTHERS`).
        """
        faults, world, fiber = self._faults, self._world, self._world.kernel.current
        if fiber is None or not world.choices.happens(faults.lag):
            return UP_TO_DATE
        commits = LAGS[world.choices.pick(len(LAGS))]
        if fiber in self._asked:
            commits = min(commits, world.commits - self._asked[fiber])
        if not commits:
            return UP_TO_DATE
        self.lags += 1
        self.happened()
        world.watch.story('rows', f'show what they were {commits} commits ago', fiber.process.name)
        return Lag(commits, catches_up=bool(world.choices.pick(2)))

    def at_sweep(self) -> None:
        """Decide by chance, at the beginning of a sweep interval, if the broker or the database goes away."""
        faults, choices = self._faults, self._world.choices
        if not faults.outage or self.outages >= faults.most_crashes or not choices.happens(faults.outage):
            return
        self.outages += 1
        duration_s = OUTAGES_S[choices.pick(len(OUTAGES_S))]
        if choices.pick(2):
            self.lose_database(duration_s)
        else:
            self.lose_broker(duration_s)
