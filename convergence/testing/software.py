"""Software configurations in memory: what `convergence.db.repositories.software.SoftwareRows` keeps for resources."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from convergence.core.software import (
    IN_PROGRESS,
    Holder,
    ServerReport,
    SoftwareConfig,
    SoftwareDeployment,
    deployed_again,
)
from convergence.errors import LostClaim
from convergence.values import replace


def always_holds(holder: Holder) -> bool:
    """Every claim is good."""
    return True


@dataclass
class MemorySoftware:
    """Stores configurations and deployments, each visible to its own project only.

    :param clock: returns the time, in seconds since the epoch.
    :param holds: returns True while a claim is valid.
    :ivar configs: the configurations, by id.
    :ivar made: the deployments, by id.
    """

    clock: Callable[[], float]
    holds: Callable[[Holder], bool] = always_holds
    configs: dict[str, SoftwareConfig] = field(default_factory=dict)
    made: dict[str, SoftwareDeployment] = field(default_factory=dict)

    def config(self, project_id: str, config_id: str) -> SoftwareConfig | None:
        """One configuration."""
        found = self.configs.get(config_id)
        return found if found is not None and found.project_id == project_id else None

    def add_config(self, config: SoftwareConfig, holder: Holder | None = None) -> SoftwareConfig:
        """Store a configuration and return it with its time. An existing one stays unchanged."""
        self._require_held(holder)
        return self.configs.setdefault(config.id, replace(config, created_at=self.clock()))

    def remove_config(self, project_id: str, config_id: str, holder: Holder | None = None) -> bool:
        """Remove a configuration, unless a deployment has it; whether it is gone."""
        self._require_held(holder)
        if any(each.config_id == config_id for each in self.made.values()):
            return False
        if self.config(project_id, config_id) is not None:
            del self.configs[config_id]
        return True

    def deployment(self, project_id: str, deployment_id: str) -> SoftwareDeployment | None:
        """One deployment."""
        found = self.made.get(deployment_id)
        return found if found is not None and project_id in (found.project_id, found.stack_user_project_id) else None

    def deployments(self, project_id: str, server_id: str | None = None) -> list[SoftwareDeployment]:
        """The deployments of a project, or of one of its servers, oldest first."""
        seen = [each for each in self.made.values() if self.deployment(project_id, each.id) is not None]
        of_server = [each for each in seen if server_id in (None, each.server_id)]
        return sorted(of_server, key=lambda each: (each.created_at, each.id))

    def deploy(
        self, deployment: SoftwareDeployment, config: SoftwareConfig, holder: Holder | None = None
    ) -> SoftwareDeployment:
        """Give a deployment, made if necessary, a derived configuration in place of its present one.

        If it had that one before, nothing changes.

        :returns: the present deployment.
        """
        self._require_held(holder)
        present, now = self.made.get(deployment.id), self.clock()
        if present is not None and present.config_id == config.id:
            return present
        self._forget_derived(deployment.id)
        self.add_config(config)
        self.made[deployment.id] = deployed_again(present, deployment, now)
        return self.made[deployment.id]

    def report(
        self,
        project_id: str,
        deployment_id: str,
        config_id: str,
        report: ServerReport,
        holder: Holder | None = None,
    ) -> bool:
        """Report the result of a configuration. Return False if no deployment waits for it (any more)."""
        self._require_held(holder)
        present = self.made.get(deployment_id)
        mine = present is not None and (present.project_id, present.config_id) == (project_id, config_id)
        if present is None or not mine or present.status != IN_PROGRESS:
            return False
        outputs = present.output_values if report.output_values is None else dict(report.output_values)
        self.made[deployment_id] = replace(
            present,
            status=report.status,
            status_reason=report.status_reason,
            output_values=outputs,
            updated_at=self.clock(),
        )
        return True

    def remove_deployment(self, project_id: str, deployment_id: str, holder: Holder | None = None) -> bool:
        """Remove a deployment, with the configurations that were derived for it; whether there was one."""
        self._require_held(holder)
        present = self.made.get(deployment_id)
        mine = present is not None and present.project_id == project_id
        if mine:
            del self.made[deployment_id]
        if mine or present is None:
            self._forget_derived(deployment_id)
        return mine

    def _forget_derived(self, deployment_id: str) -> None:
        for each in [each for each in self.configs.values() if each.deployment_id == deployment_id]:
            del self.configs[each.id]

    def _require_held(self, holder: Holder | None) -> None:
        if holder is not None and not self.holds(holder):
            raise LostClaim.of(holder.resource_id)
