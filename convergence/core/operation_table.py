"""The answer of a stack to an update, a delete, a rollback and a cancel, in every state. Every state has a way out.

The engine and the table in the documentation both use `ADMISSIONS`.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum

from convergence.core.model import PERFORMED, Action, Status


class Operation(StrEnum):
    """An operation that a user may request in any state of a stack. The cancels have the names of the API."""

    UPDATE = 'update'
    DELETE = 'delete'
    ROLLBACK = 'rollback'
    CANCEL = 'cancel_update'
    CANCEL_WITHOUT_ROLLBACK = 'cancel_without_rollback'


class Admission(StrEnum):
    """The consequence of a requested operation.

    * `BEGINS`: the operation begins.
    * `SUPERSEDES`: the operation begins and supersedes the one in progress.
    * `ROLLS_BACK`: the operation in progress stops, and the stack rolls back to its last good template, or to no
      resources if it has none.
    * `FAILS`: the operation in progress stops, and the stack gets the failed state of its action.
    * `NOTHING`: the requested operation is in progress already; nothing changes.
    * `BUSY`, `RESUME_FIRST`, `AT_REST`: the engine refuses the operation with a text that contains the remedy.
    * `GONE`: the stack does not exist any more.
    """

    BEGINS = 'begins'
    SUPERSEDES = 'supersedes'
    ROLLS_BACK = 'rolls back'
    FAILS = 'fails'
    NOTHING = 'nothing changes'
    BUSY = 'refused: cancel first'
    RESUME_FIRST = 'refused: resume first'
    AT_REST = 'refused: nothing to cancel'
    GONE = 'not found'


State = tuple[Action, Status]

_GOES_BACK = frozenset({Action.CREATE, Action.ADOPT, Action.UPDATE, Action.RESTORE})
"""The actions that a rollback reverts."""


def _to_update(action: Action, status: Status) -> Admission:
    if status is Status.FAILED:
        return Admission.BEGINS
    if status is Status.COMPLETE:
        return Admission.RESUME_FIRST if action is Action.SUSPEND else Admission.BEGINS
    # Users delete, suspend and adopt stacks on purpose; an update that arrives late must not undo that by accident.
    return Admission.BUSY if action in (Action.DELETE, Action.SUSPEND, Action.ADOPT) else Admission.SUPERSEDES


def _to_delete(action: Action, status: Status) -> Admission:
    if status is not Status.IN_PROGRESS:
        return Admission.BEGINS
    return Admission.NOTHING if action is Action.DELETE else Admission.SUPERSEDES


def _to_rollback(action: Action, status: Status) -> Admission:
    if status is not Status.IN_PROGRESS:
        return _to_update(action, status)
    if action is Action.ROLLBACK:
        return Admission.NOTHING
    return Admission.ROLLS_BACK if action in _GOES_BACK else Admission.BUSY


def _to_cancel(action: Action, status: Status) -> Admission:
    if status is not Status.IN_PROGRESS:
        return Admission.AT_REST
    if action is Action.ROLLBACK:
        # A user who requests the rollback twice still expects the rollback.
        return Admission.NOTHING
    return Admission.ROLLS_BACK if action in _GOES_BACK else Admission.FAILS


def _to_cancel_without_rollback(action: Action, status: Status) -> Admission:
    return Admission.FAILS if status is Status.IN_PROGRESS else Admission.AT_REST


_RULES = {
    Operation.UPDATE: _to_update,
    Operation.DELETE: _to_delete,
    Operation.ROLLBACK: _to_rollback,
    Operation.CANCEL: _to_cancel,
    Operation.CANCEL_WITHOUT_ROLLBACK: _to_cancel_without_rollback,
}

ACTIONS = (
    Action.CREATE,
    Action.ADOPT,
    Action.UPDATE,
    Action.RESTORE,
    Action.ROLLBACK,
    Action.DELETE,
    *sorted(PERFORMED),
)
"""The actions of a stack."""


def _table() -> dict[State, Mapping[Operation, Admission]]:
    table: dict[State, Mapping[Operation, Admission]] = {
        (action, status): {operation: rule(action, status) for operation, rule in _RULES.items()}
        for action in ACTIONS
        for status in Status
    }
    table[Action.DELETE, Status.COMPLETE] = dict.fromkeys(Operation, Admission.GONE)
    return table


ADMISSIONS: Mapping[State, Mapping[Operation, Admission]] = _table()
"""The answer of a stack by its state and the operation."""


def answer(action: Action, status: Status, operation: Operation) -> Admission:
    """Return the answer of a stack in a state to an operation."""
    return ADMISSIONS[action, status][operation]
