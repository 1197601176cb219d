"""What an engine does about objects that changed outside of their stacks, where they are to be put right."""

from collections import Counter
from dataclasses import replace

import pytest

from convergence import errors
from convergence.core.model import DriftPolicy, Status
from convergence.core.observation import ObservedState
from convergence.engine.operations.drift_policies import DriftPolicyChanges
from convergence.engine.sweeper.repairs import DriftRepairs, RepairOptions
from tests.harness import Context, Harness, hot
from tests.observing import Observing


class Mended:
    """A stack whose objects are put right, an observer, and what begins repairs."""

    def __init__(self, harness, resources, environment=None, attempts=3, **args):
        self.harness, self.observing = harness, Observing(harness)
        stacks, ports = harness.stacks, harness.ports
        identity = stacks.create_stack(harness.context, 's', hot(resources), environment, args={**args})
        self.stack_id = identity['stack_id']
        harness.run()
        parts = (ports.observations, harness.reader, harness.goals, harness.traversals, harness.registry)
        self.repairs = DriftRepairs(*parts, harness.new_id, RepairOptions(attempts, 0.0))
        self.policies = DriftPolicyChanges(stacks, harness.traversals, ports.observations)

    def object_of(self, name, stack_id=None):
        rows = self.harness.reader.resources(stack_id or self.stack_id)
        return next(row.physical_id for row in rows if row.name == name)

    def change(self, name, value='else'):
        self.harness.reality.objects[self.object_of(name)]['value'] = value

    def sweep(self):
        """Look at everything, begin what is to be done, and do it; how many stacks were attended to."""
        self.look()
        return self.repair()

    def look(self):
        """Have an observer look at everything: more than once, where the database's clock stands still meanwhile."""
        self.observing.look(*(stack.id for stack in self.stacks()))

    def repair(self):
        begun = self.repairs(100)
        self.harness.run()
        self.observing.enrol()
        return begun

    def stacks(self):
        top = self.harness.stack(self.stack_id)
        tokens = [row.token for row in self.harness.reader.resources(top.id) if row.token]
        return [top, *(stack for token in tokens if (stack := self.harness.reader.stack(token)) is not None)]

    @property
    def values(self):
        return {name: self.harness.reality.objects[self.object_of(name)]['value'] for name in self.names}

    @property
    def names(self):
        return sorted({row.name for row in self.harness.reader.resources(self.stack_id)})

    def state(self):
        return self.harness.state(self.stack_id)

    def events(self):
        return [each.reason for each in self.harness.reader.events(self.stack_id)]


@pytest.fixture(params=['memory', 'sqlite'])
def harness(request):
    return Harness(None if request.param == 'memory' else request.getfixturevalue('engine'))


def calls(harness):
    return Counter({key: count for key, count in harness.reality.calls.items() if key[0] in ('create', 'update')})


def test_what_differs_is_put_right_in_place_with_what_reads_it_and_nothing_else(harness):
    resources = {'a': 'x', 'b': {'link': {'get_attr': ['a', 'value']}}, 'c': 'z'}
    mended = Mended(harness, resources, drift_policy='repair')
    objects, before = set(harness.reality.objects), calls(harness)
    mended.change('a')
    mended.look()
    looked = harness.reality.calls['observe', 'c']
    assert mended.repair() == 1
    assert (mended.state(), mended.values['a']) == ('UPDATE_COMPLETE', 'x')
    assert calls(harness) - before == Counter({('update', 'a'): 1})
    assert set(harness.reality.objects) == objects
    assert harness.reality.calls['observe', 'c'] == looked, 'the observer alone has looked at c'
    assert any('a changed outside of the stack' in each for each in mended.events())
    assert mended.sweep() == 0


def test_a_stack_that_cannot_be_repaired_keeps_no_other_one_waiting(harness, monkeypatch):
    mended = Mended(harness, {'a': 'x'}, drift_policy='repair')
    other = harness.stacks.create_stack(harness.context, 'o', hot({'b': 'y'}), args={'drift_policy': 'repair'})[
        'stack_id'
    ]
    harness.run()
    mended.change('a')
    harness.reality.objects[mended.object_of('b', other)]['value'] = 'else'
    mended.observing.look(mended.stack_id, other)
    first, second = sorted([mended.stack_id, other])
    stored = mended.repairs._goals.stored

    def refusing(stack, template_id):
        if stack.id == first:
            raise errors.Conflict('its rows keep changing')
        return stored(stack, template_id)

    monkeypatch.setattr(mended.repairs._goals, 'stored', refusing)
    assert mended.repair() == 1
    assert (harness.state(first), harness.state(second)) == ('CREATE_COMPLETE', 'UPDATE_COMPLETE')


def test_what_is_gone_is_made_again_once(harness):
    mended = Mended(harness, {'a': 'x', 'b': 'y'}, drift_policy='repair')
    del harness.reality.objects[mended.object_of('b')]
    assert mended.sweep() == 1
    assert (mended.state(), mended.values) == ('UPDATE_COMPLETE', {'a': 'x', 'b': 'y'})
    assert (len(harness.reality.objects), harness.reality.calls['create', 'b']) == (2, 2)
    assert mended.sweep() == 0


def test_what_is_reported_or_ignored_is_not_touched(harness):
    for policy in (None, 'report', 'ignore'):
        mended = Mended(Harness(None), {'a': 'x'}, drift_policy=policy)
        mended.change('a')
        assert mended.sweep() == 0
        assert (mended.state(), mended.values) == ('CREATE_COMPLETE', {'a': 'else'})
        assert mended.observing.known(mended.stack_id).keys() == (set() if policy == 'ignore' else {'a'})


def test_the_environment_says_it_for_types_and_resources_and_the_most_exact_holds(harness):
    environment = {
        'drift_policies': {'Test::Thing': 'repair'},
        'resource_registry': {'resources': {'b': {'drift_policy': 'report'}, 'c*': {'drift_policy': 'ignore'}}},
    }
    mended = Mended(harness, {'a': 'x', 'b': 'y', 'cc': 'z'}, environment)
    for name in ('a', 'b', 'cc'):
        mended.change(name)
    assert mended.sweep() == 1
    assert mended.values == {'a': 'x', 'b': 'else', 'cc': 'else'}
    before = calls(harness)
    environment['resource_registry']['resources']['b']['drift_policy'] = 'repair'
    harness.stacks.update_stack(
        harness.context, {'stack_id': mended.stack_id}, hot({'a': 'x', 'b': 'y', 'cc': 'z'}), environment
    )
    harness.run()
    assert calls(harness) == before, 'another policy is no update of a resource'
    mended.sweep()
    assert mended.values == {'a': 'x', 'b': 'y', 'cc': 'else'}


@pytest.mark.parametrize(
    'environment',
    [
        {'drift_policies': {'Test::Thing': 'mend'}},
        {'resource_registry': {'resources': {'a': {'drift_policy': 'mend'}}}},
        {'drift_policies': ['repair']},
    ],
)
def test_no_other_policy_is_accepted(harness, environment):
    with pytest.raises(errors.StackValidationFailed):
        Mended(harness, {'a': 'x'}, environment)
    with pytest.raises(errors.Invalid, match='mend'):
        Mended(harness, {'a': 'x'}, drift_policy='mend')


def test_the_policy_changes_without_an_update(harness):
    mended = Mended(harness, {'a': 'x'})
    mended.change('a')
    assert mended.sweep() == 0
    before = harness.stack(mended.stack_id)
    identity = {'stack_id': mended.stack_id}
    assert mended.policies.set_drift_policy(harness.context, identity, 'repair') == {'drift_policy': 'repair'}
    assert harness.stack(mended.stack_id) == replace(before, drift_policy=DriftPolicy.REPAIR)
    assert mended.sweep() == 1
    assert mended.values == {'a': 'x'}
    with pytest.raises(errors.Invalid):
        mended.policies.set_drift_policy(harness.context, identity, 'mend')
    with pytest.raises(errors.EntityNotFound):
        mended.policies.set_drift_policy(Context(project_id='q'), identity, 'report')


@pytest.mark.parametrize('action', ['suspend', 'update', 'fail'])
def test_no_repair_begins_on_a_stack_that_is_suspended_busy_or_failed(harness, action):
    mended = Mended(harness, {'a': 'x'}, drift_policy='repair')
    mended.change('a')
    mended.observing.look(mended.stack_id)
    if action == 'suspend':
        harness.acted(mended.stack_id, 'suspend')
    elif action == 'update':
        harness.update(mended.stack_id, {'a': 'new'})
    else:
        harness.reality.always['create', 'b'] = lambda call: (_ for _ in ()).throw(RuntimeError('no'))
        harness.update(mended.stack_id, {'a': 'x', 'b': 'y'})
        harness.run()
        mended.observing.look(mended.stack_id)
        assert mended.state() == 'UPDATE_FAILED'
    assert mended.repairs(100) == 0


def test_a_repair_that_was_prepared_before_an_update_began_is_not_begun(harness):
    mended = Mended(harness, {'a': 'x'}, drift_policy='repair')
    mended.change('a')
    mended.observing.look(mended.stack_id)
    found = harness.ports.observations.to_repair(10)
    stack = harness.stack(mended.stack_id)
    traversal = harness.update(mended.stack_id, {'a': 'new'})
    with pytest.raises(errors.ConvergenceError, match='moved on'):
        mended.repairs._attend(stack, found)
    assert harness.stack(mended.stack_id).traversal_id == traversal
    harness.run()
    assert mended.values == {'a': 'new'}


def test_a_user_supersedes_a_repair(harness):
    mended = Mended(harness, {'a': 'x'}, drift_policy='repair')
    mended.change('a')
    mended.observing.look(mended.stack_id)
    assert mended.repairs(100) == 1
    harness.update(mended.stack_id, {'a': 'new'})
    harness.run()
    assert (mended.state(), mended.values) == ('UPDATE_COMPLETE', {'a': 'new'})


@pytest.mark.parametrize('how', ['changed', 'gone'])
def test_an_object_that_keeps_changing_is_given_up_visibly(harness, how):
    mended = Mended(harness, {'a': 'x'}, drift_policy='repair', attempts=3)
    begun = []
    for _ in range(6):
        if how == 'changed':
            mended.change('a')
        else:
            harness.reality.objects.pop(mended.object_of('a'), None)
        traversal = harness.stack(mended.stack_id).traversal_id
        mended.sweep()
        begun.append(harness.stack(mended.stack_id).traversal_id != traversal)
    assert begun == [True, True, True, False, False, False]
    assert [each for each in mended.events() if 'given up' in each] == [
        'Repair given up: it was put right 3 times and keeps changing: somebody else is changing it'
    ]
    known = mended.observing.known(mended.stack_id)['a']
    assert known.given_up and known.found is (ObservedState.DIFFERS if how == 'changed' else ObservedState.GONE)
    mended.policies.set_drift_policy(harness.context, {'stack_id': mended.stack_id}, 'repair')
    mended.observing.enrol()
    assert mended.sweep() == 1, 'it is tried again'


def test_what_no_update_can_put_right_is_given_up_at_once(harness):
    mended = Mended(harness, {'a': {'value': 'x', 'key': 'k'}}, drift_policy='repair')
    harness.reality.objects[mended.object_of('a')]['key'] = 'else'
    mended.sweep()
    assert mended.state() == 'CREATE_COMPLETE'
    assert 'Repair given up: no update can put key right' in mended.events()


def test_what_is_in_a_nested_stack_is_put_right_from_the_top(harness):
    group = {'type': 'OS::Heat::ResourceGroup', 'count': 2, 'resource_def': {'type': 'Test::Thing'}}
    mended = Mended(harness, {'group': group, 'a': 'x'}, drift_policy='repair')
    nested = mended.stacks()[1]
    before = calls(harness)
    harness.reality.objects[mended.object_of('1', nested.id)]['value'] = 'else'
    assert mended.sweep() == 1
    assert mended.state() == 'UPDATE_COMPLETE'
    assert harness.stack(nested.id).status is Status.COMPLETE
    assert calls(harness) - before == Counter({('update', '1'): 1})
    with pytest.raises(errors.NotSupported, match='at the top'):
        mended.policies.set_drift_policy(harness.context, {'stack_id': nested.id}, 'ignore')
