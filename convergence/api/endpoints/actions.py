"""Actions on a stack that do not change its goal."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from convergence.api.calls import ApiAnswer, ApiCall
from convergence.api.conditions import expected_traversal
from convergence.api.faults import bad_request
from convergence.rpc.engine_api import EngineApi

ACTIONS: Mapping[str, Callable[[ApiCall], object]] = {
    'suspend': lambda call: call.about_stack(EngineApi.stack_suspend),
    'resume': lambda call: call.about_stack(EngineApi.stack_resume),
    'check': lambda call: call.about_stack(EngineApi.stack_check),
    'rollback': lambda call: call.about_stack(EngineApi.stack_rollback, expected_traversal=expected_traversal(call)),
    'cancel_update': lambda call: call.about_stack(EngineApi.stack_cancel_update, cancel_with_rollback=True),
    'cancel_without_rollback': lambda call: call.about_stack(
        EngineApi.stack_cancel_update, cancel_with_rollback=False, now=_is_set(call, 'now')
    ),
}
"""The engine call of each action."""


def _is_set(call: ApiCall, flag: str) -> bool:
    """Return True if the value of the action is a map with a true flag; other values are ignored."""
    given = next(iter((call.body or {}).values()), None)
    return isinstance(given, Mapping) and given.get(flag) is True


def act(call: ApiCall) -> ApiAnswer:
    """Start an action. The body is a map with the action as its only key; its value holds the options, if any."""
    names = list(call.body or ())
    if not names:
        raise bad_request('No action specified')
    if len(names) > 1:
        raise bad_request('Multiple actions specified')
    if names[0] not in ACTIONS:
        raise bad_request(f'Invalid action {names[0]} specified')
    call.require(f'actions:{names[0]}')
    ACTIONS[names[0]](call)
    return ApiAnswer(None)
