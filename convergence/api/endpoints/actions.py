"""What can be done with a stack besides giving it a goal."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from convergence.api.calls import Answer, Call
from convergence.api.faults import bad_request

ACTIONS: Mapping[str, tuple[str, Mapping[str, Any]]] = {
    'suspend': ('stack_suspend', {}),
    'resume': ('stack_resume', {}),
    'check': ('stack_check', {}),
    'cancel_update': ('stack_cancel_update', {'cancel_with_rollback': True}),
    'cancel_without_rollback': ('stack_cancel_update', {'cancel_with_rollback': False}),
}
"""The operation and its arguments by the name of the action."""


def act(call: Call) -> Answer:
    """Begin an action. The body is a map with the action as its only key; what stands there does not matter."""
    names = list(call.body or ())
    if not names:
        raise bad_request('No action specified')
    if len(names) > 1:
        raise bad_request('Multiple actions specified')
    if names[0] not in ACTIONS:
        raise bad_request(f'Invalid action {names[0]} specified')
    call.require(f'actions:{names[0]}')
    operation, arguments = ACTIONS[names[0]]
    call.about_stack(operation, **arguments)
    return Answer(None)
