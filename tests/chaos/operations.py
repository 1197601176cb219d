"""The operations during which a process is killed: what each begins with, what it asks for and how it ends."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from tests.chaos.failpoints import Do, Rule
from tests.chaos.goals import changed, counted, twelve
from tests.chaos.installation import Installation, until
from tests.functional.cloud import Goal

FAILING: Goal = {**changed(), 'answer': {**changed()['answer'], 'fail': True}}


@dataclass(frozen=True)
class Operation:
    """One operation on the stack of twelve.

    :param begin: asks for it; told the stack's id, or the name of the stack that is to be made.
    :param state: how it ends.
    :param goal: what is real then; None: that depends on what was in the middle of what.
    :param exists: whether the stack is made before.
    :param rules: what goes wrong in every run of it, besides what is tried.
    :param mend: the goal of an update afterwards, which must succeed.
    """

    name: str
    begin: Callable[[Installation, str], str]
    state: str
    goal: Goal | None
    exists: bool = True
    rules: tuple[Rule, ...] = ()
    mend: Goal | None = None


def _create(installation: Installation, name: str) -> str:
    return installation.create(name, counted(twelve()))


def _update(goal: Goal, **args: object) -> Callable[[Installation, str], str]:
    def begin(installation: Installation, stack_id: str) -> str:
        installation.update(stack_id, counted(goal), **args)
        return stack_id

    return begin


def _delete(installation: Installation, stack_id: str) -> str:
    installation.delete(stack_id)
    return stack_id


def _waiting() -> Goal:
    """The update, with a resource in the middle that waits for a gate which nobody opens."""
    return {**changed(), 'server1': {**changed()['server1'], 'value': 's2', 'until': 'never'}}


def _reached(installation: Installation, stack_id: str) -> bool:
    rows = installation.rows(stack_id)
    return any(row.name == 'server1' and row.progress is not None for row in rows)


def _cancel(*, rollback: bool) -> Callable[[Installation, str], str]:
    def begin(installation: Installation, stack_id: str) -> str:
        installation.update(stack_id, counted(_waiting()))
        until(lambda: _reached(installation, stack_id) or _over(installation, stack_id), 'server1 is waited for')
        installation.cancel(stack_id, rollback=rollback)
        return stack_id

    return begin


def _cancel_patiently(installation: Installation, stack_id: str) -> str:
    """The resource in the middle takes a while, and comes to its end; nothing begins after it."""
    takes = {
        **changed(),
        'server1': {**changed()['server1'], 'value': 's2', 'takes': 8.0},
    }  # longer than a client waits before it asks again
    installation.update(stack_id, counted(takes))
    until(lambda: _reached(installation, stack_id) or _over(installation, stack_id), 'server1 is waited for')
    installation.cancel(stack_id, rollback=False, now=False)
    return stack_id


def _over(installation: Installation, stack_id: str) -> bool:
    return not installation.state(stack_id).endswith('IN_PROGRESS')


def _late(installation: Installation, stack_id: str) -> str:
    installation.update(stack_id, counted(_waiting()))
    until(lambda: _reached(installation, stack_id), 'server1 is waited for')
    installation.make_late(stack_id)
    return stack_id


OPERATIONS = (
    Operation('create', _create, 'CREATE_COMPLETE', twelve(), exists=False),
    Operation('update', _update(changed()), 'UPDATE_COMPLETE', changed()),
    Operation('rollback', _update(FAILING, disable_rollback=False), 'ROLLBACK_COMPLETE', twelve()),
    Operation('delete', _delete, 'DELETE_COMPLETE', {}),
    Operation('failure', _update(FAILING, disable_rollback=True), 'UPDATE_FAILED', None, mend=changed()),
    Operation('cancel', _cancel(rollback=False), 'UPDATE_FAILED', None, mend=changed()),
    Operation('cancel patiently', _cancel_patiently, 'UPDATE_FAILED', None, mend=changed()),
    Operation('cancel with rollback', _cancel(rollback=True), 'ROLLBACK_COMPLETE', twelve()),
    Operation('lateness', _late, 'UPDATE_FAILED', None, mend=changed()),
    Operation(
        'create without messages',
        _create,
        'CREATE_COMPLETE',
        twelve(),
        exists=False,
        rules=(Rule('all-are-lost', 'before send of *', Do.LOSE),),
    ),
    Operation(
        'create with a death',
        _create,
        'CREATE_COMPLETE',
        twelve(),
        exists=False,
        rules=(Rule('DEATH', 'after commit of Steps.begin:CREATE', Do.KILL, at=2),),
    ),
)
"""The four of everyday life, and seven in which more has gone wrong already when a process dies."""

REQUIRED = {
    'planning': 'commit of Traversals._accept:CREATE',
    'planning a rollback': 'commit of Traversals._accept:ROLLBACK',
    'checking': 'commit of Steps.begin:CREATE',
    'finishing': 'commit of Steps._finish:DONE',
    'replacing': 'commit of Steps.replace',
    'failing': 'commit of Steps._finish:FAILED',
    'failing the stack': 'commit of Traversals._fail:FAIL',
    'completing': 'commit of Dispatcher._conclude',
    'cancelling': 'commit of Traversals.stop',
    'cancelling patiently': 'commit of Traversals._wind_down',
    'ending a patient cancel': 'commit of Traversals._end_cancel',
    'ending what is late': 'commit of Traversals.time_out',
    'sweeping: election': 'commit of Sweeps.take_duty',
    'sweeping: waking': 'commit of Sweeps.undispatched',
    'sweeping: taking over': 'commit of SweepTasks._release:RELEASED',
    'sweeping: purging': 'commit of Sweeps._purge',
    'sending checks': 'send of check_resource',
    'sending failures': 'send of settle',
    'sending cancels': 'send of cancel',
}
"""What must be among the places that are tried, whatever the programs call the others. Where one of these is never
passed, it was renamed, or an operation that passes it is missing above."""
