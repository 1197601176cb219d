"""Notices when a database goes back, as after a fail-over to a standby that lacked commits, and when its clock jumps.

Every process compares what it sees with each heartbeat with what it has seen at the one before: its own number of
heartbeats, the number of sweeps, and the database's clock against its own.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import cache
from typing import Any

from sqlalchemy import (
    ColumnElement,
    Double,
    Integer,
    Row,
    Select,
    String,
    Update,
    bindparam,
    func,
    literal_column,
    select,
)
from sqlalchemy.engine import Connection
from typing_extensions import override

from convergence.core.model import Json
from convergence.db.connections.drivers import written_alone
from convergence.db.repositories.roster import BEAT, Roster
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


_SERVER_IS = {
    'postgresql': "coalesce(host(inet_server_addr()) || ':' || inet_server_port(), 'a local socket')",
    'mysql': "concat(@@hostname, ':', @@port)",
}
"""Which server answers, whatever stands between, by the kind of database."""

LOOKS_EVERY = 6
"""Where a heartbeat can tell nothing but that all is as it was expected, so many heartbeats come with one look."""

_OWN, _ANY, _OTHER = SERVICE.alias('own'), SERVICE.alias('any_process'), SERVICE.alias('other')
# As things are before a heartbeat that answers with it.
_OTHERS = (
    select(func.max(DUTY.c.turns)).scalar_subquery(),
    select(func.max(_ANY.c.beat_at)).scalar_subquery(),
    select(func.max(_OTHER.c.beat_at))
    .where(_OTHER.c.id != bindparam('key'), _OTHER.c.stopped.is_(False))
    .scalar_subquery(),
)


@cache
def _seen(database: str) -> tuple[ColumnElement[Any], ...]:
    """What a look shows beside the heartbeats of this process: the fields of `Sight`, and the server."""
    return (*_OTHERS, literal_column(_SERVER_IS.get(database, "''"), String))


@cache
def _look(database: str) -> Select[Any]:
    """What the witness looks at."""
    own = select(_OWN.c.beats).where(_OWN.c.id == bindparam('key')).scalar_subquery()
    return select(database_now(), own, *_seen(database))


@cache
def _witnessed(database: str) -> Update:
    """The heartbeat that answers with what a look at the same moment would show."""
    return BEAT.returning(database_now(), SERVICE.c.beats, *_seen(database))


@cache
def _expected(database: str) -> Update:
    """The heartbeat that is sent if everything is as it was expected, for a server that answers an UPDATE with numbers.

    One of them is told by ``last_insert_id``: how often the duty was taken.
    """
    turns = func.last_insert_id(func.coalesce(select(func.max(DUTY.c.turns)).scalar_subquery(), 0))
    return BEAT.where(
        SERVICE.c.beats == bindparam('beats_seen'),
        literal_column(_SERVER_IS[database], String) == bindparam('server_seen'),
        database_now().between(bindparam('earliest', type_=Double()), bindparam('latest', type_=Double())),
        turns >= bindparam('turns_seen', type_=Integer()),
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
        self._as_expected = 0
        self.server = ''

    def beat(self, load: Mapping[str, Json]) -> bool:
        """Send the heartbeat of the process, and look.

        On PostgreSQL that is one statement. MariaDB and MySQL are told what is expected: where they find it so there is
        no look. Else the look comes first.

        :param load: how busy the process is. It is told which database server answered last, too.
        :returns: whether the process is still registered; if not, it has been declared dead and must stop its work.
        :raises DatabaseUnavailable: see `look`.
        """
        database = self._store.engine.dialect.name
        if database == 'mysql' and self._is_as_expected(load):
            return True
        if database != 'postgresql' or self._last is None:
            self.look()
            return Roster(self._store).beat(self._id, self._told(load))
        values = {'key': self._id, 'busy': self._told(load)}
        row = self._store.write(
            lambda connection: written_alone(connection, _witnessed('postgresql'), values).first(), Roster.beat
        )
        if row is None:
            self.look()
        else:
            self._look_at(row)
        return row is not None

    def look(self) -> LostCommits | None:
        """Compare, and say what is wrong; to be called right before each heartbeat that is not sent by `beat`.

        :returns: what was lost, if anything was.
        :raises DatabaseUnavailable: the database cannot be reached; the next look compares with the last that could.
        """
        with self._store.reading() as connection:
            row = connection.execute(_look(connection.dialect.name), {'key': self._id}).one()
        return self._look_at(row)

    def _is_as_expected(self, load: Mapping[str, Json]) -> bool:
        """Send the heartbeat if nothing is seen that a look would tell of; whether it was sent."""
        last, at = self._last or (None, 0.0)
        if last is None or last.beats is None or self._as_expected + 1 >= LOOKS_EVERY:
            self._as_expected = 0
            return False
        seen_at = self._clock()
        now, beats = last.now + (seen_at - at), last.beats + 1
        expected = {
            'key': self._id,
            'busy': self._told(load),
            'beats_seen': beats,
            'server_seen': self.server,
            'earliest': now - self._most_s,
            'latest': now + self._most_s,
            'turns_seen': last.turns,
        }

        def beat(connection: Connection) -> int | None:
            sent = written_alone(connection, _expected('mysql'), expected)
            return sent.lastrowid if sent.rowcount == 1 else None

        turns = self._store.write(beat, Roster.beat)
        if turns is None:
            self._as_expected = 0
            return False
        self._as_expected += 1
        self._last = replace(last, now=now, beats=beats, turns=turns), seen_at
        return True

    def _told(self, load: Mapping[str, Json]) -> dict[str, Json]:
        return {**load, 'database': self.server}

    def _look_at(self, row: Row[Any]) -> LostCommits | None:
        now, beats, turns, newest, other, server = tuple(row)
        self.server = server
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
    """Return True if the database knew more when it was seen last. Both numbers only ever grow while the row is there."""
    went_back = seen.turns < last.turns
    if seen.beats is not None and last.beats is not None:
        went_back = went_back or seen.beats < last.beats
    return LostCommits(seen.newest, last.now) if went_back else None


def _moment(seconds: float) -> str:
    return datetime.fromtimestamp(seconds, UTC).strftime('%Y-%m-%dT%H:%M:%SZ')
