"""Stacks that are forgotten while their objects stay, and stacks that take such objects over."""

import json

import pytest

from convergence import errors
from convergence.engine.operations.abandonment import Abandonment
from convergence.engine.operations.options import StackLimits
from convergence.engine.operations.stacks import Stacks
from convergence.resources.contract import FinalFailure
from tests.harness import hot
from tests.reality import fails, meanwhile, starts

RESOURCES = {'a': 'x', 'b': {'value': {'get_attr': ['a', 'value']}, 'after': ['a']}}
VALUES = {'a': 'x', 'b': 'x'}


def abandon(harness, stack):
    data = harness.abandonment.abandon_stack(harness.context, {'stack_id': stack})
    harness.run()
    return data


def adopt(harness, data, name='again', params=None, **args):
    args = {'adopt_stack_data': json.dumps(data), **args}
    identity = harness.stacks.create_stack(harness.context, name, None, params, args=args)
    return identity['stack_id']


def test_an_abandoned_stack_leaves_what_it_made(harness):
    """F126: nothing is deleted."""
    stack = harness.created(RESOURCES)
    data = abandon(harness, stack)
    assert harness.state(stack) == 'DELETE_COMPLETE'
    assert harness.rows(stack) == []
    assert harness.reality.values() == VALUES
    assert harness.reality.order('delete') == []
    assert {name: entry['resource_id'] for name, entry in data['resources'].items()} == {'a': 'a-1', 'b': 'b-2'}
    assert (data['name'], data['action'], data['status'], data['id']) == ('s', 'CREATE', 'COMPLETE', stack)
    assert data['template']['resources']['a']['type'] == 'Test::Thing'


def test_what_was_abandoned_can_be_adopted_and_is_never_made_again(harness):
    harness.created(RESOURCES)
    stack = adopt(harness, abandon(harness, harness.reader.stack_named('p', 's').id))
    assert harness.state(stack) == 'ADOPT_IN_PROGRESS'
    harness.run()
    harness.assert_converged(stack, VALUES, 'ADOPT_COMPLETE')
    assert harness.reality.order('create') == ['a', 'b']
    assert harness.events(stack, 'a') == ['ADOPT_IN_PROGRESS', 'ADOPT_COMPLETE']
    assert harness.stack(stack).last_good_template_id == harness.stack(stack).template_id
    harness.update(stack, {**RESOURCES, 'a': 'y'})
    harness.run()
    harness.assert_converged(stack, {'a': 'y', 'b': 'y'}, 'UPDATE_COMPLETE')
    assert harness.reality.order('create') == ['a', 'b']
    harness.delete(stack)
    harness.run()
    assert harness.reality.objects == {}


def test_the_data_can_be_had_without_letting_go(harness):
    stack = harness.created(RESOURCES)
    exported = harness.abandonment.export_stack(harness.context, {'stack_id': stack})
    assert harness.state(stack) == 'CREATE_COMPLETE'
    assert exported == abandon(harness, stack)


def test_a_stack_that_is_busy_is_not_abandoned(harness):
    stack = harness.create(RESOURCES)
    with pytest.raises(errors.ActionInProgress):
        abandon(harness, stack)
    harness.run()
    harness.assert_converged(stack, VALUES, 'CREATE_COMPLETE')


def test_abandoning_survives_a_loss_of_all_messages_and_a_death(harness):
    """F126: that objects stay is known to whoever goes on."""
    stack = harness.created(RESOURCES)
    harness.messages.lost = True
    harness.abandonment.abandon_stack(harness.context, {'stack_id': stack})
    harness.restart()
    harness.messages.lost = False
    harness.recover()
    assert harness.state(stack) == 'DELETE_COMPLETE'
    assert harness.reality.values() == VALUES


def test_what_is_under_way_when_a_failed_stack_is_abandoned_stays(harness):
    harness.reality.once['create', 'a'] = [starts(harness.reality)]
    harness.reality.once['create', 'b'] = [fails(FinalFailure('no'))]
    stack = harness.create({'a': 'x', 'b': 'x'})
    harness.run()
    assert harness.state(stack) == 'CREATE_FAILED'
    abandon(harness, stack)
    harness.recover()
    assert harness.state(stack) == 'DELETE_COMPLETE'
    assert harness.reality.order('delete') == []
    assert 'a' in harness.reality.names()


def test_what_a_failure_has_left_running_is_cancelled_when_the_stack_is_abandoned(harness):
    """A stack in progress is not abandoned, but one that has failed may still have a call running that never ends."""
    stack = harness.create({'a': 'x', 'b': 'x'})
    failed = harness.stack(stack).traversal_id
    harness.reality.once['create', 'b'] = [fails(FinalFailure('no'))]

    def meanwhile_abandoned():
        harness.check(*harness.node(stack, 'b'))
        assert harness.state(stack) == 'CREATE_FAILED'
        harness.abandonment.abandon_stack(harness.context, {'stack_id': stack})
        assert (stack, failed) in harness.messages.cancels

    harness.reality.once['create', 'a'] = [meanwhile(meanwhile_abandoned)]
    harness.check(*harness.node(stack, 'a'))
    harness.run()
    assert harness.state(stack) == 'DELETE_COMPLETE'
    assert harness.reality.order('delete') == []
    assert harness.reality.names() == ['a']


def test_hidden_values_are_masked_and_have_to_be_given_again(harness):
    parameters = {'secret': {'type': 'string', 'hidden': True}}
    text = hot({'a': {'value': {'get_param': 'secret'}}}, parameters=parameters)
    identity = harness.stacks.create_stack(harness.context, 's', text, {'parameters': {'secret': 'canary'}})
    harness.run()
    data = abandon(harness, identity['stack_id'])
    assert 'canary' not in json.dumps(data)
    with pytest.raises(errors.Invalid, match='the values of secret are hidden'):
        adopt(harness, data)
    stack = adopt(harness, data, params={'parameters': {'secret': 'canary'}})
    harness.run()
    harness.assert_converged(stack, {'a': 'canary'}, 'ADOPT_COMPLETE')


def test_what_is_not_offered_or_not_there_fails_and_is_never_made(harness):
    """F127."""
    data = abandon(harness, harness.created(RESOURCES))
    data['resources']['a']['resource_id'] = None
    stack = adopt(harness, data)
    harness.run()
    assert harness.state(stack) == 'ADOPT_FAILED'
    assert harness.stack(stack).status_reason.endswith('resources.a: Resource ID was not provided.')
    data['resources']['a']['resource_id'] = 'nowhere'
    other = adopt(harness, data, 'other')
    harness.run()
    assert harness.state(other) == 'ADOPT_FAILED'
    assert 'there is no object with the physical id nowhere' in harness.stack(other).status_reason
    assert harness.reality.order('create') == ['a', 'b']


def test_an_adoption_that_fails_and_is_rolled_back_lets_go_of_everything(harness):
    data = abandon(harness, harness.created(RESOURCES))
    data['resources']['b']['resource_id'] = 'nowhere'
    stack = adopt(harness, data, disable_rollback=False)
    harness.run()
    assert harness.state(stack) == 'ROLLBACK_COMPLETE'
    assert harness.rows(stack) == []
    assert harness.reality.values() == VALUES


def test_a_worker_that_dies_while_adopting_makes_nothing(harness):
    """F127: the next one takes the object over as well."""
    data = abandon(harness, harness.created(RESOURCES))
    harness.reality.once['observe', 'a'] = [meanwhile(lambda: harness.die(harness.workers[0]), lambda: harness.sweep())]
    stack = adopt(harness, data)
    harness.run()
    harness.recover()
    harness.assert_converged(stack, VALUES, 'ADOPT_COMPLETE')
    assert harness.reality.order('create') == ['a', 'b']


def test_a_stack_deleted_before_it_was_adopted_leaves_the_objects_alone(harness):
    data = abandon(harness, harness.created(RESOURCES))
    stack = adopt(harness, data)
    with pytest.raises(errors.ActionInProgress):
        harness.update(stack, RESOURCES)
    harness.delete(stack)
    harness.run()
    assert harness.state(stack) == 'DELETE_COMPLETE'
    assert harness.reality.values() == VALUES


@pytest.mark.parametrize('data', ['{', '[]', {'resources': {}}, {'template': {}, 'resources': []}, {'resources': 3}])
def test_data_that_make_no_sense_are_refused(harness, data):
    args = {'adopt_stack_data': data}
    with pytest.raises(errors.Invalid, match='adopt_stack_data'):
        harness.stacks.create_stack(harness.context, 's', None, args=args)


def test_both_have_to_be_enabled(harness):
    data = harness.abandonment.export_stack(harness.context, {'stack_id': harness.created(RESOURCES)})
    stacks = Stacks(
        harness.reader,
        harness.compiler,
        harness.traversals,
        StackLimits(),
        harness.new_id,
        harness.nested_stops.release,
    )
    abandonment = Abandonment(stacks, harness.compiler, harness.traversals)
    with pytest.raises(errors.NotSupported, match='Stack Adopt is not supported'):
        stacks.create_stack(harness.context, 't', None, args={'adopt_stack_data': data})
    with pytest.raises(errors.NotSupported, match='Stack Abandon is not supported'):
        abandonment.abandon_stack(harness.context, {'stack_id': data['id']})
