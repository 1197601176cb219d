"""Software configurations and their deployments: work for servers, and the results that the servers report.

Callers of the API and resources create them. Agents on the servers fetch them and report results.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from convergence.core.model import Json
from convergence.values import replace

DEFAULT_GROUP = 'Heat::Ungrouped'
"""The group of a configuration that is not meant for a particular tool."""
IN_PROGRESS, COMPLETE, FAILED = 'IN_PROGRESS', 'COMPLETE', 'FAILED'
"""The statuses of a deployment that a resource created. A caller of the API may set any other text."""


@dataclass(frozen=True, slots=True)
class SoftwareConfig:
    """Work for servers. A configuration never changes.

    :param group: name of the tool that carries it out.
    :param content: a map with ``config``, ``inputs``, ``outputs`` and ``options``.
    :param deployment_id: the deployment that a resource derived the configuration for; both are deleted together. None:
        the configuration is independent.
    """

    id: str
    project_id: str
    name: str
    group: str
    content: Mapping[str, Json]
    deployment_id: str | None = None
    created_at: float = 0.0


@dataclass(frozen=True, slots=True)
class SoftwareDeployment:
    """A configuration on one server, and its result there.

    :param stack_user_project_id: project of the user as whom the agent sends requests; it may read the deployment too.
    """

    id: str
    project_id: str
    server_id: str
    config_id: str | None
    input_values: Json = field(default_factory=dict)
    output_values: Json = field(default_factory=dict)
    action: str = 'INIT'
    status: str = COMPLETE
    status_reason: str = ''
    stack_user_project_id: str | None = None
    created_at: float = 0.0
    updated_at: float | None = None


def deployed_again(present: SoftwareDeployment | None, desired: SoftwareDeployment, now: float) -> SoftwareDeployment:
    """Return a deployment with another configuration. Keeps the result of the server until the server reports again.

    :param present: the existing deployment; None if there is none.
    :param desired: deployment with the other configuration.
    :param now: seconds since the epoch.
    """
    if present is None:
        return replace(desired, created_at=now)
    return replace(desired, output_values=present.output_values, created_at=present.created_at, updated_at=now)


@dataclass(frozen=True, slots=True)
class Holder:
    """A claim on the row of a resource. The store refuses its writes after another worker has claimed the row."""

    resource_id: str
    fence: int


@dataclass(frozen=True, slots=True)
class ServerReport:
    """The result of a configuration on a server.

    :param output_values: None leaves the stored values unchanged.
    """

    status: str
    status_reason: str
    output_values: Mapping[str, Json] | None = None


class SoftwareRowsPort(Protocol):
    """Stores configurations and deployments. Each project has access to its own only.

    :raises LostClaim: raised by a write for a `Holder` that has lost its claim.
    """

    def config(self, project_id: str, config_id: str) -> SoftwareConfig | None:
        """Return one configuration, or None if the project has none with this id."""

    def add_config(self, config: SoftwareConfig, holder: Holder | None = None) -> SoftwareConfig:
        """Store a configuration. Return it with the time of its creation. An existing one stays unchanged."""

    def remove_config(self, project_id: str, config_id: str, holder: Holder | None = None) -> bool:
        """Remove a configuration unless a deployment uses it. Return True if it no longer exists."""

    def deployment(self, project_id: str, deployment_id: str) -> SoftwareDeployment | None:
        """Return one deployment, or None if the project has none with this id."""

    def deployments(self, project_id: str, server_id: str | None = None) -> list[SoftwareDeployment]:
        """Return the deployments of a project, or of one of its servers, oldest first."""

    def deploy(
        self, deployment: SoftwareDeployment, config: SoftwareConfig, holder: Holder | None = None
    ) -> SoftwareDeployment:
        """Give a deployment a derived configuration instead of its current one. Create the deployment if it is missing.

        Nothing changes if the deployment already has that configuration.

        :returns: the deployment after the change.
        """

    def report(
        self,
        project_id: str,
        deployment_id: str,
        config_id: str,
        report: ServerReport,
        holder: Holder | None = None,
    ) -> bool:
        """Store the result of a configuration. Return False if the deployment does not wait for it any more."""

    def remove_deployment(self, project_id: str, deployment_id: str, holder: Holder | None = None) -> bool:
        """Remove a deployment and the configurations derived for it. Return True if it existed."""


def for_agents(
    deployments: Iterable[tuple[SoftwareDeployment, SoftwareConfig]],
) -> list[tuple[SoftwareConfig, dict[str, Any]]]:
    """Return the work of an agent: the configurations sorted by name, with their content and the input values."""
    found = [(config, _with_values(config, deployment)) for deployment, config in deployments]
    return sorted(found, key=lambda each: each[0].name)


def _with_values(config: SoftwareConfig, deployment: SoftwareDeployment) -> dict[str, Any]:
    content: dict[str, Any] = dict(config.content)
    declared = content.get('inputs')
    inputs = [each for each in declared if isinstance(each, dict)] if isinstance(declared, list) else []
    if config.deployment_id is None:
        content['inputs'] = filled(inputs, deployment.input_values)
    return {'id': config.id, 'group': config.group, 'name': config.name, **content}


def filled(inputs: Sequence[Mapping[str, Json]], values: Json) -> list[dict[str, Json]]:
    """Return the declared inputs with their values, and one more input for each value without a declared input."""
    given = values if isinstance(values, dict) else {}
    known: list[dict[str, Json]] = [
        {**each, 'value': given.get(str(each['name']), each.get('default'))} for each in inputs
    ]
    more = sorted(set(given) - {str(each['name']) for each in inputs})
    return known + [{'name': name, 'type': 'String', 'value': given[name]} for name in more]
