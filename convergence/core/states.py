"""The allowed changes of states: two tables, and the two functions that make every change of a state.

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
"""States that a user sets by hand: he marks a resource as unhealthy or healthy."""


_IN_DOUBT: frozenset[State] = frozenset({(Action.UPDATE, Status.FAILED), (Action.SUSPEND, Status.FAILED)})
"""States after the database lost the end of an action: the object may have changed, so the next update compares it."""


def _after_success() -> frozenset[State]:
    return frozenset({(Action.UPDATE, Status.IN_PROGRESS)} | _PERFORMED_BEGINS | _MARKED | _DELETE_BEGINS | _IN_DOUBT)


def _in_progress(action: Action) -> frozenset[State]:
    # Also to IN_PROGRESS of the same action: it begins again if the goal has changed during a transient failure.
    return frozenset({(action, status) for status in Status} | _DELETE_BEGINS)


def _performed() -> dict[State, frozenset[State]]:
    """Return the states that may follow an action on an unchanged object, such as CHECK or SUSPEND.

    Any action may follow. A failed one is repeated, or the object is replaced.
    """
    table: dict[State, frozenset[State]] = {}
    begun_again = {(action, Status.IN_PROGRESS) for action in BEGINNINGS}
    for action in PERFORMED:
        table[action, Status.IN_PROGRESS] = _in_progress(action) | {
            (Action.UPDATE, Status.IN_PROGRESS),
            *begun_again,
        }
        table[action, Status.COMPLETE] = _after_success()
        table[action, Status.FAILED] = _after_success() | {
            (action, Status.COMPLETE),
            (action, Status.FAILED),
            *begun_again,
        }
    return table


def _first() -> dict[State, frozenset[State]]:
    """Return the states that may follow CREATE and ADOPT.

    A failed one may have left no object, so the next operation may create or adopt one.
    """
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
    """Return the columns that put `stack` into a state.

    :raises AssertionError: the table does not allow it; a defect of the engine.
    """
    assert (action, status) in STACK[stack.action, stack.status], f'{stack.action}_{stack.status} to {action}_{status}'
    return {'action': action, 'status': status, 'status_reason': reason}


def resource_state(resource: Resource, action: Action, status: Status, reason: str = '') -> ResourceChange:
    """Return the columns that put `resource` into a state.

    :raises AssertionError: the table does not allow it; a defect of the engine.
    """
    present = (resource.action, resource.status)
    assert (action, status) in RESOURCE[present], f'{resource.name}: {"_".join(present)} to {action}_{status}'
    return {'action': action, 'status': status, 'status_reason': reason}
