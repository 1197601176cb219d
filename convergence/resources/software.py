"""Software configurations and deployments as a resource type reaches them: those of its project."""

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
    """What a project keeps for the agents of its servers: the same rows as users see over the API.

    Writing is idempotent, so that each step may be repeated after a crash: whoever adds chooses the id. What a worker
    writes whose claim of the resource is over is refused.

    :param rows: where they are kept; None: they cannot be reached from here.
    :param holder: the claim in whose name is written; None: nobody's, for what anybody may do at any time.
    """

    rows: SoftwareRowsPort | None = None
    project_id: str = ''
    holder: Holder | None = None

    def config(self, config_id: str) -> SoftwareConfig | None:
        """One configuration."""
        return self._rows.config(self.project_id, config_id)

    def keep_config(self, config_id: str, name: str, group: str, content: Mapping[str, Json]) -> SoftwareConfig:
        """Keep a configuration. One that is there already stays as it is.

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
        """Give a deployment, which is made if need be, a derived configuration; it as it is then.

        The configuration that was derived for it before is removed. One that it has got before changes nothing.
        """
        return self._rows.deploy(deployment, config, self.holder)

    def report(self, deployment_id: str, config_id: str, report: ServerReport) -> bool:
        """Say what has become of a configuration; False: nobody waits for that (any more)."""
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
