"""Software configurations and their deployments: what is to be done on servers, and what has become of it there.

Whoever calls the API keeps them, and so do resources. Agents on the servers fetch them, and report back.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from convergence.core.model import Json
from convergence.values import replace

DEFAULT_GROUP = 'Heat::Ungrouped'
"""The group of what no particular tool is meant for."""
IN_PROGRESS, COMPLETE, FAILED = 'IN_PROGRESS', 'COMPLETE', 'FAILED'
"""How far a deployment of a resource is. Those of the API may say anything."""


@dataclass(frozen=True, slots=True)
class SoftwareConfig:
    """What is to be done on servers. It never changes.

    :param group: the tool that understands it.
    :param content: ``config``, ``inputs``, ``outputs``, ``options``.
    :param deployment_id: the deployment that a resource has derived it for, with which it goes; None: made for itself.
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
    status: str = COMPLETE
    status_reason: str = ''
    stack_user_project_id: str | None = None
    created_at: float = 0.0
    updated_at: float | None = None


def deployed_again(present: SoftwareDeployment | None, wanted: SoftwareDeployment, now: float) -> SoftwareDeployment:
    """A deployment that gets another configuration: what the server has answered stays until it answers anew.

    :param present: as it was; None: there is none.
    :param now: seconds since the epoch.
    """
    if present is None:
        return replace(wanted, created_at=now)
    return replace(wanted, output_values=present.output_values, created_at=present.created_at, updated_at=now)


@dataclass(frozen=True, slots=True)
class Holder:
    """A claim on the row of a resource. Once somebody else has claimed it, what is written in its name is refused."""

    resource_id: str
    fence: int


@dataclass(frozen=True, slots=True)
class ServerReport:
    """What has become of a configuration on a server.

    :param output_values: None leaves them as they are.
    """

    status: str
    status_reason: str
    output_values: Mapping[str, Json] | None = None


class SoftwareRowsPort(Protocol):
    """Keeps configurations and deployments. Nobody sees those of another project.

    :raises LostClaim: from whatever writes for a `Holder` that is none any more.
    """

    def config(self, project_id: str, config_id: str) -> SoftwareConfig | None:
        """One configuration."""

    def add_config(self, config: SoftwareConfig, holder: Holder | None = None) -> SoftwareConfig:
        """Keep a configuration; it, with its time. One that is there already stays as it is."""

    def remove_config(self, project_id: str, config_id: str, holder: Holder | None = None) -> bool:
        """Remove a configuration, unless a deployment has it; whether it is gone."""

    def deployment(self, project_id: str, deployment_id: str) -> SoftwareDeployment | None:
        """One deployment."""

    def deployments(self, project_id: str, server_id: str | None = None) -> list[SoftwareDeployment]:
        """The deployments of a project, or of one of its servers, oldest first."""

    def deploy(
        self, deployment: SoftwareDeployment, config: SoftwareConfig, holder: Holder | None = None
    ) -> SoftwareDeployment:
        """Give a deployment, which is made if need be, a derived configuration in the place of the one that it has.

        Where it has got that one before, nothing changes.

        :returns: the deployment as it is now.
        """

    def report(
        self,
        project_id: str,
        deployment_id: str,
        config_id: str,
        report: ServerReport,
        holder: Holder | None = None,
    ) -> bool:
        """Say what has become of a configuration; False: nobody waits for that (any more)."""

    def remove_deployment(self, project_id: str, deployment_id: str, holder: Holder | None = None) -> bool:
        """Remove a deployment, with the configurations that were derived for it; whether there was one."""


def for_agents(
    deployments: Iterable[tuple[SoftwareDeployment, SoftwareConfig]],
) -> list[tuple[SoftwareConfig, dict[str, Any]]]:
    """What an agent is to do: the configurations by their names, each with its content and the values of its inputs."""
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
    """Inputs with their values; a value that no input was declared for makes one."""
    given = values if isinstance(values, dict) else {}
    known: list[dict[str, Json]] = [
        {**each, 'value': given.get(str(each['name']), each.get('default'))} for each in inputs
    ]
    more = sorted(set(given) - {str(each['name']) for each in inputs})
    return known + [{'name': name, 'type': 'String', 'value': given[name]} for name in more]
