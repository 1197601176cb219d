"""Events of a stack and its resources."""

from __future__ import annotations

from typing import Any

from convergence import errors
from convergence.api import views
from convergence.api.calls import ApiAnswer, ApiCall
from convergence.api.event_stream import CONTENT_TYPE, PAGE, EventStream
from convergence.rpc.engine_api import EngineApi, EventQuery

FILTERS = ('resource_status', 'resource_action', 'resource_name', 'resource_type', 'physical_resource_id')


def index(call: ApiCall) -> ApiAnswer:
    """List the events of a stack that the query selects; with ``follow``, stream them and all future ones."""
    if call.query.flag('follow', empty=True):
        return _follow(call)
    return ApiAnswer({'events': [views.event(call.base, each) for each in _events(call)]})


def _follow(call: ApiCall) -> ApiAnswer:
    """Return a stream of events. It continues after the header Last-Event-ID, or after the marker."""
    filters = call.query.filters(FILTERS) or None
    stack_id, depth = call.path['stack_id'], call.query.number('nested_depth')

    def fetch(marker: str | None) -> list[dict[str, Any]]:
        query = EventQuery(filters=filters, marker=marker, limit=PAGE, nested_depth=depth)
        documents = call.about_stack(EngineApi.list_events, query=query)
        return [views.event(call.base, each) for each in documents]

    def is_last(event: dict[str, Any]) -> bool:
        return bool(event['physical_resource_id'] == stack_id and event['resource_status'] == 'DELETE_COMPLETE')

    marker = call.headers.get('last-event-id') or call.query.text('marker')
    whose = (f'client {call.client}', f'project {call.path["project_id"]}')
    stream = EventStream(call.followers, fetch, is_last, marker, whose)
    return ApiAnswer(stream=stream, content_type=CONTENT_TYPE, headers={'X-Accel-Buffering': 'no'})


def of_resource(call: ApiCall) -> ApiAnswer:
    """List the events of one resource; 404 if there are none, because the resource may not exist."""
    name = call.path['resource_name']
    documents = _events(call, resource_name=name)
    if not documents:
        raise errors.EntityNotFound(f'No events found for resource {name}')
    return ApiAnswer({'events': [views.event(call.base, each) for each in documents]})


def show(call: ApiCall) -> ApiAnswer:
    """Show one event."""
    wanted = {'resource_name': call.path['resource_name'], 'uuid': call.path['event_id']}
    documents = call.about_stack(EngineApi.list_events, query=EventQuery(filters=wanted))
    if not documents:
        raise errors.EntityNotFound(f'No event {call.path["event_id"]} found')
    return ApiAnswer({'event': views.event(call.base, documents[0], with_detail=True)})


def _events(call: ApiCall, **more: str) -> list[dict[str, Any]]:
    query = call.query
    wanted = EventQuery(
        filters={**query.filters(FILTERS), **more} or None,
        limit=query.number('limit'),
        marker=query.text('marker'),
        sort_keys=query.texts('sort_keys'),
        sort_dir=query.text('sort_dir'),
        nested_depth=query.number('nested_depth'),
    )
    return call.about_stack(EngineApi.list_events, query=wanted)
