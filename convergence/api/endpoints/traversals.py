"""The operations on a stack: why it is as it is, what depends on what, and what was done before."""

from __future__ import annotations

from convergence.api import views
from convergence.api.calls import ApiAnswer, ApiCall
from convergence.api.faults import bad_request
from convergence.drawing import FORMATS
from convergence.rpc.engine_api import EngineApi


def explain(call: ApiCall) -> ApiAnswer:
    """Why a stack is as it is, and what it waits for."""
    document = dict(call.about_stack(EngineApi.stack_explain))
    identity = document.pop('stack_identity')
    action = document.pop('stack_action')
    document['stack_status'] = f'{action}_{document["stack_status"]}'
    shown = {'stack_id': identity['stack_id'], 'links': [views.link(call.base, identity, 'stack')], **document}
    return ApiAnswer({'explanation': shown})


def graph(call: ApiCall) -> ApiAnswer:
    """The resources of a stack with their states, and what needs what: as JSON, or drawn."""
    form = call.query.text('format') or 'json'
    if form != 'json' and form not in FORMATS:
        raise bad_request(f'format must be json, {", ".join(FORMATS)}, not {form}')
    document = call.about_stack(EngineApi.stack_graph)
    if form == 'json':
        return ApiAnswer({'graph': {'nodes': document['nodes'], 'edges': document['edges']}})
    content_type, draw = FORMATS[form]
    return ApiAnswer(draw(document), content_type=content_type)


def index(call: ApiCall) -> ApiAnswer:
    """The operations on a stack, the newest first."""
    return ApiAnswer({'traversals': call.about_stack(EngineApi.list_traversals, limit=call.query.number('limit'))})
