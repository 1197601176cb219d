"""The resources of a stack."""

from __future__ import annotations

from convergence.api import views
from convergence.api.calls import ApiAnswer, ApiCall
from convergence.api.faults import bad_request
from convergence.api.queries import flag
from convergence.rpc.engine_api import EngineApi

FILTERS = ('type', 'status', 'name', 'action', 'id', 'physical_resource_id')
PARAMETERS = ('nested_depth', 'with_detail', 'limit', 'marker')


def index(call: ApiCall) -> ApiAnswer:
    """List the resources of a stack. An unknown parameter is refused, because it could be a misspelt filter."""
    unknown = [name for name in call.query.names() if name not in (*FILTERS, *PARAMETERS)]
    if unknown:
        raise bad_request(f'Invalid filter parameters {unknown}')
    with_detail = call.query.flag('with_detail')
    documents = call.about_stack(
        EngineApi.list_stack_resources,
        nested_depth=call.query.number('nested_depth') or 0,
        with_detail=with_detail,
        filters=call.query.filters(FILTERS) or None,
        limit=call.query.number('limit'),
        marker=call.query.text('marker'),
    )
    return ApiAnswer({'resources': [views.resource(call.base, each, with_detail=with_detail) for each in documents]})


def show(call: ApiCall) -> ApiAnswer:
    """Show one resource."""
    document = call.about_stack(
        EngineApi.describe_stack_resource,
        resource_name=call.path['resource_name'],
        with_attr=call.query.texts('with_attr'),
    )
    return ApiAnswer({'resource': views.resource(call.base, document)})


def metadata(call: ApiCall) -> ApiAnswer:
    """Show the metadata of a resource."""
    document = call.about_stack(EngineApi.describe_stack_resource, resource_name=call.path['resource_name'])
    return ApiAnswer({'metadata': document.get('metadata') or {}})


def signal(call: ApiCall) -> ApiAnswer:
    """Send a signal to a resource."""
    call.about_stack(EngineApi.resource_signal, resource_name=call.path['resource_name'], details=call.body)
    return ApiAnswer(None)


def mark_unhealthy(call: ApiCall) -> ApiAnswer:
    """Mark a resource as unhealthy, or clear the mark."""
    call.about_stack(
        EngineApi.resource_mark_unhealthy,
        resource_name=call.path['resource_name'],
        mark_unhealthy=flag('mark_unhealthy', call.body['mark_unhealthy']),
        resource_status_reason=call.body.get('resource_status_reason'),
    )
    return ApiAnswer(None)


def accept(call: ApiCall) -> ApiAnswer:
    """Accept drift: take the live values of ``properties``, or of all differing ones, as desired."""
    names = (call.body or {}).get('properties')
    document = call.about_stack(
        EngineApi.accept_drift, resource_name=call.path['resource_name'], properties=names or None
    )
    return ApiAnswer({'drift': document})


def withdraw(call: ApiCall) -> ApiAnswer:
    """Withdraw the acceptance of drift of a resource."""
    document = call.about_stack(EngineApi.withdraw_acceptance, resource_name=call.path['resource_name'])
    return ApiAnswer({'drift': document})


def repair(call: ApiCall) -> ApiAnswer:
    """Repair a resource: compare it and its dependents with the live objects, and correct differences."""
    call.about_stack(EngineApi.repair_resource, resource_name=call.path['resource_name'])
    return ApiAnswer(None)
