"""Who is there: the processes, their heartbeats and their leases. The database's clock decides."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType

from sqlalchemy import bindparam, delete, select, update

from convergence.core.model import Json
from convergence.core.rows import Resource
from convergence.db.columns import database_now
from convergence.db.load import RESOURCE_COLUMNS
from convergence.db.models import RESOURCE, SERVICE
from convergence.db.store import Store

NO_LOAD: Mapping[str, Json] = MappingProxyType({})


@dataclass(frozen=True, slots=True)
class Service:
    """One process.

    :param kind: ``engine`` or ``worker``.
    :param lease_s: how many seconds after its last heartbeat it is taken for dead.
    :param load: how busy it said it was: ``threads``, ``busy``, ``waiting``, ``stuck``, as far as it knows.
    :param age_s: seconds since the last heartbeat, by the database's clock.
    """

    id: str
    kind: str
    host: str
    version: str
    started_at: float
    beat_at: float
    lease_s: float
    stopped: bool
    load: Mapping[str, Json]
    age_s: float

    @property
    def is_up(self) -> bool:
        """Whether the lease still runs."""
        return not self.stopped and self.age_s < self.lease_s


_BEAT = (
    update(SERVICE)
    .where(SERVICE.c.id == bindparam('key'), SERVICE.c.stopped.is_(False))
    .values(beat_at=database_now(), load=bindparam('busy'))
)
_FIELDS = ('id', 'kind', 'host', 'version', 'started_at', 'beat_at', 'lease_s', 'stopped', 'load')


class Roster:
    """Registers processes and tells which of them are alive."""

    def __init__(self, store: Store) -> None:
        self._store = store

    def register(self, service_id: str, kind: str, host: str, version: str, lease_s: float) -> None:
        """A process has started, or comes back after its lease was over."""
        with self._store.writing() as connection:
            connection.execute(delete(SERVICE).where(SERVICE.c.id == service_id))
            now = connection.execute(select(database_now())).scalar_one()
            row = dict(zip(_FIELDS, (service_id, kind, host, version, now, now, lease_s, False, {}), strict=True))
            connection.execute(SERVICE.insert(), row)
            self._store.commit(connection, self.register)

    def beat(self, service_id: str, load: Mapping[str, Json] = NO_LOAD) -> bool:
        """A process is still there.

        :param load: how busy it is.
        :returns: whether it is still registered; if not, it has been declared dead and must stop its work.
        """
        with self._store.writing() as connection:
            known = connection.execute(_BEAT, {'key': service_id, 'busy': dict(load)}).rowcount == 1
            self._store.commit(connection, self.beat)
        return known

    def leave(self, service_id: str) -> None:
        """A process ends in good order, holding nothing."""
        with self._store.writing() as connection:
            connection.execute(delete(SERVICE).where(SERVICE.c.id == service_id))
            self._store.commit(connection, self.leave)

    def services(self) -> list[Service]:
        """All registered processes, by kind, host and start."""
        columns = [SERVICE.c[name] for name in _FIELDS]
        statement = select(*columns, database_now() - SERVICE.c.beat_at).order_by(
            SERVICE.c.kind, SERVICE.c.host, SERVICE.c.started_at
        )
        with self._store.reading() as connection:
            return [Service(*row) for row in connection.execute(statement)]

    def remove_dead(self) -> int:
        """Forget the processes whose lease has run out and who hold nothing any more.

        :returns: how many were forgotten.
        """
        holds = select(RESOURCE.c.id).where(RESOURCE.c.owner == SERVICE.c.id).exists()
        dead = delete(SERVICE).where(SERVICE.c.beat_at < database_now() - SERVICE.c.lease_s, ~holds)
        with self._store.writing() as connection:
            removed = connection.execute(dead).rowcount
            self._store.commit(connection, self.remove_dead)
        return removed

    def held_by(self, service_id: str) -> list[Resource]:
        """The resource rows that a worker holds."""
        statement = select(*RESOURCE_COLUMNS).where(RESOURCE.c.owner == service_id)
        with self._store.reading() as connection:
            return [Resource(*row) for row in connection.execute(statement)]
