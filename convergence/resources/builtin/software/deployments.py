"""``OS::Heat::SoftwareDeployment`` and ``StructuredDeployment``: configurations on servers.

Each action that must run on the server derives a configuration: that of the deployment, with the values of its inputs
and the data with which the server reports back. The agent on the server finds it, runs it, and reports; until then the
resource waits in its row.

The id of a derived configuration depends on the token, on the one derived before, and on its content. So a step that
is repeated after a crash changes nothing, and a configuration that returns later runs again.
"""

# ruff: noqa: RUF009 - prop() and attr() make dataclass fields, like field()
from __future__ import annotations

import json
import secrets
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

from typing_extensions import override

from convergence import signing
from convergence.core.model import Action, Json
from convergence.core.software import (
    COMPLETE,
    FAILED,
    IN_PROGRESS,
    ServerReport,
    SoftwareConfig,
    SoftwareDeployment,
)
from convergence.resources.attributes import attr
from convergence.resources.builtin.signal_urls import AddressOfApi, nowhere
from convergence.resources.builtin.software.configs import made_id, shown_name
from convergence.resources.builtin.software.deriving import (
    Input,
    declared_in,
    replacing,
    substituted,
    triggered_by,
    values_of,
)
from convergence.resources.builtin.software.given import (
    CFN,
    HEAT,
    found_source,
    given_inputs,
    id_of,
    inputs_of,
    no_config,
    present_config,
    source_of,
)
from convergence.resources.builtin.software.reporting import STANDARD, reported
from convergence.resources.calls import P
from convergence.resources.constraints import AllowedValues
from convergence.resources.contract import (
    Answer,
    Call,
    Done,
    FinalFailure,
    InProgress,
    ObjectNotFound,
    Observed,
    ReplacementNeeded,
    ResourceType,
)
from convergence.resources.schema import prop
from convergence.resources.support import since

NONE = 'NO_SIGNAL'
ACTIONS = ('CREATE', 'UPDATE', 'DELETE', 'SUSPEND', 'RESUME')
DERIVED = 'derived_config'
"""Key of the id of the last derived configuration in the private data."""
LOOK_AGAIN_S = 30.0
"""Seconds between two polls. A signal causes a poll at once; this bounds the delay after a change over the API."""
_BEGIN: Mapping[str, Json] = {'next': 'deploy'}


@dataclass(frozen=True)
class DeploymentProperties:
    """See the descriptions of the fields."""

    config: str | None = prop(None, update_allowed=True, description='Id of the configuration.')
    server: str = prop(description='Id of the server.')
    input_values: dict[str, Json] | None = prop(
        None, update_allowed=True, description='Values of the inputs of the configuration.'
    )
    actions: list[str] = prop(
        ['CREATE', 'UPDATE'],
        update_allowed=True,
        constraints=[AllowedValues(ACTIONS)],
        description='The actions of the resource in which it is done. A component says it itself.',
    )
    name: str | None = prop(
        None,
        update_allowed=True,
        description='Name of the derived configuration: agents run configurations in the order of their names.',
    )
    signal_transport: str = prop(
        CFN,
        constraints=[
            AllowedValues(
                (CFN, HEAT, NONE),
                f'it must be one of {CFN}, {HEAT}, {NONE}; TEMP_URL_SIGNAL needs an object store, and ZAQAR_SIGNAL a '
                'queueing service, neither of which is used here',
            )
        ],
        description='How the server reports back: CFN_SIGNAL to a secret address, HEAT_SIGNAL to the '
        'API with the token of a member; with NO_SIGNAL the deployment does not wait.',
    )


@dataclass(frozen=True)
class StructuredDeploymentProperties(DeploymentProperties):
    """See the descriptions of the fields."""

    input_key: str = prop(
        'get_input', description='The key of a map that stands for the value of the input which it names.'
    )
    input_values_validate: str = prop(
        'LAX',
        constraints=[AllowedValues(('LAX', 'STRICT'))],
        description='With STRICT each input that the configuration names must have a value.',
    )


@dataclass(frozen=True)
class DeploymentAttributes:
    """The attributes of a deployment, besides every output that its configuration declares."""

    beginnings: ClassVar[tuple[str, ...]] = ('',)

    deploy_stdout: str = attr('What the configuration has written to its standard output.')
    deploy_stderr: str = attr('What it has written to its standard error.')
    deploy_status_code: str = attr('The status with which it has ended.')


class Deployed(ResourceType[P]):
    """Base of the deployments.

    :param api: see `AddressOfApi`.
    """

    Properties: ClassVar[type[Any]] = DeploymentProperties
    Attributes = DeploymentAttributes
    token_enforced = True  # Its id is made of the token.
    create_ambiguity_s = 0.0
    takes_signals = True
    keeps_signals = False
    deaf_in: ClassVar[frozenset[Action]] = frozenset()
    reference_of = ()

    def __init__(self, api: AddressOfApi = nowhere) -> None:
        self._api = api

    # --- actions ----------------------------------------------------------------------------------------------

    @override
    def create(self, call: Call[Any]) -> Answer:
        """Give the server its configuration, and wait for it to report back."""
        return self._begin(call, Action.CREATE)

    @override
    def update(self, call: Call[Any]) -> Answer:
        """Give it another one.

        :raises ReplacementNeeded: an input has another value that says so of itself.
        """
        present = present_config(call)
        if present is not None:
            wanted = given_inputs(call, source_of(call))
            names = ', '.join(sorted(set(replacing(wanted, declared_in(present.content, 'inputs')))))
            if names:
                raise ReplacementNeeded(f'the input {names} has changed')
        return self._begin(call, Action.UPDATE)

    @override
    def suspend(self, call: Call[Any]) -> Answer:
        """Run the configuration of this action on the server."""
        return self._begin(call, Action.SUSPEND)

    @override
    def resume(self, call: Call[Any]) -> Answer:
        """Run the configuration of this action on the server."""
        return self._begin(call, Action.RESUME)

    @override
    def delete(self, call: Call[Any]) -> Answer:
        """Run the configuration of this action on the server, and remove the deployment."""
        if DERIVED in call.data and call.software.deployment(id_of(call)) is None:
            return Done()
        return self._begin(call, Action.DELETE)

    @override
    def poll(self, call: Call[Any], action: Action, progress: Mapping[str, Json]) -> Answer:
        """Return `Done` if the server has reported back."""
        if progress == _BEGIN:
            return self._begin(call, action)
        return self._look(call, action, call.software.deployment(id_of(call)))

    @override
    def cancel(self, call: Call[Any], action: Action, progress: Mapping[str, Json]) -> None:
        """Stop waiting for the server."""
        deployment = call.software.deployment(id_of(call))
        if deployment is not None and deployment.config_id is not None:
            call.software.report(deployment.id, deployment.config_id, ServerReport(FAILED, 'Deployment cancelled.'))

    @override
    def observe(self, call: Call[Any]) -> Observed | None:
        """Return a healthy observation of a complete deployment. Of others no more is known than was reported."""
        deployment = call.software.deployment(id_of(call))
        if deployment is None and DERIVED in call.data:
            raise ObjectNotFound(f'Deployment with id {id_of(call)} not found')
        return Observed() if deployment is not None and deployment.status == COMPLETE else None

    # --- results -----------------------------------------------------------------------------------------

    @override
    def signal(self, call: Call[Any], details: Json) -> str:
        """Store the report of the server: the values of outputs by their names. A deployment that does not wait
        ignores it.
        """
        if not (details is None or isinstance(details, dict)):
            raise FinalFailure('it must be a map of outputs, or nothing at all')
        deployment = call.software.deployment(id_of(call))
        config = present_config(call)
        if deployment is None or config is None or deployment.status != IN_PROGRESS:
            return 'deployment is not waiting for a signal'
        before = deployment.output_values if isinstance(deployment.output_values, dict) else {}
        report, event = reported(details or {}, declared_in(config.content, 'outputs'), before)
        call.software.report(deployment.id, config.id, report)
        return event

    @override
    def attribute(self, call: Call[Any], name: str) -> Json:
        """The value of an output.

        :raises FinalFailure: there is no such output.
        """
        deployment = call.software.deployment(id_of(call))
        values = deployment.output_values if deployment is not None else {}
        if isinstance(values, dict) and name in values:
            return values[name]
        declared = declared_in(source_of(call).content, 'outputs')
        if name in STANDARD or name in {each.get('name') for each in declared}:
            return None
        raise FinalFailure(f'The Referenced Attribute ({call.name} {name}) is incorrect.')

    @override
    def present_attributes(self, call: Call[Any]) -> tuple[str, ...]:
        """The outputs that its configuration declares."""
        names = [each.get('name') for each in declared_in(source_of(call).content, 'outputs')]
        return tuple(name for name in names if isinstance(name, str) and name not in STANDARD)

    # --- parts ------------------------------------------------------------------------------------------------

    def config_of(self, call: Call[Any], source: Json, inputs: list[Input]) -> Json:
        """Return the content of the derived configuration."""
        return source

    def _begin(self, call: Call[Any], action: Action) -> Answer:
        """Begin an action. The key of the signal address is stored before the address is published."""
        source = found_source(call)
        if source is None:
            if action is Action.DELETE:
                return _removed(call)
            raise no_config(call)
        if not triggered_by(action.value, source, call.properties.actions):
            return _ended(call, action)
        if call.properties.signal_transport == CFN and signing.key_in(call.data) is None:
            data = {**call.data, signing.KEY: secrets.token_urlsafe(32)}
            return InProgress(_BEGIN, id_of(call), data, poll_after_s=0.0)
        return self._deploy(call, action, source)

    def _deploy(self, call: Call[Any], action: Action, source: SoftwareConfig) -> Answer:
        waits = call.properties.signal_transport != NONE
        inputs = inputs_of(call, action, source, self._api)
        content: dict[str, Json] = {
            **source.content,
            'config': self.config_of(call, source.content.get('config'), inputs),
            'inputs': list(inputs),
        }
        text = json.dumps([action.value, source.group, call.properties.name, content], sort_keys=True)
        config_id = made_id(call.token, str(call.data.get(DERIVED)), text)
        name = call.properties.name or source.name or shown_name(call)
        deployment = call.software.deploy(
            SoftwareDeployment(
                id_of(call),
                call.project_id,
                call.properties.server,
                config_id,
                input_values=call.properties.input_values or {},
                action=action.value,
                status=IN_PROGRESS if waits else COMPLETE,
                status_reason='Deploy data available' if waits else 'Not waiting for outputs signal',
            ),
            SoftwareConfig(config_id, call.project_id, name, source.group, content, deployment_id=id_of(call)),
        )
        data = {**call.data, DERIVED: config_id}
        if deployment.status == IN_PROGRESS:
            return _waiting(deployment, data)
        return self._look(call, action, deployment, data)

    def _look(
        self,
        call: Call[Any],
        action: Action,
        deployment: SoftwareDeployment | None,
        data: Mapping[str, Json] | None = None,
    ) -> Answer:
        if deployment is None:
            if action is Action.DELETE:
                return Done()
            raise FinalFailure(f'Deployment with id {id_of(call)} not found: a user has removed it')
        if deployment.status == FAILED:
            raise FinalFailure(f'Deployment to server failed: {deployment.status_reason}', physical_id=deployment.id)
        if deployment.status != COMPLETE:
            return _waiting(deployment, data)
        return _ended(call, action, data)


class SoftwareDeploymentType(Deployed[DeploymentProperties]):
    """Puts a configuration on a server, and waits until the server has reported back."""

    support = since('2014.1')


class StructuredDeployment(Deployed[StructuredDeploymentProperties]):
    """Puts a configuration that is a map on a server, with the values of inputs in their places."""

    support = since('2014.1')
    Properties = StructuredDeploymentProperties

    @override
    def config_of(self, call: Call[StructuredDeploymentProperties], source: Json, inputs: list[Input]) -> Json:
        """The map, with values in the places of ``{input_key: name}``."""
        properties = call.properties
        strict = properties.input_values_validate == 'STRICT'
        return substituted(source, properties.input_key, values_of(inputs), strict=strict) or {}


def _waiting(deployment: SoftwareDeployment, data: Mapping[str, Json] | None) -> InProgress:
    return InProgress({'config': deployment.config_id}, deployment.id, data, poll_after_s=LOOK_AGAIN_S)


def _ended(call: Call[Any], action: Action, data: Mapping[str, Json] | None = None) -> Answer:
    return _removed(call) if action is Action.DELETE else Done(id_of(call), data)


def _removed(call: Call[Any]) -> Answer:
    call.software.remove_deployment(id_of(call))
    return Done()
