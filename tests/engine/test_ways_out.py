"""No state of a stack is a dead end: every operation, asked in every state, does what the table says."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from convergence import errors
from convergence.concurrency import Task
from convergence.core.failure import way_back
from convergence.core.model import Action, Status
from convergence.core.operation_table import ACTIONS, ADMISSIONS, Admission, Operation
from convergence.engine.reads.explain import ExplainReads
from convergence.resources.contract import InProgress
from tests.reality import goes_on

OLD = {'a': {'value': 'x', 'type': 'Test::Kept'}, 'b': {'value': 'x', 'type': 'Test::Kept', 'after': ['a']}}
NEW = {name: {**wanted, 'value': 'y'} for name, wanted in OLD.items()}
NEXT = {name: {**wanted, 'value': 'z'} for name, wanted in OLD.items()}


def begin(harness, action):
    """A stack in which an action has just begun; its id."""
    if action is Action.CREATE:
        return harness.create(OLD)
    stack = harness.created(OLD)
    identity = {'stack_id': stack}
    match action:
        case Action.ADOPT:
            data = harness.abandonment.abandon_stack(harness.context, identity)
            harness.run()
            args = {'adopt_stack_data': json.dumps(data)}
            return harness.stacks.create_stack(harness.context, 'again', None, args=args)['stack_id']
        case Action.UPDATE:
            harness.update(stack, NEW)
        case Action.ROLLBACK:
            harness.update(stack, NEW)
            harness.deliver()
            harness.cancel(stack, rollback=True)
            harness.deliver_cancels()
        case Action.DELETE:
            harness.delete(stack)
        case Action.RESTORE:
            snapshot = harness.snapshots.stack_snapshot(harness.context, identity)
            harness.run()
            harness.snapshots.stack_restore(harness.context, identity, snapshot['id'])
        case Action.SNAPSHOT:
            harness.snapshots.stack_snapshot(harness.context, identity)
        case Action.RESUME:
            harness.acted(stack, 'suspend')
            harness.act(stack, 'resume')
        case Action.SUSPEND | Action.CHECK:
            harness.act(stack, action.value.lower())
    return stack


def brought(harness, action, status):
    """A stack in a state; its id. An action in progress has done half of what it has to do."""
    stack = begin(harness, action)
    if status is Status.COMPLETE:
        harness.run()
    else:
        harness.deliver()
    if status is Status.FAILED:
        harness.cancel(stack, rollback=False)
        harness.run()
    assert harness.state(stack) == f'{action}_{status}', harness.stack(stack).status_reason
    return stack


def wanted_next(action, status):
    """What an update asks for. What is adopted late is believed to be as its template says."""
    return OLD if (action, status) == (Action.ADOPT, Status.FAILED) else NEXT


def ask(harness, stack, operation, wanted=NEXT):
    match operation:
        case Operation.UPDATE:
            harness.update(stack, wanted)
        case Operation.DELETE:
            harness.delete(stack)
        case Operation.ROLLBACK:
            harness.rollbacks.stack_rollback(harness.context, {'stack_id': stack})
        case Operation.CANCEL:
            harness.cancel(stack, rollback=True)
        case Operation.CANCEL_WITHOUT_ROLLBACK:
            harness.cancel(stack, rollback=False)


REFUSED = {
    Admission.BUSY: (errors.ActionInProgress, 'Wait for its end, or cancel it'),
    Admission.RESUME_FIRST: (errors.NotSupported, 'resume .* first'),
    Admission.AT_REST: (errors.NotSupported, 'only an operation in progress can be cancelled'),
    Admission.GONE: (errors.EntityNotFound, 'could not be found'),
}


def becomes(state, operation, answer):
    """The state in which a stack is at once."""
    if answer in (Admission.BEGINS, Admission.SUPERSEDES):
        return f'{operation.name}_IN_PROGRESS'
    if answer is Admission.ROLLS_BACK:
        return 'ROLLBACK_IN_PROGRESS'
    if answer is Admission.FAILS:
        return f'{state[0]}_FAILED'
    return '_'.join(state)


@pytest.mark.parametrize('operation', Operation)
@pytest.mark.parametrize('status', Status)
@pytest.mark.parametrize('action', ACTIONS)
def test_every_operation_in_every_state_does_what_the_table_says(harness, action, status, operation):
    """At once, and in the end; and whatever it was, the stack can be deleted afterwards, and leaves nothing."""
    stack = brought(harness, action, status)
    answer = ADMISSIONS[action, status][operation]
    if answer in REFUSED:
        error, text = REFUSED[answer]
        with pytest.raises(error, match=text):
            ask(harness, stack, operation, wanted_next(action, status))
    elif operation is Operation.ROLLBACK and answer is Admission.BEGINS and way_back(harness.stack(stack)) is None:
        with pytest.raises(errors.NotSupported, match='nothing to go back to'):
            ask(harness, stack, operation)
        answer = Admission.NOTHING
    else:
        ask(harness, stack, operation, wanted_next(action, status))
    assert harness.state(stack) == becomes((action, status), operation, answer)
    harness.run()
    stored = harness.stack(stack)
    assert stored.status is not Status.IN_PROGRESS
    if answer is Admission.FAILS:
        assert stored.status_reason == f'Stack {action} cancelled'
    if answer in (Admission.BEGINS, Admission.SUPERSEDES) and operation is Operation.UPDATE:
        values = {name: each['value'] for name, each in wanted_next(action, status).items()}
        harness.assert_converged(stack, values, 'UPDATE_COMPLETE')
    if answer is Admission.ROLLS_BACK and action is not Action.ADOPT:
        harness.assert_converged(stack, {} if action is Action.CREATE else {'a': 'x', 'b': 'x'}, 'ROLLBACK_COMPLETE')
    if stored.deleted_at is None:
        harness.delete(stack)
        harness.run()
    assert harness.state(stack) == 'DELETE_COMPLETE'
    assert harness.rows(stack) == []
    if action is not Action.ADOPT:  # what was offered and never taken stays with whom it belongs to
        assert harness.reality.values() == {}


@pytest.mark.parametrize('rollback', [True, False])
@pytest.mark.parametrize('action', [Action.CREATE, Action.DELETE, Action.ROLLBACK, Action.SUSPEND])
def test_what_hangs_is_told_that_it_is_cancelled(harness, action, rollback):
    """An action that goes on for ever is stopped by a cancel, with the first heartbeat afterwards, and told so once."""
    if (action, rollback) == (Action.ROLLBACK, True):
        return  # it goes back already
    verb = {Action.ROLLBACK: 'update'}.get(action, action.value.lower())
    name = 'b' if action in (Action.DELETE, Action.SUSPEND) else 'a'
    stack = begin(harness, action)
    harness.reality.once[verb, name] = [lambda call: InProgress({'round': 1})]
    harness.reality.always['poll', name] = goes_on()
    while harness.row(stack, name).progress is None:
        harness.deliver()
    harness.cancel(stack, rollback=rollback)
    harness.deliver_cancels()
    del harness.reality.always['poll', name]
    for row in harness.sweeps.parked_at_rest(10):  # with its next heartbeat a worker sees to these
        harness.workers[0]._parts.checks.interrupt(row, Task('interrupt'))
    harness.recover()
    assert harness.stack(stack).status is not Status.IN_PROGRESS
    back = rollback and action is Action.CREATE
    assert harness.state(stack) == ('ROLLBACK_COMPLETE' if back else f'{action}_FAILED')
    assert harness.reality.calls['cancel', name] == 1
    harness.delete(stack)
    harness.recover()
    harness.assert_converged(stack, {}, 'DELETE_COMPLETE')


def test_no_state_is_a_dead_end():
    """What goes on can be cancelled and deleted, what has failed can be updated and deleted, what is there deleted."""
    for (action, status), answers in ADMISSIONS.items():
        if (action, status) == (Action.DELETE, Status.COMPLETE):
            continue
        assert answers[Operation.DELETE] in (Admission.BEGINS, Admission.SUPERSEDES, Admission.NOTHING)
        if status is Status.IN_PROGRESS:
            assert answers[Operation.CANCEL_WITHOUT_ROLLBACK] is Admission.FAILS
            assert answers[Operation.CANCEL] in (Admission.ROLLS_BACK, Admission.FAILS, Admission.NOTHING)
        if status is Status.FAILED:
            assert answers[Operation.UPDATE] is Admission.BEGINS


def test_the_table_in_the_documentation_is_the_one_that_the_engine_asks():
    page = Path(__file__).parents[2] / 'docs' / 'states.rst'
    rows = re.findall(
        r'^   \* - ``(\w+)_(IN_PROGRESS|COMPLETE|FAILED)``\n((?:     - .*\n){5})', page.read_text(), re.MULTILINE
    )
    told = {
        (Action(action), Status(status)): dict(
            zip(Operation, (Admission(cell.strip()[2:]) for cell in cells.splitlines()), strict=True)
        )
        for action, status, cells in rows
    }
    assert told == ADMISSIONS


def test_a_patient_cancel_tells_what_it_waits_for_and_can_be_cut_short(harness):
    """What runs comes to its end, nothing else begins; ``now`` does not wait for it."""
    harness.reality.always['create', 'a'] = goes_on()
    stack = harness.create(OLD)
    harness.deliver()
    harness.cancel(stack, rollback=False, now=False)
    assert harness.state(stack) == 'CREATE_IN_PROGRESS'
    assert harness.stack(stack).status_reason.startswith('Stack CREATE cancelling: waits for a until ')
    explained = ExplainReads(harness.reader, harness.compiler).stack_explain(harness.context, {'stack_id': stack})
    assert explained['summary'].startswith('Stack CREATE cancelling: waits for a until ')
    assert [(node['resource_name'], node['state']) for node in explained['frontier']] == [('a', 'parked')]
    assert explained['traversal']['status'] == 'CANCELLING'
    assert 0 < explained['traversal']['deadline_in_s'] <= 600
    harness.cancel(stack, rollback=False, now=True)
    assert harness.state(stack) == 'CREATE_FAILED'
    harness.run()
    assert harness.reality.calls['create', 'b'] == 0
