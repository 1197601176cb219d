"""What an engine does about objects that changed outside of their stacks, where they are to be put right."""

from collections import Counter
from dataclasses import replace

import pytest

from convergence import errors
from convergence.core.model import DriftPolicy, Status
from convergence.core.observation import ObservedState
from convergence.engine.drift.automatic_repairs import DriftRepairs
from convergence.engine.drift.policies import DriftPolicyChanges
from convergence.engine.drift.requested_repairs import RepairOptions, ResourceRepairs
from tests.harness import Context, Harness, hot
from tests.observing import Observing


class Mended:
    """A stack whose objects are put right, an observer, and what begins repairs."""

    def __init__(self, harness, resources, environment=None, attempts=3, first_pause_s=0.0, **args):
        self.harness, self.observing = harness, Observing(harness)
        stacks, ports = harness.stacks, harness.ports
        identity = stacks.create_stack(harness.context, 's', hot(resources), environment, args={**args})
        self.stack_id = identity['stack_id']
        harness.run()
        parts = (ports.observations, harness.reader, harness.compiler, harness.traversals, harness.registry)
        self.repairs = DriftRepairs(*parts, harness.new_id, RepairOptions(attempts, first_pause_s))
        self.policies = DriftPolicyChanges(stacks, harness.traversals)
        self.asked = ResourceRepairs(stacks, harness.traversals, ports.observations)

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
        self.observing.schedule()
        return begun

    def ask(self, name, **context):
        """Have one resource repaired, as a person does."""
        self.asked.repair_resource(Context(**context) if context else self.harness.context, self.identity, name)
        self.harness.run()

    @property
    def identity(self):
        return {'stack_id': self.stack_id}

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
    stored = mended.repairs._compiler.stored

    def refusing(stack, template_id):
        if stack.id == first:
            raise errors.Conflict('its rows keep changing')
        return stored(stack, template_id)

    monkeypatch.setattr(mended.repairs._compiler, 'stored', refusing)
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


def refuse(harness, name='a'):
    """The service makes no such object any more."""
    harness.reality.always['create', name] = lambda call: (_ for _ in ()).throw(RuntimeError('no room'))


def failed_by_repair(harness, **options):
    """A stack of which an object is gone that cannot be made again."""
    mended = Mended(harness, {'a': 'x', 'b': {'link': {'get_attr': ['a', 'value']}}}, **options)
    refuse(harness)
    del harness.reality.objects[mended.object_of('a')]
    assert mended.sweep() == 1
    assert mended.state() == 'UPDATE_FAILED'
    return mended


def test_a_repair_that_failed_is_begun_again_and_ends_well_when_what_was_in_its_way_is_gone(harness):
    mended = failed_by_repair(harness, drift_policy='repair')
    assert harness.stack(mended.stack_id).status_reason.endswith('a changed outside of the stack (repair 1 of 3)')
    del harness.reality.always['create', 'a']
    assert mended.sweep() == 1
    harness.recover()
    assert (mended.state(), mended.values['a'], len(harness.reality.objects)) == ('UPDATE_COMPLETE', 'x', 2)
    assert mended.sweep() == 0


def test_repairs_that_keep_failing_are_given_up_visibly_until_the_policy_is_set_anew(harness):
    mended = failed_by_repair(harness, drift_policy='repair')
    assert [mended.sweep() for _ in range(4)] == [1, 1, 0, 0]
    reason = harness.stack(mended.stack_id).status_reason
    assert 'no room' in reason and reason.endswith('a changed outside of the stack (repair 3 of 3)')
    del harness.reality.always['create', 'a']
    mended.policies.set_drift_policy(harness.context, mended.identity, 'repair')
    assert mended.sweep() == 1
    harness.recover()
    assert mended.state() == 'UPDATE_COMPLETE'


def test_a_repair_that_failed_waits_before_it_is_begun_again(harness):
    assert failed_by_repair(harness, drift_policy='repair', first_pause_s=1000.0).sweep() == 0


@pytest.mark.parametrize('how', ['policy', 'update', 'delete'])
def test_a_stack_that_a_repair_has_failed_is_the_users_again_as_soon_as_he_says_something(harness, how):
    mended = failed_by_repair(harness, drift_policy='repair')
    if how == 'policy':
        mended.policies.set_drift_policy(harness.context, mended.identity, 'report')
    elif how == 'update':
        harness.update(mended.stack_id, {'a': 'new'})
    else:
        harness.reality.always['delete', 'b'] = lambda call: (_ for _ in ()).throw(RuntimeError('no'))
        harness.stacks.delete_stack(harness.context, mended.identity)
    harness.run()
    before = harness.stack(mended.stack_id)
    assert before.status is Status.FAILED
    assert [mended.sweep() for _ in range(3)] == [0, 0, 0]
    assert harness.stack(mended.stack_id).traversal_id == before.traversal_id


def test_a_repair_that_failed_in_a_nested_stack_is_begun_again_from_the_top(harness):
    group = {'type': 'OS::Heat::ResourceGroup', 'count': 2, 'resource_def': {'type': 'Test::Thing'}}
    mended = Mended(harness, {'group': group, 'a': 'x'}, drift_policy='repair')
    refuse(harness, '1')
    del harness.reality.objects[mended.object_of('1', mended.stacks()[1].id)]
    assert (mended.sweep(), mended.state()) == (1, 'UPDATE_FAILED')
    del harness.reality.always['create', '1']
    assert mended.sweep() == 1
    harness.recover()
    assert (mended.state(), len(harness.reality.objects)) == ('UPDATE_COMPLETE', 3)


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
        'Repair given up: it was repaired 3 times and keeps changing: another program changes it'
    ]
    known = mended.observing.known(mended.stack_id)['a']
    assert known.given_up and known.found is (ObservedState.DIFFERS if how == 'changed' else ObservedState.GONE)
    mended.policies.set_drift_policy(harness.context, {'stack_id': mended.stack_id}, 'repair')
    mended.observing.schedule()
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


def test_what_is_given_up_is_told_in_the_stack_that_it_is_in(harness):
    group = {'type': 'OS::Heat::ResourceGroup', 'count': 1, 'resource_def': {'type': 'Test::Thing'}}
    mended = Mended(harness, {'group': group, 'a': 'x'}, drift_policy='repair', attempts=0)
    nested = mended.stacks()[1].id
    for key in (mended.object_of('a'), mended.object_of('0', nested)):
        harness.reality.objects[key]['value'] = 'else'
    for _ in range(2):
        mended.sweep()
    for key in (mended.stack_id, nested):
        (told,) = (each for each in harness.reader.events(key) if 'given up' in each.reason)
        assert told.at > 0


@pytest.mark.parametrize('policy', ['report', 'repair'])
def test_engines_are_told_at_once_of_what_is_to_be_put_right_and_of_nothing_else(harness, policy):
    mended = Mended(harness, {'a': 'x', 'b': 'y'}, drift_policy=policy, attempts=1)
    mended.look()
    assert mended.observing.told_engines == []
    mended.change('a')
    mended.look()
    told = mended.observing.told_engines
    assert set(told) == ({mended.stack_id} if policy == 'repair' else set())
    mended.repair()
    mended.change('a')
    mended.sweep()
    told.clear()
    mended.look()
    assert told == [], 'it was given up'


def found_in(mended):
    """What events tell of what was found, without the name of the object."""
    return [each.partition(' (')[0] for each in mended.events() if each.startswith('Found')]


def test_what_is_found_is_told_once_and_once_that_it_is_over(harness):
    mended = Mended(harness, {'a': 'x', 'b': 'y'})
    mended.look()
    assert found_in(mended) == []
    mended.change('a')
    for _ in range(3):
        mended.look()
    assert found_in(mended) == ['Found DIFFERS: value of a']
    mended.change('a', 'x')
    for _ in range(2):
        mended.look()
    told = ['Found DIFFERS: value of a', 'Found as it was made again']
    assert found_in(mended) == told
    del harness.reality.objects[mended.object_of('b')]
    for _ in range(2):
        mended.look()
    (event,) = [each for each in harness.reader.events(mended.stack_id) if each.reason.startswith('Found GONE')]
    assert (event.resource_name, event.action, event.status) == ('b', 'CREATE', Status.COMPLETE)
    assert event.at > 0


@pytest.mark.parametrize('how', ['changed', 'gone'])
def test_that_a_repair_has_put_it_right_is_told_by_the_next_look(harness, how):
    mended = Mended(harness, {'a': 'x'}, drift_policy='repair')
    if how == 'changed':
        mended.change('a')
    else:
        del harness.reality.objects[mended.object_of('a')]
    for _ in range(3):
        mended.sweep()
    first, last = found_in(mended)
    assert first.startswith('Found DIFFERS' if how == 'changed' else 'Found GONE')
    assert last == 'Found as it was made again'


@pytest.mark.parametrize('policy', ['ignore', 'repair'])
@pytest.mark.parametrize('how', ['changed', 'gone', 'well'])
def test_a_person_has_one_resource_put_right_with_what_reads_it_whatever_the_policy(harness, policy, how):
    resources = {'a': 'x', 'b': {'link': {'get_resource': 'a'}}, 'c': 'z'}
    mended = Mended(harness, resources, drift_policy=policy)
    before = calls(harness)
    mended.change('c')
    if how == 'changed':
        mended.change('a')
    elif how == 'gone':
        del harness.reality.objects[mended.object_of('a')]
    looked = harness.reality.calls['observe', 'c']
    mended.ask('a')
    wanted = {
        'changed': {('update', 'a'): 1},
        'gone': {('create', 'a'): 1, ('update', 'b'): 1},
        'well': {},
    }[how]
    assert (mended.state(), calls(harness) - before) == ('UPDATE_COMPLETE', Counter(wanted))
    assert mended.values == {'a': 'x', 'b': '', 'c': 'else'}, 'c was not asked for'
    assert harness.reality.calls['observe', 'c'] == looked
    assert any('a repair of a was requested' in each for each in mended.events())


def test_a_person_has_tried_again_what_was_given_up(harness):
    mended = Mended(harness, {'a': 'x'}, drift_policy='repair', attempts=1)
    for _ in range(2):
        mended.change('a')
        mended.sweep()
    assert mended.observing.known(mended.stack_id)['a'].given_up
    mended.ask('a')
    assert mended.values == {'a': 'x'}
    known = mended.observing.known(mended.stack_id)['a']
    assert (known.given_up, known.repairs) == (False, 0)
    mended.change('a')
    assert (mended.sweep(), mended.values) == (1, {'a': 'x'})


@pytest.mark.parametrize(
    ('state', 'error', 'text'),
    [
        ('suspended', errors.NotSupported, 'resume s first'),
        ('busy', errors.ActionInProgress, 'in progress'),
        ('failed', errors.NotSupported, 'UPDATE_FAILED is not supported; update s first, with converge'),
    ],
)
def test_a_repair_that_a_person_asks_for_is_refused_where_it_may_not_begin(harness, state, error, text):
    mended = Mended(harness, {'a': 'x'})
    mended.change('a')
    if state == 'suspended':
        harness.acted(mended.stack_id, 'suspend')
    elif state == 'busy':
        harness.update(mended.stack_id, {'a': 'new'})
    else:
        harness.reality.always['create', 'b'] = lambda call: (_ for _ in ()).throw(RuntimeError('no'))
        harness.update(mended.stack_id, {'a': 'x', 'b': 'y'})
        harness.run()
    traversal = harness.stack(mended.stack_id).traversal_id
    with pytest.raises(error, match=text):
        mended.asked.repair_resource(harness.context, mended.identity, 'a')
    assert harness.stack(mended.stack_id).traversal_id == traversal


def test_what_cannot_be_compared_is_not_repaired_and_the_error_says_why(harness):
    harness.reality.objects['e-1'] = {'value': 'theirs'}
    external = {'type': 'Test::Thing', 'external_id': 'e-1'}
    mended = Mended(harness, {'a': 'x', 'e': external, 'n': {'type': 'OS::Heat::None'}})
    for name, text in (('e', 'belongs to others'), ('n', 'mark it unhealthy')):
        with pytest.raises(errors.NotSupported, match=text):
            mended.ask(name)
    with pytest.raises(errors.ResourceNotFound):
        mended.ask('z')
    with pytest.raises(errors.EntityNotFound):
        mended.ask('a', project_id='q')


def test_a_group_is_repaired_from_the_stack_at_the_top(harness):
    group = {'type': 'OS::Heat::ResourceGroup', 'count': 2, 'resource_def': {'type': 'Test::Thing'}}
    mended = Mended(harness, {'group': group})
    nested, before = mended.stacks()[1], calls(harness)
    del harness.reality.objects[mended.object_of('1', nested.id)]
    with pytest.raises(errors.NotSupported, match='nested'):
        mended.asked.repair_resource(harness.context, {'stack_id': nested.id}, '1')
    mended.ask('group')
    assert (mended.state(), calls(harness) - before) == ('UPDATE_COMPLETE', Counter({('create', '1'): 1}))


def test_a_policy_given_by_an_update_holds_for_nested_stacks_that_the_update_does_not_change(harness):
    group = {'type': 'OS::Heat::ResourceGroup', 'count': 1, 'resource_def': {'type': 'Test::Thing'}}
    mended = Mended(harness, {'group': group}, drift_policy='ignore')
    mended.observing.schedule()
    nested = mended.stacks()[1]
    assert not mended.observing.known(nested.id)
    identity = {'stack_id': mended.stack_id}
    harness.stacks.update_stack(harness.context, identity, hot({'group': group}), args={'drift_policy': 'repair'})
    harness.run()
    mended.observing.schedule()
    mended.observing.schedule()  # the next sweep, which hears of it from the first
    assert mended.observing.known(nested.id)['0'].policy is DriftPolicy.REPAIR
