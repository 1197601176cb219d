"""Webhooks: addresses that receive events of stacks."""

from __future__ import annotations

from convergence import errors
from convergence.api.calls import ApiAnswer, ApiCall
from convergence.rpc.engine_api import EngineApi, Identity


def _stack(call: ApiCall, named: str | None) -> Identity | None:
    """Return the stack that a request names by name or id; None if it names none."""
    if named is None:
        return None
    return call.ask(EngineApi.identify_stack, stack_name=named)


def index(call: ApiCall) -> ApiAnswer:
    """List the webhooks of a project, or those of one stack."""
    found = call.ask(EngineApi.list_webhooks, stack_identity=_stack(call, call.query.text('stack')))
    return ApiAnswer({'webhooks': found})


def create(call: ApiCall) -> ApiAnswer:
    """Create a webhook for events of all stacks of a project, or of one. Only this answer has its key."""
    if not call.body['url']:
        raise errors.Invalid('A webhook needs a url.')
    made = call.ask(
        EngineApi.create_webhook,
        url=call.body['url'],
        name=call.body.get('name'),
        stack_identity=_stack(call, call.body.get('stack')),
    )
    return ApiAnswer({'webhook': made})


def show(call: ApiCall) -> ApiAnswer:
    """Show one webhook with the state of its deliveries."""
    return ApiAnswer({'webhook': call.ask(EngineApi.show_webhook, webhook_id=call.path['webhook_id'])})


def delete(call: ApiCall) -> ApiAnswer:
    """Delete a webhook."""
    call.ask(EngineApi.delete_webhook, webhook_id=call.path['webhook_id'])
    return ApiAnswer()


def test(call: ApiCall) -> ApiAnswer:
    """Send a test event to a webhook and show the result."""
    return ApiAnswer({'result': call.ask(EngineApi.test_webhook, webhook_id=call.path['webhook_id'])})
