"""Software configurations and their deployments, for agents on servers."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields
from typing import Any

from sqlalchemy import ColumnElement, Select, and_, delete, insert, or_, select, update
from sqlalchemy.engine import Connection

from convergence.core.software import (
    IN_PROGRESS,
    Holder,
    ServerReport,
    SoftwareConfig,
    SoftwareDeployment,
    deployed_again,
)
from convergence.db.schema.columns import database_now
from convergence.db.schema.models import RESOURCE, SOFTWARE_CONFIG, SOFTWARE_DEPLOYMENT
from convergence.db.schema.row_columns import columns
from convergence.db.statements.store import Store
from convergence.errors import LostClaim
from convergence.values import replace

_CONFIG_COLUMNS = columns(SOFTWARE_CONFIG, SoftwareConfig)
_DEPLOYMENT_COLUMNS = columns(SOFTWARE_DEPLOYMENT, SoftwareDeployment)


class SoftwareRows:
    """Stores software configurations and deployments. A project sees only its own."""

    def __init__(self, store: Store) -> None:
        self._store = store

    # --- configurations ---------------------------------------------------------------------------------------

    def configs(self, project_id: str, *, limit: int | None = None, marker: str | None = None) -> list[SoftwareConfig]:
        """The configurations of a project, newest first.

        :param marker: id of the last one of the page before.
        """
        statement = _configs(project_id).order_by(SOFTWARE_CONFIG.c.created_at.desc(), SOFTWARE_CONFIG.c.id.desc())
        if marker is not None:
            last = self.config(project_id, marker)
            if last is None:
                return []
            created_at = SOFTWARE_CONFIG.c.created_at
            earlier = and_(created_at == last.created_at, SOFTWARE_CONFIG.c.id < last.id)
            statement = statement.where(or_(created_at < last.created_at, earlier))
        with self._store.reading() as connection:
            return [SoftwareConfig(*row) for row in connection.execute(statement.limit(limit))]

    def config(self, project_id: str, config_id: str) -> SoftwareConfig | None:
        """One configuration."""
        with self._store.reading() as connection:
            row = connection.execute(_configs(project_id).where(SOFTWARE_CONFIG.c.id == config_id)).first()
        return SoftwareConfig(*row) if row is not None else None

    def add_config(self, config: SoftwareConfig, holder: Holder | None = None) -> SoftwareConfig:
        """Store a configuration and return it with its time. An existing one stays unchanged."""

        def add(connection: Connection) -> SoftwareConfig:
            _require_held(connection, holder)
            return _kept(connection, config, _now(connection))

        return self._store.write(add, self.add_config)

    def remove_config(self, project_id: str, config_id: str, holder: Holder | None = None) -> bool:
        """Remove a configuration, unless a deployment has it; whether it is gone."""
        mine = and_(SOFTWARE_CONFIG.c.project_id == project_id, SOFTWARE_CONFIG.c.id == config_id)
        of_it = SOFTWARE_DEPLOYMENT.c.config_id == config_id

        def remove(connection: Connection) -> bool:
            _require_held(connection, holder)
            connection.execute(select(SOFTWARE_CONFIG.c.id).where(mine).with_for_update()).first()
            if connection.execute(select(SOFTWARE_DEPLOYMENT.c.id).where(of_it).limit(1)).first() is not None:
                return False
            connection.execute(delete(SOFTWARE_CONFIG).where(mine))
            return True

        return self._store.write(remove, self.remove_config)

    # --- deployments ------------------------------------------------------------------------------------------

    def deployments(self, project_id: str, server_id: str | None = None) -> list[SoftwareDeployment]:
        """The deployments of a project, or of one of its servers, oldest first."""
        statement = _deployments(project_id)
        if server_id is not None:
            statement = statement.where(SOFTWARE_DEPLOYMENT.c.server_id == server_id)
        ordered = statement.order_by(SOFTWARE_DEPLOYMENT.c.created_at, SOFTWARE_DEPLOYMENT.c.id)
        with self._store.reading() as connection:
            return [SoftwareDeployment(*row) for row in connection.execute(ordered)]

    def deployment(self, project_id: str, deployment_id: str) -> SoftwareDeployment | None:
        """One deployment."""
        statement = _deployments(project_id).where(SOFTWARE_DEPLOYMENT.c.id == deployment_id)
        with self._store.reading() as connection:
            row = connection.execute(statement).first()
        return SoftwareDeployment(*row) if row is not None else None

    def add_deployment(self, deployment: SoftwareDeployment) -> bool:
        """Keep a deployment; False: there is no such configuration in its project (any more)."""

        def add(connection: Connection) -> bool:
            if not self._is_there(connection, deployment.project_id, deployment.config_id):
                return False
            connection.execute(insert(SOFTWARE_DEPLOYMENT), {**_values(deployment), 'created_at': _now(connection)})
            return True

        return self._store.write(add, self.add_deployment)

    def change_deployment(self, project_id: str, deployment_id: str, changes: Mapping[str, Any]) -> bool:
        """Change columns of a deployment; False: there is no such configuration in its project (any more)."""
        mine = _one_of(project_id, deployment_id)

        def change(connection: Connection) -> bool:
            if not self._is_there(connection, project_id, changes.get('config_id')):
                return False
            changed = {**changes, 'updated_at': _now(connection)}
            connection.execute(update(SOFTWARE_DEPLOYMENT).where(mine).values(**changed))
            return True

        return self._store.write(change, self.change_deployment)

    def deploy(
        self, deployment: SoftwareDeployment, config: SoftwareConfig, holder: Holder | None = None
    ) -> SoftwareDeployment:
        """Give a deployment, created if needed, a derived configuration in place of its present one.

        A configuration that it had before changes nothing.

        :returns: the deployment after the change.
        """
        mine = _one_of(deployment.project_id, deployment.id)

        def write(connection: Connection) -> SoftwareDeployment:
            _require_held(connection, holder)
            row = connection.execute(select(*_DEPLOYMENT_COLUMNS).where(mine).with_for_update()).first()
            present = SoftwareDeployment(*row) if row is not None else None
            if present is not None and present.config_id == config.id:
                return present
            now = _now(connection)
            _kept(connection, config, now)
            changed = deployed_again(present, deployment, now)
            if present is None:
                connection.execute(insert(SOFTWARE_DEPLOYMENT), _values(changed))
            else:
                connection.execute(update(SOFTWARE_DEPLOYMENT).where(mine).values(**_values(changed)))
            before = and_(_derived_for(deployment.id), SOFTWARE_CONFIG.c.id != config.id)
            connection.execute(delete(SOFTWARE_CONFIG).where(before))
            return changed

        return self._store.write(write, self.deploy)

    def report(
        self,
        project_id: str,
        deployment_id: str,
        config_id: str,
        report: ServerReport,
        holder: Holder | None = None,
    ) -> bool:
        """Store the result of a configuration; return False if no resource waits for it (any more)."""
        waiting = and_(
            _one_of(project_id, deployment_id),
            SOFTWARE_DEPLOYMENT.c.config_id == config_id,
            SOFTWARE_DEPLOYMENT.c.status == IN_PROGRESS,
        )
        said: dict[str, Any] = {'status': report.status, 'status_reason': report.status_reason}
        if report.output_values is not None:
            said['output_values'] = dict(report.output_values)

        def write(connection: Connection) -> bool:
            _require_held(connection, holder)
            changed = update(SOFTWARE_DEPLOYMENT).where(waiting).values(**said, updated_at=_now(connection))
            return connection.execute(changed).rowcount > 0

        return self._store.write(write, self.report)

    def remove_deployment(self, project_id: str, deployment_id: str, holder: Holder | None = None) -> bool:
        """Remove a deployment, with the configurations that were derived for it; whether there was one."""

        def remove(connection: Connection) -> bool:
            _require_held(connection, holder)
            gone = connection.execute(delete(SOFTWARE_DEPLOYMENT).where(_one_of(project_id, deployment_id)))
            mine = and_(SOFTWARE_CONFIG.c.project_id == project_id, _derived_for(deployment_id))
            connection.execute(delete(SOFTWARE_CONFIG).where(mine))
            return gone.rowcount > 0

        return self._store.write(remove, self.remove_deployment)

    @staticmethod
    def _is_there(connection: Any, project_id: str, config_id: str | None) -> bool:
        """Return True if a configuration exists, and stays until the end of the transaction."""
        if config_id is None:
            return True
        mine = and_(SOFTWARE_CONFIG.c.project_id == project_id, SOFTWARE_CONFIG.c.id == config_id)
        return connection.execute(select(SOFTWARE_CONFIG.c.id).where(mine).with_for_update()).first() is not None


def _require_held(connection: Connection, holder: Holder | None) -> None:
    """Make sure that the row stays held until the end of the transaction.

    :raises LostClaim: it is not.
    """
    if holder is None:
        return
    held = and_(RESOURCE.c.id == holder.resource_id, RESOURCE.c.fence == holder.fence)
    if connection.execute(select(RESOURCE.c.id).where(held).with_for_update()).first() is None:
        raise LostClaim.of(holder.resource_id)


def _kept(connection: Connection, config: SoftwareConfig, now: float) -> SoftwareConfig:
    row = connection.execute(_configs(config.project_id).where(SOFTWARE_CONFIG.c.id == config.id)).first()
    if row is not None:
        return SoftwareConfig(*row)
    made = replace(config, created_at=now)
    connection.execute(insert(SOFTWARE_CONFIG), _values(made))
    return made


def _now(connection: Connection) -> float:
    return float(connection.execute(select(database_now())).scalar_one())


def _one_of(project_id: str, deployment_id: str) -> ColumnElement[bool]:
    return and_(SOFTWARE_DEPLOYMENT.c.project_id == project_id, SOFTWARE_DEPLOYMENT.c.id == deployment_id)


def _derived_for(deployment_id: str) -> ColumnElement[bool]:
    return SOFTWARE_CONFIG.c.deployment_id == deployment_id


def _configs(project_id: str) -> Select[Any]:
    return select(*_CONFIG_COLUMNS).where(SOFTWARE_CONFIG.c.project_id == project_id)


def _deployments(project_id: str) -> Select[Any]:
    seen_by = or_(
        SOFTWARE_DEPLOYMENT.c.project_id == project_id, SOFTWARE_DEPLOYMENT.c.stack_user_project_id == project_id
    )
    return select(*_DEPLOYMENT_COLUMNS).where(seen_by)


def _values(row: Any) -> dict[str, Any]:
    return {each.name: getattr(row, each.name) for each in fields(row)}
