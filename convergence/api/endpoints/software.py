"""Software configurations and their deployments."""

from __future__ import annotations

from typing import Any

from convergence import errors
from convergence.api.calls import ApiAnswer, ApiCall
from convergence.rpc.engine_api import EngineApi


def _fields(call: ApiCall, *names: str) -> dict[str, Any]:
    return {name: call.body.get(name) for name in names}


def configs(call: ApiCall) -> ApiAnswer:
    """The software configurations of a project."""
    if call.query.flag('global_tenant'):
        call.require('software_configs:global_index')
        raise errors.NotOffered('global_tenant: this installation lists the configurations of one project at a time.')
    found = call.ask(
        EngineApi.list_software_configs, limit=call.query.number('limit'), marker=call.query.text('marker')
    )
    return ApiAnswer({'software_configs': found})


def create_config(call: ApiCall) -> ApiAnswer:
    """Keep a software configuration."""
    fields = _fields(call, 'group', 'name', 'config', 'inputs', 'outputs', 'options')
    made = call.ask(EngineApi.create_software_config, **fields)
    return ApiAnswer({'software_config': made})


def config(call: ApiCall) -> ApiAnswer:
    """One software configuration."""
    return ApiAnswer({'software_config': call.ask(EngineApi.show_software_config, config_id=call.path['config_id'])})


def delete_config(call: ApiCall) -> ApiAnswer:
    """Delete a software configuration."""
    call.ask(EngineApi.delete_software_config, config_id=call.path['config_id'])
    return ApiAnswer()


def deployments(call: ApiCall) -> ApiAnswer:
    """The software deployments of a project, or of one server."""
    found = call.ask(EngineApi.list_software_deployments, server_id=call.query.text('server_id'))
    return ApiAnswer({'software_deployments': found})


_DEPLOYMENT = (
    'config_id',
    'input_values',
    'output_values',
    'action',
    'status',
    'status_reason',
    'stack_user_project_id',
)


def create_deployment(call: ApiCall) -> ApiAnswer:
    """Keep a software deployment."""
    made = call.ask(
        EngineApi.create_software_deployment, server_id=call.body['server_id'], **_fields(call, *_DEPLOYMENT)
    )
    return ApiAnswer({'software_deployment': made})


def deployment(call: ApiCall) -> ApiAnswer:
    """One software deployment."""
    found = call.ask(EngineApi.show_software_deployment, deployment_id=call.path['deployment_id'])
    return ApiAnswer({'software_deployment': found})


def update_deployment(call: ApiCall) -> ApiAnswer:
    """Change a software deployment."""
    deployment_id = call.path['deployment_id']
    changed = call.ask(EngineApi.update_software_deployment, deployment_id=deployment_id, **_fields(call, *_DEPLOYMENT))
    return ApiAnswer({'software_deployment': changed})


def delete_deployment(call: ApiCall) -> ApiAnswer:
    """Delete a software deployment."""
    call.ask(EngineApi.delete_software_deployment, deployment_id=call.path['deployment_id'])
    return ApiAnswer()


def metadata(call: ApiCall) -> ApiAnswer:
    """List the deployments for the agent of a server."""
    return ApiAnswer({'metadata': call.ask(EngineApi.metadata_software_deployments, server_id=call.path['server_id'])})
