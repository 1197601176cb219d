"""``OS::Heat::DeployedServer``: a server that is there already, for which deployments are meant.

Its metadata, as the API shows them, hold what the agent on the server is to do.
"""

# ruff: noqa: RUF009 - prop() and attr() make dataclass fields, like field()
from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from typing_extensions import override

from convergence.core.model import Json
from convergence.core.software import for_agents
from convergence.resources.attributes import attr
from convergence.resources.builtin.waiting import physical_name
from convergence.resources.constraints import AllowedValues, Length
from convergence.resources.contract import Answer, Call, Done, ResourceType
from convergence.resources.schema import prop
from convergence.resources.support import Status, SupportStatus, since

CFN, HEAT = 'POLL_SERVER_CFN', 'POLL_SERVER_HEAT'
DEPLOYMENTS, COLLECTING = 'deployments', 'os-collect-config'
"""Keys of the metadata that agents read."""
_NOT_EMPTY = (Length(minimum=1),)


@dataclass(frozen=True)
class SwiftData:
    """The place in an object store for the data of the agent."""

    container: str | None = prop(None, constraints=_NOT_EMPTY, description='The container.')
    object: str | None = prop(None, constraints=_NOT_EMPTY, description='The object.')


@dataclass(frozen=True)
class ServerProperties:
    """See the descriptions of the fields."""

    name: str | None = prop(None, update_allowed=True, description='Name of the server.')
    metadata: dict[str, Json] | None = prop(
        None,
        update_allowed=True,
        description='Accepted and ignored.',
        support=SupportStatus(Status.DEPRECATED, '9.0.0', 'This property will be ignored', since('8.0.0')),
    )
    software_config_transport: str = prop(
        CFN,
        update_allowed=True,
        constraints=[
            AllowedValues(
                (CFN, HEAT),
                f'it must be {CFN} or {HEAT}; POLL_TEMP_URL needs an object store, and ZAQAR_MESSAGE a queueing '
                'service, neither of which is used here',
            )
        ],
        description='How the agent gets its deployments. With POLL_SERVER_HEAT it polls the Orchestration API '
        'for the metadata of the resource, with a token of its own. The API that POLL_SERVER_CFN means is not offered.',
    )
    deployment_swift_data: SwiftData = prop(
        {}, update_allowed=True, support=since('9.0.0'), description='Accepted and ignored: no object store is used.'
    )


@dataclass(frozen=True)
class ServerAttributes:
    """The attributes of the server."""

    name: str = attr('Its name.', of=('name',))
    os_collect_config: dict[str, Json] = attr(
        'How the agent is configured to fetch what it is to do.', of=('software_config_transport',)
    )


class DeployedServer(ResourceType[ServerProperties]):
    """Represents an existing server, and gives its agent the deployments to run."""

    Properties = ServerProperties
    Attributes = ServerAttributes
    token_enforced = True  # Nothing real is made.
    create_ambiguity_s = 0.0

    @override
    def create(self, call: Call[ServerProperties]) -> Answer:
        """Nothing to do but to have an id, by which deployments name the server."""
        return Done(call.resource_id)

    @override
    def attribute(self, call: Call[ServerProperties], name: str) -> Json:
        """Its name, or the configuration of its agent."""
        if name == 'name':
            return call.properties.name or physical_name(call)
        return _collecting(call)

    @override
    def metadata(self, call: Call[ServerProperties]) -> Json:
        """Return the metadata of the template, the deployments of the server, and the configuration of its agent."""
        given: dict[str, Json] = dict(call.metadata) if isinstance(call.metadata, dict) else {}
        found = call.software.on_server(call.physical_id) if call.physical_id is not None else []
        given[DEPLOYMENTS] = [document for _, document in for_agents(found)]
        more = given.get(COLLECTING)
        given[COLLECTING] = {**(more if isinstance(more, dict) else {}), **_collecting(call)}
        return given


def _collecting(call: Call[Any]) -> dict[str, Json]:
    """Return the configuration of an agent of the field. Its credentials are left open, because they are not made
    here.
    """
    if call.properties.software_config_transport == HEAT:
        stack_id = f'{call.stack_name}/{call.stack_id}'
        heat: dict[str, Json] = dict.fromkeys(('auth_url', 'user_id', 'password', 'region_name'))
        heat |= {'project_id': call.project_id, 'stack_id': stack_id, 'resource_name': call.name}
        return {'collectors': ['heat', 'local'], 'heat': heat}
    cfn: dict[str, Json] = dict.fromkeys(('metadata_url', 'access_key_id', 'secret_access_key'))
    cfn |= {'stack_name': call.stack_name, 'path': f'{call.name}.Metadata'}
    return {'collectors': ['cfn', 'local'], 'cfn': cfn}
