"""Section C of the catalogue of failures: which traversal counts, and writes that name what they replace."""

import threading

import pytest
from sqlalchemy import event, func, select

from convergence import errors
from convergence.db.schema.models import EVENT, RESOURCE, STACK, SYNC_POINT, TEMPLATE, TRAVERSAL
from convergence.db.scopes import StackAlone, WholeStack
from convergence.resources.contract import FinalFailure
from tests.harness import hot, things
from tests.reality import fails, meanwhile

OLD = {'r': 'old'}
NEW = {'r': 'new'}
BROKEN = FinalFailure('broken')


def count(harness, table):
    """Rows of a table."""
    with harness.store.reading() as connection:
        return connection.execute(select(func.count()).select_from(table)).scalar_one()


def test_of_simultaneous_updates_the_last_accepted_is_what_becomes_real(harness):
    """F042: one wins each generation, and the others leave nothing."""
    stack = harness.created(OLD)
    problems = []

    def update(number):
        try:
            harness.update(stack, {'r': f'v{number}'})
        except Exception as error:  # noqa: BLE001 - shown by the assertion below
            problems.append(error)

    threads = [threading.Thread(target=update, args=(number,)) for number in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert problems == []
    current = harness.stack(stack)
    wanted = harness.reader.template(current.template_id).content['template']
    harness.run()
    (value,) = harness.reality.values().values()
    assert f'value: {value}' in wanted
    harness.assert_converged(stack, {'r': value}, 'UPDATE_COMPLETE')
    harness.sweep()
    assert count(harness, TEMPLATE) == 2  # the present one, and that which was complete before it
    assert count(harness, SYNC_POINT) == 0
    statuses = sorted(traversal.status.value for traversal in harness.reader.traversals(stack))
    assert statuses == ['COMPLETE', 'COMPLETE', *['SUPERSEDED'] * 5]


def test_the_rollback_goes_to_the_good_template_however_often_it_is_asked_for(harness):
    """F044, F104: a worker reports the failure, the sweeper finds it, the user cancels: one rollback, to T0."""
    stack = harness.created(OLD)
    harness.reality.once['update', 'r'] = [fails(BROKEN)]
    failed = harness.update(stack, NEW, disable_rollback=False)
    harness.settling = False
    harness.run()
    harness.settling = True
    for _ in range(3):
        harness.settle(stack, failed)
        harness.sweep()
    harness.cancel(stack, rollback=True)
    harness.run()
    harness.assert_converged(stack, OLD, 'ROLLBACK_COMPLETE')
    assert len(harness.reader.traversals(stack)) == 3


def test_a_late_check_of_a_complete_traversal_cannot_fail_it(harness):
    """F044b: delivered again, with a plugin that would fail: nothing happens, nothing is deleted."""
    stack = harness.created(OLD)
    traversal = harness.update(stack, NEW, disable_rollback=False)
    harness.run()
    harness.reality.always = {(verb, 'r'): fails(BROKEN) for verb in ('create', 'update', 'delete')}
    for number in range(5):
        harness.check(traversal, number)
    harness.settle(stack, traversal)
    harness.sweep()
    harness.assert_converged(stack, NEW, 'UPDATE_COMPLETE')


def test_a_cancel_that_comes_just_too_late_is_refused(harness):
    """F044c: the update completes, and its old template goes, between the cancel's look and its lock."""
    stack = harness.created(OLD)
    harness.update(stack, NEW)
    harness.store.before(WholeStack, harness.run)
    with pytest.raises(errors.NotSupported, match='UPDATE_COMPLETE'):
        harness.cancel(stack, rollback=True)
    harness.assert_converged(stack, NEW, 'UPDATE_COMPLETE')


def test_a_cancel_whose_template_goes_while_it_is_read_is_refused(harness):
    """F044c: the same, a moment earlier: after the stack was read, before its last good template is."""
    stack = harness.created(OLD)
    harness.update(stack, NEW)
    read = harness.reader.template
    harness.compiler.cache.clear()

    def too_late(template_id):
        harness.reader.template = read
        harness.run()
        return read(template_id)

    harness.reader.template = too_late
    with pytest.raises(errors.NotSupported, match='UPDATE_COMPLETE'):
        harness.cancel(stack, rollback=True)
    harness.assert_converged(stack, NEW, 'UPDATE_COMPLETE')


@pytest.mark.parametrize('rollback', [True, False])
def test_a_cancel_without_rollback_that_comes_too_late_is_refused(harness, rollback):
    """F100: and the next operation works."""
    stack = harness.created(OLD)
    harness.update(stack, NEW)
    harness.store.before(WholeStack if rollback else StackAlone, harness.run)
    with pytest.raises(errors.NotSupported):
        harness.cancel(stack, rollback=rollback)
    harness.update(stack, {'r': 'third'})
    harness.run()
    harness.assert_converged(stack, {'r': 'third'}, 'UPDATE_COMPLETE')


def test_nobody_ever_sees_a_final_state_that_is_not_final(harness):
    """F045: the process is gone between the failure and the rollback; until then the stack is in progress."""
    stack = harness.created(OLD)
    harness.reality.once['update', 'r'] = [fails(BROKEN)]
    harness.update(stack, NEW, disable_rollback=False)
    harness.settling = False
    harness.run()
    assert harness.state(stack) == 'UPDATE_IN_PROGRESS'
    harness.restart()
    harness.settling = True
    harness.recover()
    harness.assert_converged(stack, OLD, 'ROLLBACK_COMPLETE')
    assert harness.events(stack) == [
        'CREATE_IN_PROGRESS',
        'CREATE_COMPLETE',
        'UPDATE_IN_PROGRESS',
        'ROLLBACK_IN_PROGRESS',
        'ROLLBACK_COMPLETE',
    ]


def test_an_outdated_worker_says_nothing_about_the_stack(harness):
    """F046: its late failure is no event of the stack."""
    stack = harness.created(OLD)
    broken = fails(BROKEN)
    before = meanwhile(lambda: harness.update(stack, {'r': 'third'}), harness.run)
    harness.reality.once['update', 'r'] = [lambda call: before(call) or broken(call)]
    harness.update(stack, NEW)
    harness.run()
    harness.assert_converged(stack, {'r': 'third'}, 'UPDATE_COMPLETE')
    assert 'UPDATE_FAILED' in harness.events(stack, 'r')
    assert harness.events(stack)[2:] == ['UPDATE_IN_PROGRESS', 'UPDATE_IN_PROGRESS', 'UPDATE_COMPLETE']


class Refused(Exception):
    """A statement was refused."""


def test_a_plan_that_fails_at_any_statement_leaves_nothing(harness):
    """F034, F047, F138: each statement in turn is the one that fails; the stack is as before, the next update works."""
    stack = harness.created({'r': 'old', 'gone': 'x'})
    wanted = {'r': {'value': 'new', 'key': 'k'}, 's': {'value': 'x', 'after': ['r']}}
    tables = (STACK, TEMPLATE, TRAVERSAL, SYNC_POINT, RESOURCE, EVENT)
    before = [count(harness, table) for table in tables], harness.stack(stack), harness.rows(stack)
    seen = {'statements': 0, 'refuse': 0}

    def statement(*arguments):
        seen['statements'] += 1
        if seen['statements'] == seen['refuse']:
            raise Refused('no')

    event.listen(harness.engine, 'before_cursor_execute', statement)
    try:
        for number in range(3, 200):
            seen.update(statements=0, refuse=number)
            try:
                harness.stacks.update_stack(harness.context, {'stack_id': stack}, hot(wanted))
            except Exception as error:  # noqa: BLE001 - the database layer wraps it
                assert str(error) == 'no'
                seen.update(statements=0, refuse=0)
                assert (
                    [count(harness, table) for table in tables],
                    harness.stack(stack),
                    harness.rows(stack),
                ) == before
            else:
                break
    finally:
        event.remove(harness.engine, 'before_cursor_execute', statement)
    assert number > 10
    harness.run()
    harness.assert_converged(stack, {'r': 'new', 's': 'x'}, 'UPDATE_COMPLETE')


def test_the_loser_of_a_race_for_a_name_leaves_no_litter(harness):
    """F047, F135: the other one is stored between the look and the write."""
    harness.reader.stack_named = lambda project_id, name: None
    harness.created(OLD)
    before = [count(harness, table) for table in (STACK, TEMPLATE, TRAVERSAL, SYNC_POINT, RESOURCE, EVENT)]
    with pytest.raises(errors.StackExists, match='already exists'):
        harness.create(NEW)
    assert before == [count(harness, table) for table in (STACK, TEMPLATE, TRAVERSAL, SYNC_POINT, RESOURCE, EVENT)]


def test_both_of_two_updates_are_accepted_and_the_second_counts(harness):
    """F047b: nothing that was accepted is dropped without a word: the history says what became of the first."""
    stack = harness.created(OLD)
    first = harness.update(stack, NEW)
    second = harness.update(stack, {'r': 'third'})
    harness.run()
    harness.assert_converged(stack, {'r': 'third'}, 'UPDATE_COMPLETE')
    assert second in harness.reader.traversal(first).reason
    assert harness.reader.traversal(first).status == 'SUPERSEDED'


def test_a_failing_update_is_rolled_back_and_purged(harness):
    """F048: and what it had made is gone."""
    stack = harness.created(OLD)
    harness.reality.once['create', 'bad'] = [fails(BROKEN)]
    harness.update(stack, {'r': 'new', 's': 'x', 'bad': {'value': 'x', 'after': ['s', 'r']}}, disable_rollback=False)
    harness.run()
    harness.assert_converged(stack, OLD, 'ROLLBACK_COMPLETE')
    harness.sweep()
    assert (count(harness, SYNC_POINT), count(harness, TEMPLATE)) == (0, 1)


def test_the_events_of_an_operation_are_start_pairs_and_end(harness):
    """F049: none missing, none twice."""
    stack = harness.created({'r': 'old', 's': {'value': 'x', 'key': '1', 'after': ['r']}, 'gone': 'x'})
    harness.update(stack, {'r': 'new', 's': {'value': 'x', 'key': '2', 'after': ['r']}})
    harness.run()
    harness.delete(stack)
    harness.run()

    def pair(action):
        return [f'{action}_IN_PROGRESS', f'{action}_COMPLETE']

    # Between the two of the update: that everything wanted is up, and what is still to be removed.
    assert harness.events(stack) == [*pair('CREATE'), 'UPDATE_IN_PROGRESS', *pair('UPDATE'), *pair('DELETE')]
    assert harness.events(stack, 'r') == [*pair('CREATE'), *pair('UPDATE'), *pair('DELETE')]
    assert harness.events(stack, 's') == [*pair('CREATE'), *pair('CREATE'), *pair('DELETE'), *pair('DELETE')]
    assert harness.events(stack, 'gone') == [*pair('CREATE'), *pair('DELETE')]


def test_columns_that_an_operation_does_not_own_survive_its_end(harness):
    """F050: no write of a whole row."""
    stack = harness.create(OLD)
    with harness.store.writing() as connection:
        connection.execute(STACK.update().values(tags=('mine',)))
        connection.commit()
    harness.run()
    assert harness.stack(stack).tags == ('mine',)
    harness.assert_converged(stack, OLD, 'CREATE_COMPLETE')


def test_after_a_failure_no_further_node_starts(harness):
    """F051: and the nodes of the traversal are removed."""
    names = [f'n{number}' for number in range(8)]
    harness.reality.once['create', 'n0'] = [fails(BROKEN)]
    stack = harness.create(things(names))
    harness.run()
    assert harness.state(stack) == 'CREATE_FAILED'
    assert [name for name in names if harness.reality.calls['create', name]] == ['n0']
    harness.recover()
    assert count(harness, SYNC_POINT) == 0


@pytest.mark.parametrize('running', ['create', 'update', 'delete', 'rollback'])
@pytest.mark.parametrize('asked', ['update', 'delete', 'cancel', 'cancel with rollback'])
def test_an_operation_during_another_is_refused_or_ends_in_truth(harness, running, asked):
    """F052, F194, F096: each pair, with the running one half-way."""
    stack = harness.create({'r': 'old', 's': {'value': 'x', 'after': ['r']}})
    if running == 'create':
        harness.deliver()
    else:
        harness.run()
        if running == 'delete':
            harness.delete(stack)
        else:
            harness.update(stack, {'r': 'new', 's': {'value': 'y', 'after': ['r']}})
        harness.deliver()
        if running == 'rollback':
            harness.cancel(stack, rollback=True)
            harness.deliver_cancels()
    wanted = {
        'update': lambda: harness.update(stack, {'r': 'third', 't': 'x'}),
        'delete': lambda: harness.delete(stack),
        'cancel': lambda: harness.cancel(stack, rollback=False),
        'cancel with rollback': lambda: harness.cancel(stack, rollback=True),
    }
    if (running, asked) == ('delete', 'update'):
        with pytest.raises(errors.ActionInProgress, match='or cancel it'):
            wanted[asked]()
        harness.run()
        assert harness.state(stack) == 'DELETE_COMPLETE'
        return
    wanted[asked]()
    harness.run()
    if asked == 'update':
        harness.assert_converged(stack, {'r': 'third', 't': 'x'}, 'UPDATE_COMPLETE')
    elif asked == 'delete':
        harness.assert_converged(stack, {}, 'DELETE_COMPLETE')
    elif asked == 'cancel' or running == 'delete':
        assert harness.state(stack) == f'{running.upper()}_FAILED'
        assert 'cancelled' in harness.stack(stack).status_reason
        harness.delete(stack)
        harness.run()
        harness.assert_converged(stack, {}, 'DELETE_COMPLETE')
    else:
        before = {} if running == 'create' else {'r': 'old', 's': 'x'}
        harness.assert_converged(stack, before, 'ROLLBACK_COMPLETE')


def test_a_rollback_that_cannot_be_had_fails_the_stack(harness):
    """F045: the good template cannot be read any more; the stack must not stay in progress for ever."""
    stack = harness.created(OLD)
    harness.reality.once['update', 'r'] = [fails(BROKEN)]
    harness.update(stack, NEW, disable_rollback=False)

    def unreadable(*arguments):
        raise errors.StackValidationFailed('its language is not understood any more')

    harness.compiler.stored = unreadable
    harness.run()
    assert harness.state(stack) == 'UPDATE_FAILED'
    assert 'resources.r: broken' in harness.stack(stack).status_reason
    assert 'not understood any more' in harness.stack(stack).status_reason
    harness.update(stack, NEW)
    harness.run()
    harness.assert_converged(stack, NEW, 'UPDATE_COMPLETE')
