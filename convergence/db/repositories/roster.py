"""The roster of processes: heartbeats and leases, by the database's clock."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from oslo_db.exception import DBDuplicateEntry
from sqlalchemy import and_, bindparam, delete, select, update
from sqlalchemy.engine import Connection

from convergence.core.model import Json
from convergence.core.rows import Resource
from convergence.db.connections.drivers import written_alone
from convergence.db.records import NO_LOAD, Service
from convergence.db.schema.columns import asked_at, database_now
from convergence.db.schema.models import RESOURCE, SERVICE
from convergence.db.schema.row_columns import RESOURCE_COLUMNS, resource_of
from convergence.db.statements.store import Store
from convergence.errors import Conflict

BEAT = (
    update(SERVICE)
    .where(SERVICE.c.id == bindparam('key'), SERVICE.c.stopped.is_(False))
    .values(beat_at=database_now(), load=bindparam('busy'), beats=SERVICE.c.beats + 1)
)
"""A heartbeat of the process `key`. It finds no row where the process is not known any more."""
_IS_DEAD = and_(
    SERVICE.c.beat_at < asked_at() - SERVICE.c.lease_s,
    ~select(RESOURCE.c.id).where(RESOURCE.c.owner == SERVICE.c.id).exists(),
)
DEAD = select(SERVICE.c.id).where(_IS_DEAD)
"""Processes that `Roster.remove_dead` removes."""
HELD_BY = select(*RESOURCE_COLUMNS).where(RESOURCE.c.owner == bindparam('worker'))
"""The rows that a worker holds."""
_FIELDS = ('id', 'kind', 'host', 'version', 'started_at', 'beat_at', 'lease_s', 'stopped', 'load')


class Roster:
    """Registers processes and tells which of them are alive."""

    def __init__(self, store: Store) -> None:
        self._store = store

    def register(
        self, service_id: str, kind: str, host: str, version: str, lease_s: float, load: Mapping[str, Json] = NO_LOAD
    ) -> None:
        """A process has started, or comes back after its lease was over."""

        def put(connection: Connection) -> None:
            now = connection.execute(select(database_now())).scalar_one()
            row = dict(
                zip(_FIELDS, (service_id, kind, host, version, now, now, lease_s, False, dict(load)), strict=True)
            )
            known = connection.execute(update(SERVICE).where(SERVICE.c.id == service_id).values(**row)).rowcount
            if not known:
                try:
                    connection.execute(SERVICE.insert(), row)
                except DBDuplicateEntry as error:
                    raise Conflict(f'process {service_id} is being registered by another transaction') from error

        self._store.write(put, self.register)

    def beat(self, service_id: str, load: Mapping[str, Json] = NO_LOAD) -> bool:
        """A process is still there.

        :param load: how busy it is.
        :returns: whether it is still registered; if not, it has been declared dead and must stop its work.
        """
        beat = {'key': service_id, 'busy': dict(load)}
        return self._store.write(lambda connection: written_alone(connection, BEAT, beat).rowcount == 1, self.beat)

    def leave(self, service_id: str) -> None:
        """A process has ended: what it holds, if anything, may be taken from it."""
        gone = delete(SERVICE).where(SERVICE.c.id == service_id)
        self._store.write(lambda connection: connection.execute(gone), self.leave)

    def services(self) -> list[Service]:
        """All registered processes, by kind, host and start."""
        columns = [SERVICE.c[name] for name in _FIELDS]
        statement = select(*columns, database_now() - SERVICE.c.beat_at).order_by(
            SERVICE.c.kind, SERVICE.c.host, SERVICE.c.started_at
        )
        with self._store.reading() as connection:
            rows: list[tuple[Any, ...]] = [tuple(row) for row in connection.execute(statement)]
        return [Service(*row) for row in rows]

    def remove_dead(self) -> int:
        """Forget the processes whose lease has run out and who hold nothing any more.

        :returns: how many were forgotten.
        """
        dead = delete(SERVICE).where(_IS_DEAD)
        return self._store.write(lambda connection: connection.execute(dead).rowcount, self.remove_dead)

    def held_by(self, service_id: str) -> list[Resource]:
        """The resource rows that a worker holds."""
        with self._store.reading() as connection:
            return [resource_of(*row) for row in connection.execute(HELD_BY, {'worker': service_id})]
