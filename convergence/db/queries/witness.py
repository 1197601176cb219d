"""Notices when a database goes back, as after a fail-over to a standby that lacked commits, and when its clock jumps.

Every process compares what it sees at each heartbeat with what it has seen at the one before: its own number of
heartbeats, the number of sweeps, and the database's clock against its own.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime

from sqlalchemy import bindparam, func, select
from typing_extensions import override

from convergence.db.schema.columns import database_now
from convergence.db.schema.models import DUTY, SERVICE
from convergence.db.statements.store import Store

LOG = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Sight:
    """What one look shows. All times by the database's clock.

    :param beats: how many heartbeats of this process there were; None: it is not registered.
    :param turns: how often any engine took the duty of the sweeper.
    :param newest: the newest heartbeat of any process; None: there is none.
    :param newest_other: the newest one of any other process.
    """

    now: float
    beats: int | None
    turns: int
    newest: float | None
    newest_other: float | None


@dataclass(frozen=True, slots=True)
class LostCommits:
    """What was committed in this time is not in the database any more. Seconds since the epoch, the database's clock.

    :param since: the newest heartbeat that the database still knows of; None: it knows of none.
    :param until: when this process last saw something that the database does not know any more.
    """

    since: float | None
    until: float

    @override
    def __str__(self) -> str:
        since = 'a time that is not known' if self.since is None else _moment(self.since)
        return f'between {since} and {_moment(self.until)}'


SERVER_IS = {
    'postgresql': "SELECT coalesce(host(inet_server_addr()) || ':' || inet_server_port(), 'a local socket')",
    'mysql': "SELECT concat(@@hostname, ':', @@port)",
}
"""Which server answers, whatever stands between, by the kind of database."""

_OWN = SERVICE.c.id == bindparam('key')
_LOOK = select(
    database_now(),
    select(SERVICE.c.beats).where(_OWN).scalar_subquery(),
    select(func.max(DUTY.c.turns)).scalar_subquery(),
    select(func.max(SERVICE.c.beat_at)).scalar_subquery(),
    select(func.max(SERVICE.c.beat_at)).where(~_OWN, SERVICE.c.stopped.is_(False)).scalar_subquery(),
)


class Witness:
    """Compares what one process sees of its database with what it has seen before.

    :param lease_s: a clock that differs by more than half of it makes living processes look dead.
    :param on_loss: told of each time whose commits are lost, after the log was.
    :param clock: seconds on the clock of this process, from any moment on.
    :ivar server: the database server that answered last; empty for SQLite.
    """

    def __init__(
        self,
        store: Store,
        service_id: str,
        lease_s: float,
        on_loss: Callable[[LostCommits], None] = lambda loss: None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._store = store
        self._id = service_id
        self._most_s = lease_s / 2
        self._on_loss = on_loss
        self._clock = clock
        self._last: tuple[Sight, float] | None = None
        self._behind = False
        self.server = ''

    def look(self) -> LostCommits | None:
        """Compare, and say what is wrong; to be called right before each heartbeat.

        :returns: what was lost, if anything was.
        :raises DatabaseUnavailable: the database cannot be reached; the next look compares with the last that could.
        """
        with self._store.reading() as connection:
            now, beats, turns, newest, other = connection.execute(_LOOK, {'key': self._id}).one()
            asks = SERVER_IS.get(connection.dialect.name)
            self.server = '' if asks is None else str(connection.exec_driver_sql(asks).scalar_one())
        seen, at = Sight(now, beats, turns or 0, newest, other), self._clock()
        last, self._last = self._last, (seen, at)
        self._compare_with_others(seen)
        if last is None:
            return None
        self._compare_clocks(last[0], seen, at - last[1])
        loss = lost(last[0], seen)
        if loss is not None:
            LOG.error(
                'The database has lost what was committed %s: it is in an older state than this process has seen, as '
                'after a fail-over to a server that had not received everything. What was made in that time may exist '
                'without a row: "convergence-manage orphans" lists it.',
                loss,
            )
            self._on_loss(loss)
        return loss

    def _compare_with_others(self, seen: Sight) -> None:
        ahead_s = (seen.newest_other or 0.0) - seen.now
        if ahead_s > self._most_s and not self._behind:
            LOG.error(
                'The clocks of the database servers differ: the one that this process uses is at least %.0f s behind '
                'the one by which another process has sent a heartbeat. Leases are measured by these clocks: set them '
                'right (NTP), or let all processes use one server.',
                ahead_s,
            )
        self._behind = ahead_s > self._most_s

    def _compare_clocks(self, last: Sight, seen: Sight, passed_s: float) -> None:
        jump_s = (seen.now - last.now) - passed_s
        if abs(jump_s) > self._most_s:
            LOG.error(
                'The clock of the database has jumped by %+.0f s, as after a fail-over to a server with another clock. '
                'Leases are measured by it: processes may be taken for dead that are not. Keep the clocks of all '
                'database servers right (NTP).',
                jump_s,
            )


def lost(last: Sight, seen: Sight) -> LostCommits | None:
    """Whether the database knew more when it was seen last. Both numbers only ever grow while the row is there."""
    went_back = seen.turns < last.turns
    if seen.beats is not None and last.beats is not None:
        went_back = went_back or seen.beats < last.beats
    return LostCommits(seen.newest, last.now) if went_back else None


def _moment(seconds: float) -> str:
    return datetime.fromtimestamp(seconds, UTC).strftime('%Y-%m-%dT%H:%M:%SZ')
