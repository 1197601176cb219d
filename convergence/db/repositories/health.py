"""Health checks of a database and its processes: findings that may lose work or leave it undone."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from enum import StrEnum

from sqlalchemy import func, or_, select
from sqlalchemy.engine import Connection

from convergence.core.model import Status
from convergence.db.records import Service
from convergence.db.repositories.roster import Roster
from convergence.db.schema.columns import database_now
from convergence.db.schema.models import RESOURCE, STACK
from convergence.db.statements.store import Store

MOST_NAMED = 20
"""How many possible orphans are named one by one."""


class Level(StrEnum):
    """How bad it is: something is lost or wrong now, or will be after the next failure."""

    ERROR = 'ERROR'
    WARNING = 'WARNING'


@dataclass(frozen=True, slots=True)
class HealthFinding:
    """One thing, and what to do about it."""

    level: Level
    text: str


def examine(store: Store, now: float) -> list[HealthFinding]:
    """Run all checks that this machine can run.

    :param now: seconds since the epoch by this machine's clock.
    :raises DatabaseUnavailable: the database cannot be reached.
    """
    with store.reading() as connection:
        found = [*_SERVERS[connection.dialect.name](connection), *_clock(connection, now), *_left_behind(connection)]
        waiting = connection.execute(_IN_PROGRESS).scalar_one()
    services = Roster(store).services()
    return [*found, *_absent(waiting, services), *_processes(services)]


_IN_PROGRESS = (
    select(func.count()).select_from(STACK).where(STACK.c.deleted_at.is_(None), STACK.c.status == Status.IN_PROGRESS)
)


def _absent(waiting: int, services: list[Service]) -> Iterator[HealthFinding]:
    """Yield findings about waiting work without a process that does it."""
    alive = {service.kind for service in services if service.is_up}
    for kind in ('engine', 'worker'):
        if waiting and kind not in alive:
            yield HealthFinding(
                Level.ERROR,
                f'{waiting} {"operation is" if waiting == 1 else "operations are"} in progress and no {kind} is alive: '
                f'start one. "convergence-manage service list" shows which have been there',
            )


def _no_server(connection: Connection) -> Iterator[HealthFinding]:
    yield from ()


def _variables(connection: Connection, statement: str) -> dict[str, str]:
    return {str(name).lower(): str(value) for name, value in connection.exec_driver_sql(statement)}


def _mysql(connection: Connection) -> Iterator[HealthFinding]:
    settings = _variables(connection, 'SHOW GLOBAL VARIABLES')
    if settings.get('innodb_flush_log_at_trx_commit') != '1':
        yield HealthFinding(
            Level.WARNING,
            'innodb_flush_log_at_trx_commit is not 1: the server can lose commits when its machine fails; set it to 1',
        )
    if settings.get('log_bin') == 'ON' and settings.get('sync_binlog') == '0':
        yield HealthFinding(Level.WARNING, 'sync_binlog is 0: a replica can lack commits after a crash; set it to 1')
    if settings.get('wsrep_on') == 'ON':
        yield from _galera(settings, _variables(connection, "SHOW GLOBAL STATUS LIKE 'wsrep%%'"))


def _galera(settings: dict[str, str], status: dict[str, str]) -> Iterator[HealthFinding]:
    state, size = status.get('wsrep_cluster_status'), status.get('wsrep_cluster_size', '0')
    if state != 'Primary':
        yield HealthFinding(Level.ERROR, f'This server of the Galera cluster is in no primary component ({state})')
    if int(size) < 3:
        yield HealthFinding(
            Level.WARNING, f'The Galera cluster has {size} servers; with fewer than 3 it stops when one fails'
        )
    if settings.get('innodb_autoinc_lock_mode') != '2':
        yield HealthFinding(Level.ERROR, 'innodb_autoinc_lock_mode is not 2, as Galera needs it')


def _postgresql(connection: Connection) -> Iterator[HealthFinding]:
    def show(name: str) -> str:
        return str(connection.exec_driver_sql(f'SHOW {name}').scalar_one())

    if connection.exec_driver_sql('SELECT pg_is_in_recovery()').scalar_one():
        yield HealthFinding(
            Level.ERROR, 'This server is a standby; add target_session_attrs=read-write to [database] connection'
        )
        return
    for name in ('fsync', 'synchronous_commit', 'full_page_writes'):
        if show(name) == 'off':
            yield HealthFinding(Level.WARNING, f'{name} is off: a server that fails can lose commits; set it to on')
    standbys = connection.exec_driver_sql('SELECT count(*) FROM pg_stat_replication').scalar_one()
    if standbys and not show('synchronous_standby_names'):
        yield HealthFinding(
            Level.WARNING,
            f'{standbys} standbys receive commits later than they are acknowledged (synchronous_standby_names is '
            'empty): a fail-over to one loses commits, and objects without rows stay; name the fail-over target there',
        )


_SERVERS: dict[str, Callable[[Connection], Iterator[HealthFinding]]] = {
    'sqlite': _no_server,
    'mysql': _mysql,
    'mariadb': _mysql,
    'postgresql': _postgresql,
}


def _clock(connection: Connection, now: float) -> Iterator[HealthFinding]:
    by_s = float(connection.execute(select(database_now())).scalar_one()) - now
    if abs(by_s) > 5.0:
        yield HealthFinding(
            Level.WARNING,
            f'The clocks of the database and of this machine differ by {by_s:+.0f} s. Leases are measured by the '
            "database's; set both right (NTP)",
        )


def _left_behind(connection: Connection) -> Iterator[HealthFinding]:
    left = (
        select(STACK.c.name, STACK.c.id, RESOURCE.c.name, RESOURCE.c.type, RESOURCE.c.id, RESOURCE.c.physical_id)
        .join(RESOURCE, RESOURCE.c.stack_id == STACK.c.id)
        .where(STACK.c.deleted_at.is_not(None), or_(RESOURCE.c.physical_id.is_not(None), RESOURCE.c.token.is_not(None)))
        .order_by(STACK.c.deleted_at, RESOURCE.c.id)
    )
    rows = connection.execute(left.limit(MOST_NAMED + 1)).all()
    for stack, stack_id, name, kind, resource_id, physical_id in rows[:MOST_NAMED]:
        yield HealthFinding(
            Level.ERROR,
            f'Stack {stack} ({stack_id}) was deleted, its resource {name} ({kind}, id {resource_id}, physical id '
            f'{physical_id}) is left; a running engine removes it, see the events of the stack',
        )
    if len(rows) > MOST_NAMED:
        yield HealthFinding(Level.ERROR, f'More than {MOST_NAMED} resources of deleted stacks are left')


def _processes(services: list[Service]) -> Iterator[HealthFinding]:
    alive = [service for service in services if service.is_up]
    for service in alive:
        if service.age_s < -service.lease_s / 2:
            yield HealthFinding(
                Level.ERROR,
                f'The {service.kind} {service.id} on {service.host} has sent a heartbeat {-service.age_s:.0f} s in the '
                'future: the clocks of the database servers differ; set them right (NTP)',
            )
    by_server: dict[str, list[str]] = {}
    for service in alive:
        server = service.load.get('database')
        if isinstance(server, str) and server:
            by_server.setdefault(server, []).append(f'{service.kind} on {service.host}')
    if len(by_server) > 1:
        named = '; '.join(f'{server}: {", ".join(sorted(set(users)))}' for server, users in sorted(by_server.items()))
        yield HealthFinding(
            Level.WARNING,
            f'The processes use {len(by_server)} database servers ({named}). Transactions of one collide with those of '
            'another at their commit, and on PostgreSQL two servers mean two databases: let all use one, through a '
            'proxy that falls over, see docs/operations.rst',
        )
