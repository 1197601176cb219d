"""Which states may follow which: tables, and the two functions through which every change of a state goes.

The diagrams in the documentation are drawn from these tables.
"""

from __future__ import annotations

from convergence.core.changes import ResourceChange, StackChange
from convergence.core.model import BEGINNINGS, PERFORMED, Action, Status
from convergence.core.operation_table import ACTIONS, Admission, Operation, State, answer
from convergence.core.rows import Resource, Stack

INIT: State = (Action.INIT, Status.COMPLETE)


def _following(action: Action, status: Status) -> frozenset[Action]:
    """Return the actions that a stack may begin.

    These are the actions that `convergence.core.operation_table` admits and, at rest, the actions that need no goal. A
    user must resume a suspended stack first; its parent need not.
    """
    begun = {Action.DELETE}
    if answer(action, status, Operation.UPDATE) is not Admission.BUSY:
        begun |= {Action.UPDATE, Action.RESTORE}
    if answer(action, status, Operation.ROLLBACK) in (Admission.BEGINS, Admission.ROLLS_BACK):
        begun.add(Action.ROLLBACK)
    if status is Status.IN_PROGRESS or action is Action.DELETE:
        return frozenset(begun)
    return frozenset(begun | (PERFORMED if action is not Action.SUSPEND else {Action.SUSPEND, Action.RESUME}))


def _stack_table() -> dict[State, frozenset[State]]:
    table: dict[State, frozenset[State]] = {}
    for action in ACTIONS:
        for status in Status:
            begun = {(following, Status.IN_PROGRESS) for following in _following(action, status)}
            ends = {(action, Status.COMPLETE), (action, Status.FAILED)} if status is Status.IN_PROGRESS else set()
            table[action, status] = frozenset(begun | ends)
    return table


STACK: dict[State, frozenset[State]] = _stack_table()

_DELETE_BEGINS: frozenset[State] = frozenset({(Action.DELETE, Status.IN_PROGRESS)})
_PERFORMED_BEGINS: frozenset[State] = frozenset((action, Status.IN_PROGRESS) for action in PERFORMED)
_MARKED: frozenset[State] = frozenset({(Action.CHECK, Status.FAILED), (Action.CHECK, Status.COMPLETE)})
"""What a person says of a resource, without anybody having looked."""


_IN_DOUBT: frozenset[State] = frozenset({(Action.UPDATE, Status.FAILED), (Action.SUSPEND, Status.FAILED)})
"""What the database has lost was done to the object all the same: the next update looks at it."""


def _after_success() -> frozenset[State]:
    return frozenset({(Action.UPDATE, Status.IN_PROGRESS)} | _PERFORMED_BEGINS | _MARKED | _DELETE_BEGINS | _IN_DOUBT)


def _in_progress(action: Action) -> frozenset[State]:
    # Begun anew: what failed for the moment is given up where something else is wanted by now.
    return frozenset({(action, status) for status in Status} | _DELETE_BEGINS)


def _performed() -> dict[State, frozenset[State]]:
    """An object to which something was done as it is can still be anything; what failed is tried again, or replaced."""
    table: dict[State, frozenset[State]] = {}
    begun_anew = {(action, Status.IN_PROGRESS) for action in BEGINNINGS}
    for action in PERFORMED:
        table[action, Status.IN_PROGRESS] = _in_progress(action) | {
            (Action.UPDATE, Status.IN_PROGRESS),
            *begun_anew,
        }
        table[action, Status.COMPLETE] = _after_success()
        table[action, Status.FAILED] = _after_success() | {
            (action, Status.COMPLETE),
            (action, Status.FAILED),
            *begun_anew,
        }
    return table


def _first() -> dict[State, frozenset[State]]:
    """What has failed was perhaps never there: then it may as well be taken over, or be made, next time."""
    table: dict[State, frozenset[State]] = {}
    for action in BEGINNINGS:
        table[action, Status.IN_PROGRESS] = _in_progress(action)
        table[action, Status.COMPLETE] = _after_success()
        table[action, Status.FAILED] = frozenset(
            {(begun, status) for begun in BEGINNINGS for status in (Status.IN_PROGRESS, Status.FAILED)}
            | {(action, Status.COMPLETE), (Action.UPDATE, Status.IN_PROGRESS), (Action.CHECK, Status.FAILED)}
            | _DELETE_BEGINS
        )
    return table


RESOURCE: dict[State, frozenset[State]] = {
    INIT: frozenset({(action, status) for action in BEGINNINGS for status in (Status.IN_PROGRESS, Status.FAILED)}),
    **_first(),
    (Action.UPDATE, Status.IN_PROGRESS): _in_progress(Action.UPDATE) | {INIT},
    (Action.UPDATE, Status.COMPLETE): _after_success(),
    (Action.UPDATE, Status.FAILED): frozenset(
        {(Action.UPDATE, Status.IN_PROGRESS), (Action.CHECK, Status.FAILED)} | _IN_DOUBT | _DELETE_BEGINS
    ),
    (Action.DELETE, Status.IN_PROGRESS): frozenset({(Action.DELETE, Status.FAILED)}),
    (Action.DELETE, Status.FAILED): _DELETE_BEGINS,
    **_performed(),
}
"""States of a resource row. A row whose deletion succeeds is removed."""


def stack_state(stack: Stack, action: Action, status: Status, reason: str) -> StackChange:
    """The columns that put `stack` into a state.

    :raises AssertionError: the table does not allow it; a defect of the engine.
    """
    assert (action, status) in STACK[stack.action, stack.status], f'{stack.action}_{stack.status} to {action}_{status}'
    return {'action': action, 'status': status, 'status_reason': reason}


def resource_state(resource: Resource, action: Action, status: Status, reason: str = '') -> ResourceChange:
    """The columns that put `resource` into a state.

    :raises AssertionError: the table does not allow it; a defect of the engine.
    """
    present = (resource.action, resource.status)
    assert (action, status) in RESOURCE[present], f'{resource.name}: {"_".join(present)} to {action}_{status}'
    return {'action': action, 'status': status, 'status_reason': reason}
