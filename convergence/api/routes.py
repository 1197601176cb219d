"""All routes of the API as data: one entry per method and path.

Routing, policy, the OpenAPI document and generated tests use this table. A route whose operation the
engine does not have answers 501.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from enum import StrEnum

from convergence.api import schemas
from convergence.api.calls import ApiAnswer, ApiCall
from convergence.api.endpoints import (
    actions,
    events,
    installation,
    resources,
    signals,
    snapshots,
    software,
    stacks,
    traversals,
    webhooks,
)
from convergence.api.schemas import Schema

PREFIX = '/v1/{project_id}'
STACK = '/stacks/{stack_name}/{stack_id}'


class Access(StrEnum):
    """The proof that a route requires: the token of a caller, or the signature of the URL.

    The policy applies to tokens only. A signature is valid for one resource; an engine verifies it.
    """

    TOKEN = 'TOKEN'
    SIGNATURE = 'SIGNATURE'


class Body(StrEnum):
    """Presence of a body in a request."""

    NONE = 'NONE'
    OPTIONAL = 'OPTIONAL'
    REQUIRED = 'REQUIRED'


@dataclass(frozen=True, slots=True)
class Route:
    """One method of one path.

    :param path: below the version and the project; variable parts in braces.
    :param operations: methods of the engine that the endpoint calls.
    :param rule: of the policy; empty for a signed route.
    :param status: of a successful answer.
    :param summary: a sentence.
    :param query: names of the parameters of the query.
    :param schema: of the body.
    """

    method: str
    path: str
    endpoint: Callable[[ApiCall], ApiAnswer]
    operations: tuple[str, ...]
    rule: str
    status: int
    summary: str
    query: tuple[str, ...] = ()
    body: Body = Body.NONE
    schema: Schema = field(default_factory=dict)
    access: Access = Access.TOKEN

    @property
    def template(self) -> str:
        """Return the whole path."""
        return f'{PREFIX}{self.path}'

    @property
    def variables(self) -> list[str]:
        """Return the names of the variable parts of the path, without the project."""
        return re.findall(r'{(\w+)}', self.path)


def _route(
    line: str,
    endpoint: Callable[[ApiCall], ApiAnswer],
    operations: str,
    rule: str,
    status: int = 200,
    query: str = '',
) -> Route:
    """Return a route without a body. Its summary is the first line of its endpoint's docstring."""
    method, path = line.split()
    summary = (endpoint.__doc__ or '').partition('\n')[0].strip()
    return Route(method, path, endpoint, tuple(operations.split()), rule, status, summary, tuple(query.split()))


def _with_body(route: Route, schema: Schema, body: Body = Body.REQUIRED) -> Route:
    return replace(route, body=body, schema=schema)


def _signed(line: str) -> Route:
    """Return a signed route."""
    route = _route(line, signals.take, 'resource_signal_by_address', '', query=f'{" ".join(signals.QUERY)}')
    return replace(route, access=Access.SIGNATURE, body=Body.OPTIONAL, schema=schemas.SIGNAL)


def _lookup(line: str) -> Route:
    return _route(line, stacks.lookup, 'identify_stack', 'stacks:lookup', 302)


_LIST = ' '.join(
    (*stacks.FILTERS, *stacks.FLAGS, *stacks.TAGS, 'limit marker sort_keys sort_dir with_count global_tenant')
)
_EVENTS = ' '.join((*events.FILTERS, 'limit marker sort_keys sort_dir nested_depth'))
_RESOURCES = ' '.join((*resources.FILTERS, *resources.PARAMETERS))

_STACKS = (
    _route('GET /stacks', stacks.index, 'list_stacks count_stacks', 'stacks:index', query=_LIST),
    _route('GET /stacks/detail', stacks.index, 'list_stacks count_stacks', 'stacks:detail', query=_LIST),
    _with_body(_route('POST /stacks', stacks.create, 'create_stack', 'stacks:create', 201), schemas.CREATE),
    _with_body(
        _route('POST /stacks/preview', stacks.preview, 'preview_stack', 'stacks:preview', query='show_nested'),
        schemas.CREATE,
    ),
    *(_lookup(f'{method} /stacks/{{stack_name}}') for method in ('GET', 'PUT', 'PATCH', 'POST', 'DELETE')),
    *(
        _lookup(f'GET /stacks/{{stack_name}}/{part}')
        for part in (
            'resources',
            'events',
            'template',
            'actions',
            'environment',
            'files',
            'explain',
            'graph',
            'traversals',
        )
    ),
    *(_lookup(f'POST /stacks/{{stack_name}}/{part}') for part in ('resources', 'events', 'template', 'actions')),
    _route(f'GET {STACK}', stacks.show, 'show_stack', 'stacks:show', query='resolve_outputs with_unreadable'),
    _with_body(_route(f'PUT {STACK}', stacks.update, 'update_stack', 'stacks:update', 202), schemas.UPDATE),
    _with_body(
        _route(f'PATCH {STACK}', stacks.patch, 'update_stack', 'stacks:update_patch', 202),
        schemas.PATCH,
        Body.OPTIONAL,
    ),
    _with_body(
        _route(
            f'PUT {STACK}/preview',
            stacks.preview_update,
            'preview_update_stack',
            'stacks:preview_update',
            query='show_nested',
        ),
        schemas.UPDATE,
    ),
    _with_body(
        _route(
            f'PATCH {STACK}/preview',
            stacks.preview_patch,
            'preview_update_stack',
            'stacks:preview_update_patch',
            query='show_nested',
        ),
        schemas.PATCH,
        Body.OPTIONAL,
    ),
    _route(f'DELETE {STACK}', stacks.delete, 'delete_stack', 'stacks:delete', 204, 'leave'),
    _route(f'DELETE {STACK}/abandon', stacks.abandon, 'abandon_stack', 'stacks:abandon'),
    _route(f'GET {STACK}/export', stacks.export, 'export_stack', 'stacks:export'),
    _route(f'GET {STACK}/template', stacks.template, 'get_template', 'stacks:template'),
    _route(f'GET {STACK}/environment', stacks.environment, 'get_environment', 'stacks:environment'),
    _route(f'GET {STACK}/files', stacks.files, 'get_files', 'stacks:files'),
    _route(f'GET {STACK}/outputs', stacks.outputs, 'list_outputs', 'stacks:list_outputs'),
    _route(f'GET {STACK}/outputs/{{output_key}}', stacks.output, 'show_output', 'stacks:show_output'),
    _with_body(
        _route(
            f'POST {STACK}/actions',
            actions.act,
            'stack_suspend stack_resume stack_check stack_rollback stack_cancel_update',
            'actions:action',
        ),
        schemas.ACTION,
        Body.OPTIONAL,
    ),
    _route(
        f'GET {STACK}/rollback/preview',
        stacks.preview_rollback,
        'preview_rollback',
        'stacks:preview_rollback',
        query='show_nested',
    ),
    _route(f'GET {STACK}/explain', traversals.explain, 'stack_explain', 'stacks:explain', query='nested_depth'),
    _route(f'GET {STACK}/drift', traversals.drift, 'stack_drift', 'stacks:drift', query='nested_depth with_healthy'),
    _route(f'POST {STACK}/drift', traversals.observe, 'observe_stack', 'stacks:observe', 202, query='nested_depth'),
    _with_body(
        _route(f'PATCH {STACK}/drift', traversals.set_policy, 'set_drift_policy', 'stacks:drift_policy'),
        schemas.DRIFT_POLICY,
    ),
    _route(f'GET {STACK}/graph', traversals.graph, 'stack_graph', 'stacks:graph', query='format nested_depth'),
    _route(
        f'GET {STACK}/traversals', traversals.index, 'list_traversals', 'stacks:traversals', query='limit nested_depth'
    ),
)

_RESOURCE = f'{STACK}/resources/{{resource_name}}'

_PARTS = (
    _route(f'GET {STACK}/resources', resources.index, 'list_stack_resources', 'resource:index', query=_RESOURCES),
    _route(f'GET {_RESOURCE}', resources.show, 'describe_stack_resource', 'resource:show', query='with_attr'),
    _with_body(
        _route(f'PATCH {_RESOURCE}', resources.mark_unhealthy, 'resource_mark_unhealthy', 'resource:mark_unhealthy'),
        schemas.UNHEALTHY,
    ),
    _route(f'POST {_RESOURCE}/repair', resources.repair, 'repair_resource', 'resource:repair', 202),
    _with_body(
        _route(f'POST {_RESOURCE}/accept', resources.accept, 'accept_drift', 'resource:accept'),
        schemas.ACCEPT,
        Body.OPTIONAL,
    ),
    _route(f'DELETE {_RESOURCE}/accept', resources.withdraw, 'withdraw_acceptance', 'resource:accept'),
    _route(f'GET {_RESOURCE}/metadata', resources.metadata, 'describe_stack_resource', 'resource:metadata'),
    _with_body(
        _route(f'POST {_RESOURCE}/signal', resources.signal, 'resource_signal', 'resource:signal'),
        schemas.SIGNAL,
        Body.OPTIONAL,
    ),
    _with_body(
        _route(f'POST {_RESOURCE}/signal_url', signals.make_address, 'resource_signal_address', 'resource:signal_url'),
        schemas.SIGNAL_URL,
        Body.OPTIONAL,
    ),
    *(_signed(f'{method} /signals/{{resource_id}}') for method in ('POST', 'PUT')),
    _route(f'GET {STACK}/events', events.index, 'list_events', 'events:index', query=f'{_EVENTS} follow'),
    _route(f'GET {_RESOURCE}/events', events.of_resource, 'list_events', 'events:index', query=_EVENTS),
    _route(f'GET {_RESOURCE}/events/{{event_id}}', events.show, 'list_events', 'events:show'),
    _with_body(
        _route(f'POST {STACK}/snapshots', snapshots.create, 'stack_snapshot', 'stacks:snapshot'),
        schemas.SNAPSHOT,
        Body.OPTIONAL,
    ),
    _route(f'GET {STACK}/snapshots', snapshots.index, 'stack_list_snapshots', 'stacks:list_snapshots'),
    _route(f'GET {STACK}/snapshots/{{snapshot_id}}', snapshots.show, 'show_snapshot', 'stacks:show_snapshot'),
    _route(
        f'DELETE {STACK}/snapshots/{{snapshot_id}}', snapshots.delete, 'delete_snapshot', 'stacks:delete_snapshot', 204
    ),
    _route(
        f'POST {STACK}/snapshots/{{snapshot_id}}/restore',
        snapshots.restore,
        'stack_restore',
        'stacks:restore_snapshot',
        202,
    ),
)

_INSTALLATION = (
    _with_body(
        _route(
            'POST /validate',
            installation.validate,
            'validate_template',
            'stacks:validate_template',
            query='show_nested ignore_errors',
        ),
        schemas.VALIDATE,
    ),
    _route(
        'GET /resource_types',
        installation.resource_types,
        'list_resource_types',
        'stacks:list_resource_types',
        query='support_status name version with_description',
    ),
    _route(
        'GET /resource_types/{type_name}',
        installation.resource_type,
        'resource_schema',
        'stacks:resource_schema',
        query='with_description',
    ),
    _route(
        'GET /resource_types/{type_name}/template',
        installation.type_template,
        'generate_template',
        'stacks:generate_template',
        query='template_type',
    ),
    _route(
        'GET /template_versions',
        installation.template_versions,
        'list_template_versions',
        'stacks:list_template_versions',
    ),
    _route(
        'GET /template_versions/{template_version}/functions',
        installation.template_functions,
        'list_template_functions',
        'stacks:list_template_functions',
        query='with_condition_func',
    ),
    _route('GET /build_info', installation.build_info, 'get_revision', 'build_info:build_info'),
    _route('GET /services', installation.services, 'list_services', 'service:index'),
)

_SOFTWARE = (
    _route(
        'GET /software_configs',
        software.configs,
        'list_software_configs',
        'software_configs:index',
        query='limit marker global_tenant',
    ),
    _with_body(
        _route('POST /software_configs', software.create_config, 'create_software_config', 'software_configs:create'),
        schemas.SOFTWARE_CONFIG,
    ),
    _route('GET /software_configs/{config_id}', software.config, 'show_software_config', 'software_configs:show'),
    _route(
        'DELETE /software_configs/{config_id}',
        software.delete_config,
        'delete_software_config',
        'software_configs:delete',
        204,
    ),
    _route(
        'GET /software_deployments',
        software.deployments,
        'list_software_deployments',
        'software_deployments:index',
        query='server_id',
    ),
    _with_body(
        _route(
            'POST /software_deployments',
            software.create_deployment,
            'create_software_deployment',
            'software_deployments:create',
        ),
        schemas.DEPLOYMENT,
    ),
    _route(
        'GET /software_deployments/{deployment_id}',
        software.deployment,
        'show_software_deployment',
        'software_deployments:show',
    ),
    _with_body(
        _route(
            'PUT /software_deployments/{deployment_id}',
            software.update_deployment,
            'update_software_deployment',
            'software_deployments:update',
        ),
        schemas.DEPLOYMENT_CHANGE,
    ),
    _route(
        'DELETE /software_deployments/{deployment_id}',
        software.delete_deployment,
        'delete_software_deployment',
        'software_deployments:delete',
        204,
    ),
    _route(
        'GET /software_deployments/metadata/{server_id}',
        software.metadata,
        'metadata_software_deployments',
        'software_deployments:metadata',
    ),
)

_WEBHOOKS = (
    _route('GET /webhooks', webhooks.index, 'list_webhooks', 'webhooks:index', query='stack'),
    _with_body(_route('POST /webhooks', webhooks.create, 'create_webhook', 'webhooks:create', 201), schemas.WEBHOOK),
    _route('GET /webhooks/{webhook_id}', webhooks.show, 'show_webhook', 'webhooks:show'),
    _route('DELETE /webhooks/{webhook_id}', webhooks.delete, 'delete_webhook', 'webhooks:delete', 204),
    _route('POST /webhooks/{webhook_id}/test', webhooks.test, 'test_webhook', 'webhooks:test'),
)

ROUTES: tuple[Route, ...] = (*_STACKS, *_PARTS, *_INSTALLATION, *_SOFTWARE, *_WEBHOOKS)
"""All routes. If two match, the one with the more specific path is used."""
