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
class DatabaseState:
    """State of the database that one check shows. All times by the database's clock.

    :param beats: number of heartbeats of this process before this check; None: it is not registered.
    :param beat_at: the newest of them; None: it is not registered.
    :param turns: number of times that any engine took the duty of the sweeper.
    :param newest: the newest heartbeat of any process; None: there is none.
    :param newest_other: the newest heartbeat of any other process.
    """

    now: float
    beats: int | None
    beat_at: float | None
    turns: int
    newest: float | None
    newest_other: float | None


@dataclass(frozen=True, slots=True)
class LostCommits:
    """A time whose commits the database has lost. Seconds since the epoch, by the database's clock.

    :param since: a heartbeat from before the loss that the database still has; None: it has none.
    :param until: time of the check that noticed the loss. Everything later is stored in the present database.
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
"""Expressions for the server that answers, behind any proxy, by kind of database."""

CHECK_EVERY = 6
"""Heartbeats per full check, where a heartbeat only confirms the expected state."""

_OWN, _ANY, _OTHER = SERVICE.alias('own'), SERVICE.alias('any_process'), SERVICE.alias('other')
# All of them read the state before a heartbeat that answers with them.
_OTHERS = (
    select(_OWN.c.beats).where(_OWN.c.id == bindparam('key')).scalar_subquery(),
    select(_OWN.c.beat_at).where(_OWN.c.id == bindparam('key')).scalar_subquery(),
    select(func.max(DUTY.c.turns)).scalar_subquery(),
    select(func.max(_ANY.c.beat_at)).scalar_subquery(),
    select(func.max(_OTHER.c.beat_at))
    .where(_OTHER.c.id != bindparam('key'), _OTHER.c.stopped.is_(False))
    .scalar_subquery(),
)


@cache
def _seen(database: str) -> tuple[ColumnElement[Any], ...]:
    """Return the columns of a check: the fields of `DatabaseState` beside the time, and the server."""
    return (*_OTHERS, literal_column(_SERVER_IS.get(database, "''"), String))


@cache
def _check_query(database: str) -> Select[Any]:
    """Return the query of a check."""
    return select(database_now(), *_seen(database))


@cache
def _witnessed(database: str) -> Update:
    """Return the heartbeat that answers with the columns of a check."""
    return BEAT.returning(database_now(), *_seen(database))


@cache
def _expected(database: str) -> Update:
    """Return the heartbeat that succeeds only in the expected state, for servers that answer an UPDATE with numbers.

    ``last_insert_id`` returns one of them: the number of times that the duty was taken.
    """
    turns = func.last_insert_id(func.coalesce(select(func.max(DUTY.c.turns)).scalar_subquery(), 0))
    return BEAT.where(
        SERVICE.c.beats == bindparam('beats_seen'),
        literal_column(_SERVER_IS[database], String) == bindparam('server_seen'),
        database_now().between(bindparam('earliest', type_=Double()), bindparam('latest', type_=Double())),
        turns >= bindparam('turns_seen', type_=Integer()),
    )


class Witness:
    """Compares the state of the database with the state that this process saw before.

    :param lease_s: a clock that differs by more than half of it makes living processes look dead.
    :param on_loss: called with each time whose commits are lost, after the log line.
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
        self._last: tuple[DatabaseState, float] | None = None
        self._behind = False
        self._as_expected = 0
        self.server = ''

    def beat(self, load: Mapping[str, Json]) -> bool:
        """Send the heartbeat of the process, and check the database.

        On PostgreSQL that is one statement. MariaDB and MySQL get the expected state with the heartbeat and need no
        check if it
        holds; otherwise the check comes first.

        :param load: load of the process; the database server that answered last is added to it.
        :returns: True if the process is still registered; otherwise it was declared dead and must stop its work.
        :raises DatabaseUnavailable: see `check`.
        """
        database = self._store.engine.dialect.name
        if database == 'mysql' and self._is_as_expected(load):
            return True
        if database != 'postgresql' or self._last is None:
            self.check()
            return self._count(Roster(self._store).beat(self._id, self._told(load)))
        values = {'key': self._id, 'busy': self._told(load)}
        row = self._store.write(
            lambda connection: written_alone(connection, _witnessed('postgresql'), values).first(), Roster.beat
        )
        if row is None:
            self.check()
        else:
            self._compare(row)
        return self._count(row is not None)

    def _count(self, is_known: bool) -> bool:
        """Expect the heartbeat that was just answered in the next check.

        A process that is not registered any more registers again and counts from 0: that is no loss.
        """
        if self._last is not None:
            state, at = self._last
            beats = state.beats + 1 if is_known and state.beats is not None else None
            self._last = replace(state, beats=beats), at
        return is_known

    def check(self) -> LostCommits | None:
        """Check the database and report losses; call it before each heartbeat that `beat` does not send.

        :returns: the lost commits, if any.
        :raises DatabaseUnavailable: the database cannot be reached; the next check compares with the last successful
            one.
        """
        with self._store.reading() as connection:
            row = connection.execute(_check_query(connection.dialect.name), {'key': self._id}).one()
        return self._compare(row)

    def _is_as_expected(self, load: Mapping[str, Json]) -> bool:
        """Send the heartbeat if the database is in the expected state; return True if it was sent."""
        last, at = self._last or (None, 0.0)
        if last is None or last.beats is None or self._as_expected + 1 >= CHECK_EVERY:
            self._as_expected = 0
            return False
        seen_at = self._clock()
        now, beats = last.now + (seen_at - at), last.beats
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
        self._last = replace(last, now=now, beats=beats + 1, turns=turns), seen_at
        return True

    def _told(self, load: Mapping[str, Json]) -> dict[str, Json]:
        return {**load, 'database': self.server}

    def _compare(self, row: Row[Any]) -> LostCommits | None:
        now, beats, beat_at, turns, newest, other, server = tuple(row)
        self.server = server
        seen, at = DatabaseState(now, beats, beat_at, turns or 0, newest, other), self._clock()
        last, self._last = self._last, (seen, at)
        self._compare_with_others(seen)
        if last is None:
            return None
        self._compare_clocks(last[0], seen, at - last[1])
        loss = lost(last[0], seen, at - last[1])
        if loss is not None:
            LOG.error(
                'The database has lost commits made %s: it is in an older state than this process has seen, as '
                'after a fail-over to a server that had not received everything. Objects made in that time may exist '
                'without a row: "convergence-manage orphans" lists them.',
                loss,
            )
            self._on_loss(loss)
        return loss

    def _compare_with_others(self, seen: DatabaseState) -> None:
        ahead_s = (seen.newest_other or 0.0) - seen.now
        if ahead_s > self._most_s and not self._behind:
            LOG.error(
                'The clocks of the database servers differ: the one that this process uses is at least %.0f s behind '
                'the one by which another process has sent a heartbeat. Leases are measured by these clocks: set them '
                'right (NTP), or let all processes use one server.',
                ahead_s,
            )
        self._behind = ahead_s > self._most_s

    def _compare_clocks(self, last: DatabaseState, seen: DatabaseState, passed_s: float) -> None:
        jump_s = (seen.now - last.now) - passed_s
        if abs(jump_s) > self._most_s:
            LOG.error(
                'The clock of the database has jumped by %+.0f s, as after a fail-over to a server with another clock. '
                'Leases are measured by it: processes may be taken for dead that are not. Keep the clocks of all '
                'database servers right (NTP).',
                jump_s,
            )


def lost(last: DatabaseState, seen: DatabaseState, passed_s: float = 0.0) -> LostCommits | None:
    """Return the lost commits if the database had more before. Both numbers only grow while the row exists.

    Heartbeats of other processes may have reached the present database before this check. They say nothing about the
    loss, so `since` is the oldest heartbeat among the own one and those from before the last check.

    :param last: the state after the last heartbeat that was answered.
    :param passed_s: seconds since then, on the clock of this process: the servers' clocks may differ.
    """
    went_back = seen.turns < last.turns
    if seen.beats is not None and last.beats is not None:
        went_back = went_back or seen.beats < last.beats
    if not went_back:
        return None
    before = [at for at in (seen.beat_at, seen.newest) if at is not None and at <= last.now]
    return LostCommits(min(before, default=None), max(seen.now, last.now + passed_s))


def _moment(seconds: float) -> str:
    return datetime.fromtimestamp(seconds, UTC).strftime('%Y-%m-%dT%H:%M:%SZ')
