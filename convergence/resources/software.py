"""The software configurations and deployments of a project, for resource types."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from convergence.core.model import Json
from convergence.core.software import (
    Holder,
    ServerReport,
    SoftwareConfig,
    SoftwareDeployment,
    SoftwareRowsPort,
)


@dataclass(frozen=True, slots=True)
class ProjectSoftware:
    """The configurations and deployments that the agents of a project's servers read: the same rows that users see
    over the API.

    Writes are idempotent, so that each step may be repeated after a crash: the caller that adds a row chooses its id.
    A write of a worker that lost its claim on the resource is refused.

    :param rows: the store; None: not reachable from this process.
    :param holder: the claim under which rows are written; None: no claim is needed.
    """

    rows: SoftwareRowsPort | None = None
    project_id: str = ''
    holder: Holder | None = None

    def config(self, config_id: str) -> SoftwareConfig | None:
        """One configuration."""
        return self._rows.config(self.project_id, config_id)

    def keep_config(self, config_id: str, name: str, group: str, content: Mapping[str, Json]) -> SoftwareConfig:
        """Store a configuration. An existing one stays unchanged.

        :param content: ``config``, ``inputs``, ``outputs``, ``options``.
        """
        wanted = SoftwareConfig(config_id, self.project_id, name, group, content)
        return self._rows.add_config(wanted, self.holder)

    def remove_config(self, config_id: str) -> bool:
        """Remove a configuration, unless a deployment has it; whether it is gone."""
        return self._rows.remove_config(self.project_id, config_id, self.holder)

    def deployment(self, deployment_id: str) -> SoftwareDeployment | None:
        """One deployment."""
        return self._rows.deployment(self.project_id, deployment_id)

    def on_server(self, server_id: str) -> list[tuple[SoftwareDeployment, SoftwareConfig]]:
        """The deployments on a server that have a configuration, with it."""
        found = [
            (each, self.config(each.config_id or '')) for each in self._rows.deployments(self.project_id, server_id)
        ]
        return [(each, config) for each, config in found if config is not None]

    def deploy(self, deployment: SoftwareDeployment, config: SoftwareConfig) -> SoftwareDeployment:
        """Give a deployment, made if necessary, a derived configuration; return its state then.

        The configuration derived for it before is removed. One that it already has changes nothing.
        """
        return self._rows.deploy(deployment, config, self.holder)

    def report(self, deployment_id: str, config_id: str, report: ServerReport) -> bool:
        """Report the result of a configuration. Return False if no deployment waits for it (any more)."""
        return self._rows.report(self.project_id, deployment_id, config_id, report, self.holder)

    def remove_deployment(self, deployment_id: str) -> bool:
        """Remove a deployment, with the configurations that were derived for it; whether there was one."""
        return self._rows.remove_deployment(self.project_id, deployment_id, self.holder)

    @property
    def _rows(self) -> SoftwareRowsPort:
        if self.rows is None:
            raise RuntimeError('software configurations cannot be reached from here')
        return self.rows


NO_SOFTWARE = ProjectSoftware()
"""The default of `Call.software`."""
