"""Webhooks: addresses that are told what happens to stacks."""

from __future__ import annotations

from convergence import errors
from convergence.api.calls import ApiAnswer, ApiCall
from convergence.rpc.engine_api import EngineApi, Identity


def _stack(call: ApiCall, named: str | None) -> Identity | None:
    """The stack that a request names by its name or id; None: it names none."""
    if named is None:
        return None
    return call.ask(EngineApi.identify_stack, stack_name=named)


def index(call: ApiCall) -> ApiAnswer:
    """The webhooks of a project, or those of one stack."""
    found = call.ask(EngineApi.list_webhooks, stack_identity=_stack(call, call.query.text('stack')))
    return ApiAnswer({'webhooks': found})


def create(call: ApiCall) -> ApiAnswer:
    """Have an address told what happens to the stacks of a project, or to one; the answer alone has its key."""
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
    """One webhook, and how telling it goes."""
    return ApiAnswer({'webhook': call.ask(EngineApi.show_webhook, webhook_id=call.path['webhook_id'])})


def delete(call: ApiCall) -> ApiAnswer:
    """Delete a webhook."""
    call.ask(EngineApi.delete_webhook, webhook_id=call.path['webhook_id'])
    return ApiAnswer()


def test(call: ApiCall) -> ApiAnswer:
    """Tell a webhook now that this is a test; how that went."""
    return ApiAnswer({'result': call.ask(EngineApi.test_webhook, webhook_id=call.path['webhook_id'])})
