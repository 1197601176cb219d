"""Section D of the catalogue of failures: which row is used for a name, and how the graph is built."""

import pytest

from convergence.resources.contract import FinalFailure
from tests.reality import fails, meanwhile, wants_replacement

BROKEN = FinalFailure('broken')


def keyed(key, value='x'):
    """A thing that is replaced when its key changes."""
    return {'value': value, 'key': key}


def test_three_generations_of_a_name_end_as_one(harness):
    """F054, F072: two leftovers whose removal failed, a third that is wanted."""
    stack = harness.created({'c': keyed('1')})
    for key in '23':
        harness.reality.once['delete', 'c'] = [fails(BROKEN)]
        harness.update(stack, {'c': keyed(key)})
        harness.run()
    assert len(harness.rows(stack, 'c')) >= 2
    harness.update(stack, {'c': keyed('4')})
    harness.run()
    harness.assert_converged(stack, {'c': 'x'}, 'UPDATE_COMPLETE')


@pytest.mark.parametrize('delivered', [0, 1, 2])
def test_updates_in_quick_succession_create_once(harness, delivered):
    """F055, F056, F057: five updates, each superseding the one before, with some messages in between."""
    stack = harness.create({'r': 'v0', 's': {'value': 'x', 'after': ['r']}})
    for number in range(1, 6):
        for _ in range(min(delivered, len(harness.messages.checks))):
            harness.deliver()
        harness.update(stack, {'r': f'v{number}', 's': {'value': 'x', 'after': ['r']}})
    harness.run()
    harness.assert_converged(stack, {'r': 'v5', 's': 'x'}, 'UPDATE_COMPLETE')
    assert (harness.reality.calls['create', 'r'], harness.reality.calls['create', 's']) == (1, 1)


def test_updates_that_supersede_a_slow_create_create_once(harness):
    """F055: each comes while the create of the first still runs."""
    stack = harness.create({'r': 'v0'})
    steps = [lambda number=number: harness.update(stack, {'r': f'v{number}'}) for number in range(1, 6)]
    harness.reality.once['create', 'r'] = [meanwhile(*(item for step in steps for item in (step, harness.run)))]
    harness.run()
    harness.assert_converged(stack, {'r': 'v5'}, 'UPDATE_COMPLETE')
    assert harness.reality.calls['create', 'r'] == 1


def test_a_superseded_create_keeps_what_is_unchanged(harness):
    """F056: rows made by the first traversal are not taken for leftovers of the second."""
    stack = harness.create({'a': 'x', 'b': {'value': 'x', 'after': ['a']}})
    harness.deliver()
    harness.update(stack, {'a': 'x', 'b': {'value': 'y', 'after': ['a']}})
    harness.run()
    harness.assert_converged(stack, {'a': 'x', 'b': 'y'}, 'UPDATE_COMPLETE')
    assert (harness.reality.calls['create', 'a'], harness.reality.calls['delete', 'a']) == (1, 0)


def test_a_resource_is_created_from_the_newest_definition(harness):
    """F057: superseded before its create: it is made as the new template wants, not changed afterwards."""
    stack = harness.create({'r': 'old'})
    harness.update(stack, {'r': keyed('k', 'new')})
    harness.run()
    harness.assert_converged(stack, {'r': 'new'}, 'UPDATE_COMPLETE')
    assert (harness.reality.calls['create', 'r'], harness.reality.calls['update', 'r']) == (1, 0)


def test_a_failed_update_is_repaired_by_the_same_template(harness):
    """F058, F069: it is neither deleted nor replaced."""
    stack = harness.created({'r': 'old'})
    harness.reality.once['update', 'r'] = [fails(BROKEN)]
    harness.update(stack, {'r': 'new'})
    harness.run()
    assert harness.state(stack) == 'UPDATE_FAILED'
    harness.update(stack, {'r': 'new'})
    harness.run()
    harness.assert_converged(stack, {'r': 'new'}, 'UPDATE_COMPLETE')
    assert harness.reality.calls['create', 'r'] == 1


@pytest.mark.parametrize('way', ['in place', 'replaced', 'superseded', 'superseded and replaced'])
def test_dependencies_that_are_turned_round_make_no_cycle(harness, way):
    """F059: A needs B, then B needs A."""
    one, two = ('1', '2') if 'replaced' in way else ('1', '1')
    forth = {'b': keyed(one), 'a': {**keyed(one), 'link': {'get_resource': 'b'}}}
    back = {'a': keyed(two), 'b': {**keyed(two), 'link': {'get_resource': 'a'}}}
    stack = harness.created(forth)
    harness.update(stack, back)
    if 'superseded' in way:
        harness.deliver()
        harness.update(stack, forth)
        if harness.messages.checks:
            harness.deliver()
        harness.update(stack, back)
    harness.run()
    harness.assert_converged(stack, {'a': 'x', 'b': 'x'}, 'UPDATE_COMPLETE')
    harness.reality.journal.clear()
    harness.delete(stack)
    harness.run()
    assert harness.reality.order('delete') == ['b', 'a']


@pytest.mark.parametrize('failing', ['update', 'replacement'])
def test_a_failed_change_of_dependencies_is_deleted_before_old_and_new_ones(harness, failing):
    """F060: the union of both is kept until the change has succeeded."""
    before = {'old': 'x', 'new': 'x', 'r': {'value': 'x', 'link': {'get_resource': 'old'}}}
    stack = harness.created(before)
    verb = 'update' if failing == 'update' else 'create'
    harness.reality.once[verb, 'r'] = [fails(BROKEN)]
    key = {} if failing == 'update' else {'key': 'k'}
    harness.update(stack, {**before, 'r': {'value': 'x', 'link': {'get_resource': 'new'}, **key}})
    harness.run()
    assert harness.state(stack) == 'UPDATE_FAILED'
    harness.reality.journal.clear()
    harness.delete(stack)
    harness.run()
    harness.assert_converged(stack, {}, 'DELETE_COMPLETE')
    order = harness.reality.order('delete')
    assert order.index('r') < order.index('old')
    assert order.index('r') < order.index('new')


def test_a_resource_that_is_being_deleted_is_never_used_again(harness):
    """F062: removed and wanted again before the removal began, while it runs, and after it failed."""
    stack = harness.created({'r': 'x', 'q': 'x'})
    harness.update(stack, {'q': 'x'})
    harness.update(stack, {'r': 'x', 'q': 'x'})
    harness.run()
    assert harness.reality.calls['delete', 'r'] == 0
    harness.reality.once['delete', 'r'] = [fails(BROKEN)]
    harness.update(stack, {'q': 'x'})
    harness.run()
    assert harness.state(stack) == 'UPDATE_FAILED'
    harness.update(stack, {'r': 'x', 'q': 'x'})
    harness.run()
    harness.assert_converged(stack, {'r': 'x', 'q': 'x'}, 'UPDATE_COMPLETE')
    assert harness.reality.calls['create', 'r'] == 2


def test_a_changed_type_replaces(harness):
    """F064: and when the new one fails, the stack can be read, updated back and deleted."""
    stack = harness.created({'r': 'x'})
    harness.reality.once['create', 'r'] = [fails(BROKEN)]
    harness.update(stack, {'r': {'value': 'x', 'type': 'Test::Enforced'}})
    harness.run()
    assert harness.state(stack) == 'UPDATE_FAILED'
    harness.update(stack, {'r': 'x'})
    harness.run()
    harness.assert_converged(stack, {'r': 'x'}, 'UPDATE_COMPLETE')
    assert harness.row(stack, 'r').type == 'Test::Thing'
    harness.update(stack, {'r': {'value': 'x', 'type': 'Test::Enforced'}})
    harness.run()
    harness.assert_converged(stack, {'r': 'x'}, 'UPDATE_COMPLETE')
    assert harness.row(stack, 'r').type == 'Test::Enforced'


def test_what_is_removed_from_the_template_goes_by_its_own_last_definition(harness):
    """F065: its deletion policy is the one it had, also when only that was changed last."""
    stack = harness.created({'kept': {'value': 'x', 'deletion_policy': 'Retain'}, 'gone': 'x', 'late': 'x'})
    harness.update(
        stack,
        {
            'kept': {'value': 'x', 'deletion_policy': 'Retain'},
            'gone': 'x',
            'late': {'value': 'x', 'deletion_policy': 'retain'},
        },
    )
    harness.run()
    assert harness.state(stack) == 'UPDATE_COMPLETE'
    harness.delete(stack)
    harness.run()
    assert harness.state(stack) == 'DELETE_COMPLETE'
    assert harness.reality.names() == ['kept', 'late']
    assert harness.rows(stack) == []


def test_a_replacement_that_is_asked_for_late_happens(harness):
    """F067: the type finds out in the middle of an update; dependents get the new object."""
    stack = harness.created({'r': 'x', 'user': {'link': {'get_resource': 'r'}}})
    harness.reality.once['update', 'r'] = [wants_replacement()]
    harness.update(stack, {'r': 'y', 'user': {'link': {'get_resource': 'r'}}})
    harness.run()
    harness.assert_converged(stack, {'r': 'y', 'user': ''}, 'UPDATE_COMPLETE')
    user = harness.reality.objects[harness.row(stack, 'user').physical_id]
    assert user['link'] == harness.row(stack, 'r').physical_id
    events = harness.events(stack, 'r')
    assert events[2] == 'UPDATE_IN_PROGRESS'
    assert events[4:] == ['CREATE_IN_PROGRESS', 'CREATE_COMPLETE', 'DELETE_IN_PROGRESS', 'DELETE_COMPLETE']


def test_a_failed_resource_whose_object_is_fine_is_kept(harness):
    """F069, F082: reality is asked before anything is thrown away."""

    def made_and_failed(call):
        raise FinalFailure('slow', physical_id=harness.reality.make(call))

    harness.reality.once['create', 'r'] = [made_and_failed]
    stack = harness.create({'r': 'x'})
    harness.run()
    assert harness.state(stack) == 'CREATE_FAILED'
    harness.update(stack, {'r': 'x'})
    harness.run()
    harness.assert_converged(stack, {'r': 'x'}, 'UPDATE_COMPLETE')
    assert harness.reality.calls['create', 'r'] == 1


def test_an_update_is_complete_only_when_leftovers_are_gone_and_their_failure_is_no_rollback(harness):
    """F070, F080: pinned: what is wanted is up and stays; the update has failed because of what would not go."""
    stack = harness.created({'r': 'x', 'gone': 'x'})
    harness.reality.once['delete', 'gone'] = [fails(BROKEN)]
    harness.update(stack, {'r': 'y'}, disable_rollback=False)
    harness.run()
    assert harness.state(stack) == 'UPDATE_FAILED'
    assert 'resources.gone: broken' in harness.stack(stack).status_reason
    assert harness.stack(stack).last_good_template_id == harness.stack(stack).template_id
    assert harness.reality.values() == {'r': 'y', 'gone': 'x'}
    harness.update(stack, {'r': 'y'})
    harness.run()
    harness.assert_converged(stack, {'r': 'y'}, 'UPDATE_COMPLETE')


def test_a_leftover_that_takes_too_long_is_no_rollback_either(harness):
    """F070, F080, F107: the deadline passes when everything wanted has long been up."""
    stack = harness.created({'r': 'x', 'gone': 'x'})
    traversal = harness.update(stack, {'r': 'y'}, disable_rollback=False)
    late = meanwhile(lambda: harness.expire(traversal), harness.sweep)
    harness.reality.once['delete', 'gone'] = [late]
    harness.run()
    assert harness.state(stack) == 'UPDATE_FAILED'
    assert 'timed out' in harness.stack(stack).status_reason
    harness.update(stack, {'r': 'y'})
    harness.run()
    harness.assert_converged(stack, {'r': 'y'}, 'UPDATE_COMPLETE')


def test_a_replacement_of_a_replacement_leaves_one(harness):
    """F072: superseded before its cleanup."""
    stack = harness.created({'c': keyed('1')})
    harness.reality.once['create', 'c'] = [meanwhile(lambda: harness.update(stack, {'c': keyed('3')}), harness.run)]
    harness.update(stack, {'c': keyed('2')})
    harness.run()
    harness.assert_converged(stack, {'c': 'x'}, 'UPDATE_COMPLETE')
    assert harness.reality.calls['create', 'c'] == 3


def test_an_object_that_serves_is_not_replaced_on_the_way_back(harness):
    """I9: unchanged in T1, replaced in T2 that superseded it and failed: the rollback comes back to the old object."""
    other = {'value': 'x', 'after': ['c']}
    stack = harness.created({'c': keyed('1'), 'd': other})
    kept = harness.row(stack, 'c').physical_id
    harness.update(stack, {'c': keyed('1'), 'd': {**other, 'value': 'y'}}, disable_rollback=False)
    harness.reality.once['update', 'd'] = [fails(BROKEN)]
    harness.update(stack, {'c': keyed('2'), 'd': {**other, 'value': 'z'}}, disable_rollback=False)
    harness.run()
    harness.assert_converged(stack, {'c': 'x', 'd': 'x'}, 'ROLLBACK_COMPLETE')
    assert harness.row(stack, 'c').physical_id == kept
    assert harness.reality.calls['create', 'c'] == 2
