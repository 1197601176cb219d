"""Whole stacks."""

from __future__ import annotations

from dataclasses import replace
from http import HTTPStatus
from typing import Any
from urllib.parse import urlencode

from convergence import errors
from convergence.api import submissions, views
from convergence.api.calls import ApiAnswer, ApiCall
from convergence.api.conditions import entity_tag, expected_traversal, idempotency_key
from convergence.api.faults import message
from convergence.api.user_credentials import (
    query_with_user_credentials,
    with_repaired_credentials,
    with_user_credentials,
)
from convergence.documents import AnyJson
from convergence.rpc.engine_api import EngineApi, StackQuery

FILTERS = (
    'name',
    'status',
    'action',
    'id',
    'tenant',
    'username',
    'owner_id',
    'stack_name',
    'stack_action',
    'stack_status',
    'stack_status_reason',
    'disable_rollback',
    'timeout_mins',
    'stack_owner',
    'parent',
    'stack_user_project_id',
)
"""Fields of a stack by which a list can be filtered."""

FLAGS = ('show_deleted', 'show_nested', 'show_hidden')
TAGS = ('tags', 'tags_any', 'not_tags', 'not_tags_any')


# --- lists ----------------------------------------------------------------------------------------------------


def index(call: ApiCall) -> ApiAnswer:
    """List the stacks of the project that the query selects."""
    query = call.query
    if query.flag('global_tenant'):
        call.require('stacks:global_index')
        raise errors.NotOffered('global_tenant: this installation lists the stacks of one project at a time.')
    limit = query.number('limit')
    selection: dict[str, Any] = {
        **{name: query.flag(name) for name in FLAGS},
        **{name: query.text(name) for name in TAGS},
    }
    wanted = StackQuery(filters=query.filters(FILTERS) or None, **selection)
    page = replace(
        wanted,
        limit=limit,
        marker=query.text('marker'),
        sort_keys=query.texts('sort_keys'),
        sort_dir=query.text('sort_dir'),
    )
    documents = call.ask(EngineApi.list_stacks, query=page)
    answer: dict[str, Any] = {
        'stacks': [views.stack(call.base, each, with_project=call.is_admin) for each in documents]
    }
    if limit and len(documents) == limit:
        answer['links'] = [{'rel': 'next', 'href': _next_page(call, documents[-1]['stack_identity']['stack_id'])}]
    if query.flag('with_count'):
        answer['count'] = call.ask(EngineApi.count_stacks, query=wanted)
    return ApiAnswer(answer)


def _next_page(call: ApiCall, marker: str) -> str:
    pairs = [(name, text) for name in call.query.names() if name != 'marker' for text in call.query.texts(name) or ()]
    return f'{call.url}?{urlencode([*pairs, ("marker", marker)])}'


# --- one stack ------------------------------------------------------------------------------------------------


def lookup(call: ApiCall) -> ApiAnswer:
    """Redirect to the full path of the stack with that name or id."""
    identity = call.ask(EngineApi.identify_stack, stack_name=call.path['stack_name'])
    tail = call.url.removeprefix(call.base).split('/stacks/', 1)[1].partition('/')[2]
    location = views.url(call.base, {**identity, 'path': f'/{tail}' if tail else ''})
    if call.query_text:
        location = f'{location}?{call.query_text}'
    return ApiAnswer(
        message(HTTPStatus.FOUND, f'The resource was found at {location}; you should be redirected automatically.'),
        headers={'Location': location},
    )


def show(call: ApiCall) -> ApiAnswer:
    """Show a stack with its parameters and outputs."""
    resolve = call.query.flag('resolve_outputs', unsaid=True)
    also = {'with_unreadable': True} if call.query.flag('with_unreadable', empty=True) else {}
    (document,) = call.about_stack(EngineApi.show_stack, resolve_outputs=resolve, **also)
    return ApiAnswer({'stack': views.stack(call.base, document)}, headers=entity_tag(document))


def create(call: ApiCall) -> ApiAnswer:
    """Create a stack."""
    options = submissions.options(
        call.body, adopt_stack_data=call.body.get('adopt_stack_data'), idempotency_key=idempotency_key(call)
    )
    arguments = {
        'stack_name': call.body['stack_name'],
        'template': submissions.template(call.body, required=not call.body.get('adopt_stack_data')),
        'args': options,
        **submissions.arguments(call.body),
    }
    identity = with_user_credentials(
        call, lambda credentials: call.ask(EngineApi.create_stack, **arguments, credentials=credentials)
    )
    made = {'id': identity['stack_id'], 'links': [views.link(call.base, identity)]}
    return ApiAnswer({'stack': made}, headers={'Location': views.url(call.base, identity)})


def preview(call: ApiCall) -> ApiAnswer:
    """Preview the creation of a stack."""
    arguments = {
        'stack_name': call.body['stack_name'],
        'template': submissions.template(call.body),
        'args': submissions.options(call.body, show_nested=call.query.flag('show_nested', empty=True) or None),
        **submissions.arguments(call.body),
    }
    document = query_with_user_credentials(
        call, lambda credentials: call.ask(EngineApi.preview_stack, **arguments, credentials=credentials)
    )
    return ApiAnswer({'stack': views.preview(call.base, document)})


def update(call: ApiCall) -> ApiAnswer:
    """Update a stack with a complete new goal."""
    _accept_update(call)
    return ApiAnswer(message(HTTPStatus.ACCEPTED, 'The request is accepted for processing.'))


def patch(call: ApiCall) -> ApiAnswer:
    """Update parts of the goal of a stack; omitted parts stay unchanged."""
    _accept_update(call, existing=True)
    return ApiAnswer(message(HTTPStatus.ACCEPTED, 'The request is accepted for processing.'))


def _accept_update(call: ApiCall, *, existing: bool | None = None) -> None:
    arguments = _update_arguments(call, existing=existing, expected_traversal=expected_traversal(call))
    with_user_credentials(
        call,
        lambda credentials: call.about_stack(EngineApi.update_stack, **arguments, credentials=credentials),
        stack_identity=call.identity,
    )


def preview_update(call: ApiCall) -> ApiAnswer:
    """Preview the changes of an update."""
    return ApiAnswer({'resource_changes': _preview_update(call)})


def preview_patch(call: ApiCall) -> ApiAnswer:
    """Preview the changes of a partial update."""
    return ApiAnswer({'resource_changes': _preview_update(call, existing=True)})


def preview_rollback(call: ApiCall) -> ApiAnswer:
    """Preview the changes of a rollback."""
    show_nested = call.query.flag('show_nested', empty=True) or None
    return ApiAnswer({'resource_changes': call.about_stack(EngineApi.preview_rollback, show_nested=show_nested)})


def _preview_update(call: ApiCall, *, existing: bool | None = None) -> AnyJson:
    show_nested = call.query.flag('show_nested', empty=True) or None
    arguments = _update_arguments(call, existing=existing, show_nested=show_nested)
    return call.about_stack(EngineApi.preview_update_stack, **arguments)


def _update_arguments(call: ApiCall, *, existing: bool | None = None, **more: Any) -> dict[str, Any]:
    body = call.body or {}
    return {
        'template': submissions.template(body, required=not existing),
        'args': submissions.options(body, existing=existing, **more),
        **submissions.arguments(body),
    }


def delete(call: ApiCall) -> ApiAnswer:
    """Start to delete a stack. Each leave=NAME leaves the object of that resource behind."""
    arguments: dict[str, Any] = {'expected_traversal': expected_traversal(call), 'leave': call.query.texts('leave')}
    with_repaired_credentials(
        call,
        lambda credentials: call.about_stack(EngineApi.delete_stack, **arguments, credentials=credentials),
        call.identity,
    )
    return ApiAnswer()


def abandon(call: ApiCall) -> ApiAnswer:
    """Abandon a stack: delete its record and keep its objects."""
    return ApiAnswer(call.about_stack(EngineApi.abandon_stack))


def export(call: ApiCall) -> ApiAnswer:
    """Export the data that another installation needs to adopt the stack."""
    return ApiAnswer(call.about_stack(EngineApi.export_stack))


# --- parts of a stack ----------------------------------------------------------------------------------


def template(call: ApiCall) -> ApiAnswer:
    """Show the template of a stack, as a map."""
    return ApiAnswer(call.about_stack(EngineApi.get_template))


def environment(call: ApiCall) -> ApiAnswer:
    """Show the environment of a stack, with hidden values masked."""
    return ApiAnswer(call.about_stack(EngineApi.get_environment))


def files(call: ApiCall) -> ApiAnswer:
    """Show the files of the template of a stack, by name."""
    return ApiAnswer(call.about_stack(EngineApi.get_files))


def outputs(call: ApiCall) -> ApiAnswer:
    """List the outputs of a stack without their values."""
    return ApiAnswer({'outputs': call.about_stack(EngineApi.list_outputs)})


def output(call: ApiCall) -> ApiAnswer:
    """Show one output with its value."""
    return ApiAnswer({'output': call.about_stack(EngineApi.show_output, output_key=call.path['output_key'])})
