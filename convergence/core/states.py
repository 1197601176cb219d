"""Which states may follow which: tables, and the two functions through which every change of a state goes.

The diagrams in the documentation are drawn from these tables.
"""

from __future__ import annotations

from typing import TypeAlias

from convergence.core.model import Action, Status
from convergence.core.rows import Resource, Stack

State: TypeAlias = tuple[Action, Status]

INIT: State = (Action.INIT, Status.COMPLETE)
GOALS = (Action.CREATE, Action.UPDATE, Action.ROLLBACK, Action.DELETE)


def _stack_table() -> dict[State, frozenset[State]]:
    """Any operation may follow any state except that nothing but another delete follows a delete."""
    table: dict[State, frozenset[State]] = {}
    for action in GOALS:
        following = {Action.DELETE} if action is Action.DELETE else {Action.UPDATE, Action.ROLLBACK, Action.DELETE}
        started = {(following_action, Status.IN_PROGRESS) for following_action in following}
        table[action, Status.IN_PROGRESS] = frozenset(
            started | {(action, Status.COMPLETE), (action, Status.FAILED)}
        )
        table[action, Status.FAILED] = frozenset(started)
        table[action, Status.COMPLETE] = frozenset(started)
    return table


STACK: dict[State, frozenset[State]] = _stack_table()

_DELETE_BEGINS: frozenset[State] = frozenset({(Action.DELETE, Status.IN_PROGRESS)})

RESOURCE: dict[State, frozenset[State]] = {
    INIT: frozenset({(Action.CREATE, Status.IN_PROGRESS), (Action.CREATE, Status.FAILED)}),
    (Action.CREATE, Status.IN_PROGRESS): frozenset(
        # Begun anew: what failed for the moment is given up where something else is wanted by now.
        {(Action.CREATE, Status.COMPLETE), (Action.CREATE, Status.FAILED), (Action.CREATE, Status.IN_PROGRESS)}
        | _DELETE_BEGINS
    ),
    (Action.CREATE, Status.COMPLETE): frozenset({(Action.UPDATE, Status.IN_PROGRESS)} | _DELETE_BEGINS),
    (Action.CREATE, Status.FAILED): frozenset(
        {
            (Action.CREATE, Status.IN_PROGRESS),
            (Action.CREATE, Status.COMPLETE),
            (Action.CREATE, Status.FAILED),
            (Action.UPDATE, Status.IN_PROGRESS),
        }
        | _DELETE_BEGINS
    ),
    (Action.UPDATE, Status.IN_PROGRESS): frozenset(
        {(Action.UPDATE, Status.COMPLETE), (Action.UPDATE, Status.FAILED), (Action.UPDATE, Status.IN_PROGRESS)}
        | _DELETE_BEGINS
    ),
    (Action.UPDATE, Status.COMPLETE): frozenset({(Action.UPDATE, Status.IN_PROGRESS)} | _DELETE_BEGINS),
    (Action.UPDATE, Status.FAILED): frozenset(
        {(Action.UPDATE, Status.IN_PROGRESS), (Action.UPDATE, Status.FAILED)} | _DELETE_BEGINS
    ),
    (Action.DELETE, Status.IN_PROGRESS): frozenset({(Action.DELETE, Status.FAILED)}),
    (Action.DELETE, Status.FAILED): _DELETE_BEGINS,
}
"""States of a resource row. A row whose deletion succeeds is removed."""


def stack_state(stack: Stack, action: Action, status: Status, reason: str) -> dict[str, object]:
    """The columns that put `stack` into a state.

    :raises AssertionError: the table does not allow it; a defect of the engine.
    """
    assert (action, status) in STACK[stack.action, stack.status], f'{stack.action}_{stack.status} to {action}_{status}'
    return {'action': action, 'status': status, 'status_reason': reason}


def resource_state(resource: Resource, action: Action, status: Status, reason: str = '') -> dict[str, object]:
    """The columns that put `resource` into a state.

    :raises AssertionError: the table does not allow it; a defect of the engine.
    """
    present = (resource.action, resource.status)
    assert (action, status) in RESOURCE[present], f'{resource.name}: {"_".join(present)} to {action}_{status}'
    return {'action': action, 'status': status, 'status_reason': reason}
