"""Section B of the catalogue of failures: crashes, locks, orphans."""

import random

import pytest

from convergence.db.schema.models import RESOURCE
from convergence.db.scopes import HeldResource, OneNode
from convergence.resources.contract import Done, FinalFailure, InProgress, ReplacementNeeded, TransientFailure
from convergence.worker.attempts.attempt import PollPolicy
from convergence.worker.checks.unsaved_results import REFUSALS
from tests.harness import Crash, Harness, things
from tests.reality import fails, makes_then, meanwhile, starts


def crashing(harness):
    """The process is gone in the middle of a plugin's call: nothing it does afterwards is seen by anybody."""

    def crash():
        harness.store.dead = True
        raise Crash

    return crash


def run_and_crash(harness):
    """Deliver until the process is gone."""
    with pytest.raises(Crash):
        harness.run()
    harness.restart()


def test_a_delete_during_a_create_removes_the_object_that_is_made_meanwhile(harness):
    """F020, F085: the deleting traversal reads the whole row again when the row is free, physical id included."""
    ids = []
    harness.reality.once['create', 'r'] = [meanwhile(lambda: harness.delete(ids[0]), harness.run)]
    ids.append(harness.create({'r': 'x'}))
    harness.run()
    harness.assert_converged(ids[0], {}, 'DELETE_COMPLETE')
    assert harness.reality.calls['delete', 'r'] == 1


@pytest.mark.parametrize('kind', ['Test::Thing', 'Test::Enforced'])
def test_a_worker_wrongly_taken_for_dead_cannot_overwrite_its_successor(harness, kind):
    """F021: it has made its object, and comes back when another worker has finished the node."""
    ids = []

    def suspected():
        harness.die(harness.workers[0])
        harness.workers.reverse()
        harness.recover()
        harness.assert_converged(ids[0], {'r': 'x'}, 'CREATE_COMPLETE')

    harness.reality.once['create', 'r'] = [makes_then(harness.reality, suspected)]
    ids.append(harness.create({'r': {'value': 'x', 'type': kind}}))
    harness.deliver()
    harness.assert_converged(ids[0], {'r': 'x'}, 'CREATE_COMPLETE')


def paused_before_it_makes_anything(harness, kind):
    """The old owner is paused just before it makes the object, long enough for another to take over."""
    ids = []
    harness.reality.once['create', 'r'] = [
        meanwhile(lambda: harness.die(harness.workers[0]), harness.workers.reverse, harness.recover)
    ]
    ids.append(harness.create({'r': {'value': 'x', 'type': kind}}))
    harness.deliver()
    harness.recover()
    return ids[0]


def test_an_object_made_late_is_the_same_one_where_the_service_enforces_the_token(harness):
    """F021, F027: whoever comes second gets what the first one made."""
    stack = paused_before_it_makes_anything(harness, 'Test::Enforced')
    harness.assert_converged(stack, {'r': 'x'}, 'CREATE_COMPLETE')


def test_an_object_made_late_is_tracked_and_removed(harness):
    """F021, F027: the write is refused, but nothing real may be lost sight of; the next operation cleans it up."""
    stack = paused_before_it_makes_anything(harness, 'Test::Thing')
    assert {row.physical_id for row in harness.rows(stack)} >= set(harness.reality.objects)
    harness.update(stack, {'r': {'value': 'x'}})
    harness.recover()
    harness.assert_converged(stack, {'r': 'x'}, 'UPDATE_COMPLETE')


def test_a_worker_that_lives_is_left_alone_however_slow_it_is(harness):
    """F022: the lease decides, not an answer that is late."""
    harness.reality.once['create', 'r'] = [meanwhile(harness.sweep, harness.run, harness.sweep, harness.run)]
    stack = harness.created({'r': 'x'})
    assert harness.reality.calls['create', 'r'] == 1
    assert harness.row(stack, 'r').fence == 1


def test_an_update_takes_over_from_a_dead_owner(harness):
    """F023: what the owner had half made does not remain."""
    harness.reality.once['create', 'r'] = [makes_then(harness.reality, crashing(harness))]
    stack = harness.create({'r': 'x'})
    run_and_crash(harness)
    harness.update(stack, {'r': {'value': 'y', 'key': 'k'}})
    harness.recover()
    harness.assert_converged(stack, {'r': 'y'}, 'UPDATE_COMPLETE')


@pytest.mark.parametrize('seed', range(6))
def test_a_stack_outlives_the_death_of_all_workers_at_any_step(harness, seed):
    """F024: nobody has to notice, ask or help."""
    chance = random.Random(seed)
    names = [f'n{number}' for number in range(20)]
    resources = {
        name: {'value': 'x', 'after': chance.sample(names[:number], min(number, 2))}
        for number, name in enumerate(names)
    }
    stack = harness.create(resources)
    for _ in range(3):
        harness.store.crash_after = harness.store.commits + chance.randrange(1, 15)
        run_and_crash(harness)
        harness.sweep()
    harness.recover()
    harness.assert_converged(stack, dict.fromkeys(names, 'x'), 'CREATE_COMPLETE')


@pytest.mark.parametrize('kind', ['Test::Thing', 'Test::Enforced'])
def test_an_object_whose_id_was_never_stored_is_found_again(harness, kind):
    """F027: the crash comes just between making it and saying so."""
    harness.reality.once['create', 'r'] = [makes_then(harness.reality, crashing(harness))]
    stack = harness.create({'r': {'value': 'x', 'type': kind}})
    run_and_crash(harness)
    harness.recover()
    harness.assert_converged(stack, {'r': 'x'}, 'CREATE_COMPLETE')
    assert harness.reality.calls['create', 'r'] == 1


def test_an_object_whose_id_was_never_stored_is_found_by_the_delete(harness):
    """F027, F085: the same, and nobody wants it any more."""
    harness.reality.once['create', 'r'] = [makes_then(harness.reality, crashing(harness))]
    stack = harness.create({'r': 'x'})
    run_and_crash(harness)
    harness.delete(stack)
    harness.recover()
    harness.assert_converged(stack, {}, 'DELETE_COMPLETE')


def test_a_create_that_was_about_to_begin_is_refused_when_its_row_has_been_cleaned_up(harness):
    """F028, F029: the row was never begun, so its cleanup removes it; the late message finds nothing to do."""
    stack = harness.create({'r': 'x', 'q': 'x'})
    late = harness.node(stack, 'r')
    harness.update(stack, {'q': 'x'})
    harness.store.before(OneNode, harness.run)
    harness.check(*late)
    harness.run()
    harness.check(*late)
    harness.assert_converged(stack, {'q': 'x'}, 'UPDATE_COMPLETE')
    assert harness.reality.calls['create', 'r'] == 0


CALLS = {
    'create': ('create', {'r': 'x'}),
    'reference': ('reference', {'r': 'x'}),
    'update': ('update', {'r': 'y'}),
    'compare': ('compare', {'r': 'y'}),
    'delete': ('delete', {}),
}
ERRORS = [
    FinalFailure('wrong'),
    TransientFailure('wrong'),
    RuntimeError('wrong'),
    KeyError('wrong'),
    SystemExit('wrong'),
    KeyboardInterrupt('wrong'),
    GeneratorExit('wrong'),
    AssertionError('wrong'),
    ValueError('wrong \x00 \ud800'),
]


@pytest.mark.parametrize('error', ERRORS, ids=lambda error: type(error).__name__)
@pytest.mark.parametrize('call', CALLS)
def test_whatever_a_type_raises_fails_the_stack_with_its_text(harness, call, error):
    """F033, F034: and does not end the worker, keep the row or keep the next operation from working."""
    verb, resources = CALLS[call]
    first = {'r': 'x'}
    stack = harness.created(first) if resources != first else None
    harness.reality.always[verb, 'r'] = fails(error)
    if stack is None:
        stack = harness.create(resources)
    elif resources:
        harness.update(stack, resources)
    else:
        harness.delete(stack)
    harness.run()
    harness.assert_quiet()
    assert harness.state(stack).endswith('_FAILED')
    assert 'wrong' in harness.stack(stack).status_reason
    harness.reality.always.clear()
    harness.delete(stack)
    harness.recover()
    harness.assert_converged(stack, {}, 'DELETE_COMPLETE')


@pytest.mark.parametrize('verb', ['create', 'delete'])
def test_a_type_that_asks_for_replacement_where_there_is_nothing_to_replace_has_failed(harness, verb):
    """F033: only an update may ask for it; otherwise the node would be tried for ever."""
    harness.reality.always[verb, 'r'] = fails(ReplacementNeeded('wrong'))
    stack = harness.create({'r': 'x'})
    harness.run()
    harness.delete(stack)
    harness.recover()
    if verb == 'delete':
        assert harness.state(stack) == 'DELETE_FAILED'
        assert 'wrong' in harness.stack(stack).status_reason
        harness.reality.always.clear()
        harness.delete(stack)
        harness.run()
    assert harness.reality.calls['create', 'r'] == 1
    harness.assert_converged(stack, {}, 'DELETE_COMPLETE')


def answers(harness):
    """Answers that cannot be stored, or are none."""
    make = harness.reality.make
    return {
        'nothing': lambda call: 'done',
        'data': lambda call: Done(make(call), {'x': object()}),
        'not a number': lambda call: Done(make(call), {'x': float('nan')}),
        'half a character': lambda call: Done(make(call), {'x': '\ud800'}),
        'progress': lambda call: InProgress({'x': {1, 2}}, make(call)),
        'id': lambda call: Done({'id': make(call)}),
    }


@pytest.mark.parametrize('kind', ['nothing', 'data', 'not a number', 'half a character', 'progress', 'id'])
def test_an_answer_that_cannot_be_stored_fails_the_resource(harness, kind):
    """F026, F033: the row must not stay locked by a worker that lives."""
    harness.reality.once['create', 'r'] = [answers(harness)[kind]]
    stack = harness.create({'r': 'x'})
    harness.run()
    harness.assert_quiet()
    assert harness.state(stack) == 'CREATE_FAILED'
    assert 'resources.r' in harness.stack(stack).status_reason
    harness.delete(stack)
    harness.recover()
    harness.assert_converged(stack, {}, 'DELETE_COMPLETE')


def refuse():
    """What a database may do to a transaction."""
    raise RuntimeError('the disk is full')


def test_a_result_that_could_not_be_stored_is_kept_and_stored_later(harness):
    """F026: the database refuses the last write once; the row does not stay with a worker that does nothing for it."""
    stack = harness.create({'r': 'x'})
    harness.store.before(HeldResource, refuse)
    harness.deliver()
    harness.assert_quiet()
    harness.assert_converged(stack, {'r': 'x'}, 'CREATE_COMPLETE')
    assert harness.reality.calls['create', 'r'] == 1


def test_a_row_that_could_not_even_be_given_back_is_missed(harness):
    """F026: its owner lives, so nobody takes it away; but the owner notices that nothing works on it."""
    stack = harness.create({'r': 'x'})
    for _ in range(2 * REFUSALS + 1):  # the result, its object alone, and that the row is given back
        harness.store.before(HeldResource, refuse)
    with pytest.raises(RuntimeError):
        harness.deliver()
    assert harness.row(stack, 'r').owner == harness.workers[0].id
    harness.workers[0].reconcile()
    harness.workers[0].reconcile()
    harness.run()
    harness.assert_converged(stack, {'r': 'x'}, 'CREATE_COMPLETE')
    assert harness.reality.calls['create', 'r'] == 1


@pytest.mark.parametrize('error', [FinalFailure('unreadable'), SystemExit('unreadable'), RuntimeError('unreadable')])
def test_an_attribute_that_cannot_be_read_fails_only_who_uses_it(harness, error):
    """F035: the resource is fine, and so is everybody else."""
    harness.reality.always['attribute other', 'a'] = fails(error)
    resources = {'a': 'x', 'user': {'value': {'get_attr': ['a', 'other']}}, 'friend': {'link': {'get_resource': 'a'}}}
    stack = harness.create(resources)
    harness.deliver()
    assert (harness.row(stack, 'a').action, harness.row(stack, 'a').status) == ('CREATE', 'COMPLETE')
    friend = harness.node(stack, 'friend')
    harness.check(*friend)
    assert harness.row(stack, 'friend').status == 'COMPLETE'
    harness.run()
    assert harness.state(stack) == 'CREATE_FAILED'
    assert 'resources.user' in harness.stack(stack).status_reason
    assert 'unreadable' in harness.stack(stack).status_reason
    harness.reality.always.clear()
    harness.update(stack, resources)
    harness.run()
    harness.assert_quiet()
    assert harness.state(stack) == 'UPDATE_COMPLETE'
    assert harness.reality.values() == {'a': 'x', 'user': 'x', 'friend': ''}


@pytest.mark.parametrize('value', [object(), float('inf'), '\ud800'], ids=['object', 'infinity', 'half a character'])
def test_an_attribute_that_cannot_be_carried_fails_only_who_uses_it(harness, value):
    """F035: a type may answer with anything."""
    kind = harness.registry.get('Test::Thing')
    kind.attribute = lambda call, name: value
    stack = harness.create({'a': 'x', 'user': {'value': {'get_attr': ['a', 'other']}}})
    harness.run()
    assert harness.row(stack, 'a').status == 'COMPLETE'
    assert harness.state(stack) == 'CREATE_FAILED'
    assert 'resources.user' in harness.stack(stack).status_reason


def test_a_worker_that_ends_after_its_row_is_gone_changes_nothing(harness):
    """F037: the row was taken over and removed while its worker was in a call."""
    ids = []

    def removed():
        harness.die(harness.workers[0])
        harness.workers.reverse()
        harness.delete(ids[0])
        harness.recover()
        assert harness.state(ids[0]) == 'DELETE_COMPLETE'

    harness.reality.once['create', 'r'] = [makes_then(harness.reality, removed)]
    ids.append(harness.create({'r': 'x'}))
    harness.deliver()
    harness.assert_converged(ids[0], {}, 'DELETE_COMPLETE')


def test_a_late_check_of_a_traversal_that_was_purged_does_nothing(harness):
    """F037: node, traversal and stack may all be history."""
    stack = harness.created({'r': 'x'})
    old = harness.stack(stack).traversal_id
    harness.sweep()
    assert harness.reader.nodes(old) == []
    for number in range(4):
        harness.check(old, number)
    harness.check('no-such-traversal', 0)
    harness.assert_converged(stack, {'r': 'x'}, 'CREATE_COMPLETE')


def test_a_worker_that_is_stopped_hands_its_work_on(engine):
    """F038: actions in progress are parked, others go on, nothing is made twice."""
    harness = Harness(engine, pace=PollPolicy(0.0, 0.0, 1000.0, 1))
    names = [f'n{number}' for number in range(10)]
    stack = harness.create(things(names))
    harness.reality.once['create', 'n0'] = [starts(harness.reality)]
    harness.reality.once['poll', 'n0'] = [
        lambda call: harness.workers[0].begin_to_stop(60.0) or InProgress({'round': 2})
    ]
    harness.deliver()
    row = harness.row(stack, 'n0')
    assert (row.owner, row.status, row.progress) == (None, 'IN_PROGRESS', {'round': 2})
    harness.workers[0] = harness.new_worker()
    harness.run()
    harness.assert_converged(stack, dict.fromkeys(names, 'x'), 'CREATE_COMPLETE')
    assert {harness.reality.calls['create', name] for name in names} == {1}


def test_a_worker_that_loses_its_lease_hands_its_work_on(engine):
    """F022: it stops, but nothing has failed: whoever takes over goes on where it stopped."""
    harness = Harness(engine, pace=PollPolicy(0.0, 0.0, 1000.0, 1))
    stack = harness.create({'r': 'x'})
    harness.reality.once['create', 'r'] = [lambda call: harness.workers[0].give_up() or starts(harness.reality)(call)]
    harness.deliver()
    harness.recover()
    harness.assert_converged(stack, {'r': 'x'}, 'CREATE_COMPLETE')
    assert (harness.reality.calls['create', 'r'], harness.reality.calls['cancel', 'r']) == (1, 0)


def test_third_parties_write_their_own_columns_only(harness):
    """F025: what somebody else wrote into the row during the action neither loses the result nor keeps the lock."""
    stack = harness.create({'r': 'x'})

    def write():
        with harness.store.writing() as connection:
            connection.execute(RESOURCE.update().values(updated_at=1.0))
            connection.commit()

    harness.reality.once['create', 'r'] = [meanwhile(write)]
    harness.run()
    harness.assert_converged(stack, {'r': 'x'}, 'CREATE_COMPLETE')
