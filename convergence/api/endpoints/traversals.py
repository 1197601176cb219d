"""Operations on a stack: explanation, drift, graph, history."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from convergence.api import views
from convergence.api.calls import ApiAnswer, ApiCall
from convergence.api.faults import bad_request
from convergence.drawing import FORMATS
from convergence.rpc.engine_api import EngineApi


def explain(call: ApiCall) -> ApiAnswer:
    """Explain the state of a stack and the steps that it waits for."""
    document = call.about_stack(EngineApi.stack_explain, nested_depth=call.query.number('nested_depth'))
    shown = _explanation(call.base, document)
    if 'nested' in shown:
        shown['nested'] = [_explanation(call.base, each) for each in shown['nested']]
    return ApiAnswer({'explanation': shown})


def _explanation(base: str, document: Mapping[str, Any]) -> dict[str, Any]:
    identity = document['stack_identity']
    shown = {'stack_id': identity['stack_id'], 'links': [views.link(base, identity, 'stack')], **document}
    del shown['stack_identity'], shown['stack_action']
    shown['stack_status'] = f'{document["stack_action"]}_{document["stack_status"]}'
    return shown


def drift(call: ApiCall) -> ApiAnswer:
    """Show the known drift of a stack."""
    document = call.about_stack(
        EngineApi.stack_drift,
        nested_depth=call.query.number('nested_depth'),
        with_healthy=call.query.flag('with_healthy'),
    )
    return ApiAnswer({'drift': document})


def observe(call: ApiCall) -> ApiAnswer:
    """Request an observation of all objects of a stack. The answer does not wait for it."""
    return ApiAnswer(
        {'drift': call.about_stack(EngineApi.observe_stack, nested_depth=call.query.number('nested_depth'))}
    )


def set_policy(call: ApiCall) -> ApiAnswer:
    """Set the drift policy of a stack: the reaction to drift."""
    return ApiAnswer({'drift': call.about_stack(EngineApi.set_drift_policy, policy=call.body['drift_policy'])})


def graph(call: ApiCall) -> ApiAnswer:
    """Show the resources of a stack with states and dependencies, as JSON or as a drawing."""
    form = call.query.text('format') or 'json'
    if form != 'json' and form not in FORMATS:
        raise bad_request(f'format must be json, {", ".join(FORMATS)}, not {form}')
    document = call.about_stack(EngineApi.stack_graph, nested_depth=call.query.number('nested_depth'))
    if form == 'json':
        return ApiAnswer({'graph': {'nodes': document['nodes'], 'edges': document['edges']}})
    content_type, draw = FORMATS[form]
    return ApiAnswer(draw(document), content_type=content_type)


def index(call: ApiCall) -> ApiAnswer:
    """List the operations on a stack, newest first."""
    asked = {name: call.query.number(name) for name in ('limit', 'nested_depth')}
    return ApiAnswer({'traversals': call.about_stack(EngineApi.list_traversals, **asked)})
