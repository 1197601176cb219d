"""Software configurations and their deployments: kept for agents on servers; no stack needs them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from typing import Any

from sqlalchemy import Select, and_, delete, insert, or_, select, update
from sqlalchemy.engine import Connection

from convergence.core.model import Json
from convergence.db.schema.columns import database_now
from convergence.db.schema.models import SOFTWARE_CONFIG, SOFTWARE_DEPLOYMENT
from convergence.db.statements.load import columns
from convergence.db.statements.store import Store


@dataclass(frozen=True, slots=True)
class SoftwareConfig:
    """What is to be done on servers. It never changes.

    :param group: the tool that understands it.
    :param content: ``config``, ``inputs``, ``outputs``, ``options``.
    """

    id: str
    project_id: str
    name: str
    group: str
    content: Mapping[str, Json]
    created_at: float = 0.0


@dataclass(frozen=True, slots=True)
class SoftwareDeployment:
    """A configuration on one server, and what has become of it there.

    :param stack_user_project_id: project of the user as whom the agent asks; it may see the deployment as well.
    """

    id: str
    project_id: str
    server_id: str
    config_id: str | None
    input_values: Json = field(default_factory=dict)
    output_values: Json = field(default_factory=dict)
    action: str = 'INIT'
    status: str = 'COMPLETE'
    status_reason: str = ''
    stack_user_project_id: str | None = None
    created_at: float = 0.0
    updated_at: float | None = None


_CONFIG_COLUMNS = columns(SOFTWARE_CONFIG, SoftwareConfig)
_DEPLOYMENT_COLUMNS = columns(SOFTWARE_DEPLOYMENT, SoftwareDeployment)


class SoftwareRows:
    """Keeps configurations and deployments. Nobody sees those of another project."""

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

    def add_config(self, config: SoftwareConfig) -> SoftwareConfig:
        """Keep a configuration; it, with its time."""

        def add(connection: Connection) -> SoftwareConfig:
            now = connection.execute(select(database_now())).scalar_one()
            values = {**_values(config), 'created_at': now}
            connection.execute(insert(SOFTWARE_CONFIG), values)
            return SoftwareConfig(**values)

        return self._store.write(add, self.add_config)

    def remove_config(self, project_id: str, config_id: str) -> bool:
        """Remove a configuration, unless a deployment has it; whether it is gone."""
        mine = and_(SOFTWARE_CONFIG.c.project_id == project_id, SOFTWARE_CONFIG.c.id == config_id)
        of_it = SOFTWARE_DEPLOYMENT.c.config_id == config_id

        def remove(connection: Connection) -> bool:
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
            now = connection.execute(select(database_now())).scalar_one()
            connection.execute(insert(SOFTWARE_DEPLOYMENT), {**_values(deployment), 'created_at': now})
            return True

        return self._store.write(add, self.add_deployment)

    def change_deployment(self, project_id: str, deployment_id: str, changes: Mapping[str, Any]) -> bool:
        """Change columns of a deployment; False: there is no such configuration in its project (any more)."""
        mine = and_(SOFTWARE_DEPLOYMENT.c.project_id == project_id, SOFTWARE_DEPLOYMENT.c.id == deployment_id)

        def change(connection: Connection) -> bool:
            if not self._is_there(connection, project_id, changes.get('config_id')):
                return False
            now = connection.execute(select(database_now())).scalar_one()
            connection.execute(update(SOFTWARE_DEPLOYMENT).where(mine).values(**changes, updated_at=now))
            return True

        return self._store.write(change, self.change_deployment)

    def remove_deployment(self, project_id: str, deployment_id: str) -> bool:
        """Remove a deployment; whether there was one."""
        mine = and_(SOFTWARE_DEPLOYMENT.c.project_id == project_id, SOFTWARE_DEPLOYMENT.c.id == deployment_id)
        gone = delete(SOFTWARE_DEPLOYMENT).where(mine)
        return self._store.write(lambda connection: connection.execute(gone).rowcount > 0, self.remove_deployment)

    @staticmethod
    def _is_there(connection: Any, project_id: str, config_id: str | None) -> bool:
        """Whether a configuration exists, and stays until the end of the transaction."""
        if config_id is None:
            return True
        mine = and_(SOFTWARE_CONFIG.c.project_id == project_id, SOFTWARE_CONFIG.c.id == config_id)
        return connection.execute(select(SOFTWARE_CONFIG.c.id).where(mine).with_for_update()).first() is not None


def _configs(project_id: str) -> Select[Any]:
    return select(*_CONFIG_COLUMNS).where(SOFTWARE_CONFIG.c.project_id == project_id)


def _deployments(project_id: str) -> Select[Any]:
    seen_by = or_(
        SOFTWARE_DEPLOYMENT.c.project_id == project_id, SOFTWARE_DEPLOYMENT.c.stack_user_project_id == project_id
    )
    return select(*_DEPLOYMENT_COLUMNS).where(seen_by)


def _values(row: Any) -> dict[str, Any]:
    return {each.name: getattr(row, each.name) for each in fields(row)}
