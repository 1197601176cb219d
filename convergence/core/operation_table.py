"""What a stack answers to an update, a delete, a rollback and a cancel, in every state: none is without a way out.

`ADMISSIONS` is the one place that says so. The engine asks it, and the table in the documentation is made from it.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum

from convergence.core.model import PERFORMED, Action, Status


class Operation(StrEnum):
    """What may be asked of a stack in any state. The cancels have the names that the API has for them."""

    UPDATE = 'update'
    DELETE = 'delete'
    ROLLBACK = 'rollback'
    CANCEL = 'cancel_update'
    CANCEL_WITHOUT_ROLLBACK = 'cancel_without_rollback'


class Admission(StrEnum):
    """What follows.

    * `BEGINS`: the operation begins. `SUPERSEDES`: it begins, and takes over from the one in progress.
    * `ROLLS_BACK`: the operation in progress is stopped, and the stack goes back to its last good template, or to
      nothing where it has none.
    * `FAILS`: the operation in progress is stopped, and the stack is in the failed state of its action.
    * `NOTHING`: what is asked for is under way already; nothing changes.
    * `BUSY`, `RESUME_FIRST`, `AT_REST`: refused, with a text that says what to do instead.
    * `GONE`: there is no such stack any more.
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
"""The actions that a rollback takes back."""


def _to_update(action: Action, status: Status) -> Admission:
    if status is Status.FAILED:
        return Admission.BEGINS
    if status is Status.COMPLETE:
        return Admission.RESUME_FIRST if action is Action.SUSPEND else Admission.BEGINS
    # Nobody deletes, suspends or adopts a stack by accident; a late update must not undo that by accident.
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
        # Whoever asks twice to go back wants to go back.
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
"""By state and operation."""


def answer(action: Action, status: Status, operation: Operation) -> Admission:
    """What a stack in a state answers to an operation."""
    return ADMISSIONS[action, status][operation]
