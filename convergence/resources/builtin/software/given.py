"""The configuration of a deployment, and the inputs that the server gets besides."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from convergence import signing
from convergence.core.model import Action
from convergence.core.software import DEFAULT_GROUP, SoftwareConfig, filled
from convergence.resources.builtin.signal_urls import AddressOfApi
from convergence.resources.builtin.software.configs import made_id
from convergence.resources.builtin.software.deriving import Input, declared_in, undeclared
from convergence.resources.contract import Call, FinalFailure

CFN, HEAT = 'CFN_SIGNAL', 'HEAT_SIGNAL'
_CREDENTIALS = {
    'deploy_auth_url': 'URL for API authentication',
    'deploy_username': 'Username for API authentication',
    'deploy_user_id': 'User ID for API authentication',
    'deploy_password': 'Password for API authentication',
    'deploy_project_id': 'ID of project for API authentication',
    'deploy_region_name': 'Region name for API authentication',
}
"""Inputs with which others authenticate. No user is made for a server here: they are empty, the agent has its own."""


def id_of(call: Call[Any]) -> str:
    """The id of the deployment."""
    return call.physical_id or made_id(call.token)


def found_source(call: Call[Any]) -> SoftwareConfig | None:
    """The configuration of the deployment; an empty one where it has none. None: it is not there."""
    config_id = call.properties.config
    if not config_id:
        return SoftwareConfig('', call.project_id, '', DEFAULT_GROUP, {'config': '', 'outputs': [], 'options': {}})
    return call.software.config(config_id)


def source_of(call: Call[Any]) -> SoftwareConfig:
    """As `found_source`.

    :raises FinalFailure: it is not there.
    """
    found = found_source(call)
    if found is None:
        raise no_config(call)
    return found


def no_config(call: Call[Any]) -> FinalFailure:
    """The configuration is not there."""
    return FinalFailure(f'Software config with id {call.properties.config} not found')


def present_config(call: Call[Any]) -> SoftwareConfig | None:
    """Return the present configuration of the server."""
    deployment = call.software.deployment(id_of(call))
    return call.software.config(deployment.config_id or '') if deployment is not None else None


def given_inputs(call: Call[Any], source: SoftwareConfig) -> list[Input]:
    """The inputs of the configuration with their values."""
    return filled(declared_in(source.content, 'inputs'), call.properties.input_values)


def inputs_of(call: Call[Any], action: Action, source: SoftwareConfig, api: AddressOfApi) -> list[Input]:
    """Return all inputs: those of the configuration, and those that describe the action.

    :raises FinalFailure: the address to which the server can report back is not known.
    """
    return [*given_inputs(call, source), *_about(call, action, api)]


def _about(call: Call[Any], action: Action, api: AddressOfApi) -> Iterator[Input]:
    transport = call.properties.signal_transport
    yield undeclared('deploy_server_id', call.properties.server, 'ID of the server being deployed to')
    yield undeclared('deploy_action', action.value, 'Name of the current action being deployed')
    path = f'{call.stack_name}/{call.stack_id}'
    yield undeclared('deploy_stack_id', path, 'ID of the stack this deployment belongs to')
    yield undeclared('deploy_resource_name', call.name, 'Name of this deployment resource in the stack')
    yield undeclared('deploy_signal_transport', transport, 'How the server reports back')
    if transport == CFN:
        yield undeclared('deploy_signal_id', _address(call, api()), 'Where the server reports back')
        yield undeclared('deploy_signal_verb', 'POST', 'HTTP verb to use for signaling output values')
    elif transport == HEAT:
        for name, description in _CREDENTIALS.items():
            yield undeclared(name, '', description)


def _address(call: Call[Any], api: str | None) -> str:
    key = signing.key_in(call.data)
    if api is None or key is None:
        raise FinalFailure(
            f'the address for signals to {call.name} is not known: set [api] public_url, also where '
            'engines and workers run, and update the stack'
        )
    return signing.Grant(call.project_id, call.resource_id, call.revocation).address(api, key)
