"""What goes wrong by chance, and what is out of order at the moment."""

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
"""For how long a process stands still: within its lease, beyond it, until others have finished its work."""
OUTAGES_S = (SWEEP_S / 2, 20.0, 2 * LEASE_S)
"""For how long a broker or a database is away."""
IN_TRANSACTIONS = frozenset({'begin', 'commit', 'committed'})
"""Points at which a database can go away. Before ``commit`` nothing is stored; after ``committed`` all is, but nobody
is told."""
IN_DATABASE = IN_TRANSACTIONS | {'read'}
MOST_DRIFTS = 6
"""So often somebody else does something to an object in one run, by chance."""
MOST_LOSSES = 2
"""So often a database loses commits in one run, by chance."""
LAGS = (1, 2, 4, 12)
"""By how many commits a server of the database lags behind."""


@dataclass(frozen=True, slots=True)
class Faults:
    """How often things go wrong: rates between 0 and 1.

    :param drop: of the messages that are sent.
    :param double: of the messages that are delivered.
    :param crash: of the points at which a process could die.
    :param freeze: of the points at which a process could stand still for a while, within its lease or beyond.
    :param database: of the transactions that end without an answer: some were carried out, some not.
    :param outage: of the sweep intervals in which the broker or the database goes away for a while.
    :param lag: of the transactions and questions of a process that come to a server of the database which lags behind
        the others: it shows the rows as they were some commits ago.
    :param back: of the points at which the database could go back to a state of some commits ago.
    :param drift: of the points at which somebody else could change, spoil or remove an object; it has observers.
    :param most_crashes: after so many nothing crashes any more, so that every run comes to an end. As many standstills
        and as many outages there are at most.
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
        """Whether anything may go wrong at all."""
        return bool(self.drop or self.double or self.at_points or self.outage or self.lag)

    @property
    def at_points(self) -> bool:
        """Whether anything may go wrong wherever a process may be interrupted."""
        return bool(self.crash or self.freeze or self.database or self.back or self.drift)


NONE = Faults()
"""Nothing goes wrong by itself."""


class Trouble:
    """Rolls the dice for the faults of a world, and knows what is away.

    :ivar broker_until: until then there is no broker; `database_until`: no database.
    :ivar last_at: when anything went wrong for the last time.
    :ivar excuses: whether anybody may have lost a row without having died: he was kept from his heartbeat, or told to
        stop and could not, or the clock was set.
    :ivar freezes: how many processes have stood still by chance; `failures`: how many transactions ended without an
        answer; `outages`: how often broker or database went away; `lags`: how often an older state was shown; `drifts`:
        how often somebody else has done something to an object by chance.
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
        """Whether no message gets anywhere now."""
        return self.broker_until > self._world.kernel.now

    @property
    def database_is_away(self) -> bool:
        """Whether every question to the database fails now."""
        return self.database_until > self._world.kernel.now

    def ends_at(self) -> list[float]:
        """When something comes back by itself."""
        now = self._world.kernel.now
        return [until for until in (self.broker_until, self.database_until) if until > now]

    def happened(self, until: float = 0.0) -> None:
        """Something has gone wrong just now, or goes wrong until a moment; from here on the sweeper has work."""
        self._world.lost = True
        self.last_at = max(self._world.kernel.now, until, self.last_at)

    def end(self) -> None:
        """From now on nothing goes wrong by chance."""
        self._faults = self._world.faults = NONE

    # --- what goes wrong --------------------------------------------------------------------------------------

    def lose_broker(self, duration_s: float) -> None:
        """The broker goes away, with all the messages that it had, and comes back empty."""
        world = self._world
        world.watch.story('broker', f'is away for {duration_s:g} s', '')
        self.broker_until = max(self.broker_until, world.kernel.now + duration_s)
        world.dropped += len(world.bag)
        world.bag.clear()
        self.happened(self.broker_until)

    def lose_database(self, duration_s: float) -> None:
        """The database goes away; what was committed is there when it comes back."""
        world = self._world
        world.watch.story('rows', f'cannot be reached for {duration_s:g} s', '')
        self.database_until = max(self.database_until, world.kernel.now + duration_s)
        self.excuses |= duration_s + SWEEP_S >= LEASE_S
        world.kernel.at_point = self._at_point
        self.happened(self.database_until)

    # --- by chance --------------------------------------------------------------------------------------------

    def _at_point(self, fiber: Fiber, point: str) -> None:
        """A fiber comes to a point: does its process die here, or stand still, does the database not answer?

        :raises Crashed: the first.
        :raises DatabaseUnavailable: the last.
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
        """A user waits for the answer of a fiber; the user knows what has been committed so far."""
        self._asked[fiber] = self._world.commits

    def lag(self) -> Lag:
        """Somebody looks at the rows: does he come to a server that lags behind?

        Whoever answers a user has seen all that users have been told: a server that answers waits for what others have
        committed (`convergence.db.connections.database.WAITS_FOR_THE_OTHERS`).
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
        """A sweep interval begins: does the broker or the database go away in it?"""
        faults, choices = self._faults, self._world.choices
        if not faults.outage or self.outages >= faults.most_crashes or not choices.happens(faults.outage):
            return
        self.outages += 1
        duration_s = OUTAGES_S[choices.pick(len(OUTAGES_S))]
        if choices.pick(2):
            self.lose_database(duration_s)
        else:
            self.lose_broker(duration_s)
