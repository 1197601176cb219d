"""What users do with stacks, on the engine in one process: create, update, replace, delete, and what that costs."""

import random

import pytest
from sqlalchemy import event

from convergence import errors
from convergence.db.schema.models import DUTY
from convergence.engine.operations.options import StackLimits
from convergence.engine.operations.stacks import Stacks
from tests.harness import Context, Harness, hot, things
from tests.reality import goes_on, starts

DIAMOND = {
    'a': 'x',
    'b': {'value': {'get_attr': ['a', 'value']}},
    'c': {'value': 'c', 'link': {'get_resource': 'a'}},
    'd': {'value': {'get_attr': ['b', 'value']}, 'after': ['c']},
}


def test_an_update_without_tags_removes_them_unless_it_keeps_what_is_not_given(harness):
    stack = harness.create({'a': 'x'}, tags=['red'])
    harness.run()
    identity = {'stack_id': stack}
    harness.stacks.update_stack(harness.context, identity, hot({'a': 'y'}), args={'existing': True})
    assert harness.stack(stack).tags == ('red',)
    harness.stacks.update_stack(harness.context, identity, hot({'a': 'z'}))
    assert harness.stack(stack).tags == ()


def test_resources_are_made_in_order_and_get_what_they_refer_to(harness):
    """References and attributes are those of the objects that were made."""
    stack = harness.created(DIAMOND)
    harness.assert_converged(stack, {'a': 'x', 'b': 'x', 'c': 'c', 'd': 'x'}, 'CREATE_COMPLETE')
    order = harness.reality.order('create')
    assert (order[0], order[-1]) == ('a', 'd')
    made = harness.reality.objects[harness.row(stack, 'c').physical_id]
    assert made['link'] == harness.row(stack, 'a').physical_id
    harness.delete(stack)
    harness.run()
    harness.assert_converged(stack, {}, 'DELETE_COMPLETE')
    order = harness.reality.order('delete')
    assert (order[0], order[-1]) == ('d', 'a')


def test_an_empty_stack_is_complete_without_a_message(harness):
    """And so is its way to resources and back."""
    stack = harness.create({})
    harness.assert_converged(stack, {}, 'CREATE_COMPLETE')
    harness.update(stack, {'a': 'x'})
    harness.run()
    harness.update(stack, {})
    harness.run()
    harness.assert_converged(stack, {}, 'UPDATE_COMPLETE')
    harness.delete(stack)
    harness.assert_converged(stack, {}, 'DELETE_COMPLETE')


def test_what_is_unchanged_is_not_visited(harness):
    """No message, no call; and only what a change can reach is looked at."""
    stack = harness.created(DIAMOND)
    sent = harness.messages.sent
    harness.reality.calls.clear()
    harness.update(stack, DIAMOND)
    assert harness.messages.sent == sent
    harness.assert_converged(stack, {'a': 'x', 'b': 'x', 'c': 'c', 'd': 'x'}, 'UPDATE_COMPLETE')
    assert not harness.reality.calls
    harness.update(stack, {**DIAMOND, 'c': {**DIAMOND['c'], 'value': 'new'}})
    harness.run()
    assert {name for _, name in harness.reality.calls} == {'c'}
    harness.assert_converged(stack, {'a': 'x', 'b': 'x', 'c': 'new', 'd': 'x'}, 'UPDATE_COMPLETE')


def test_a_change_runs_through_to_whoever_uses_it(harness):
    """In place: two values change, nothing is made anew."""
    stack = harness.created(DIAMOND)
    harness.update(stack, {**DIAMOND, 'a': 'y'})
    harness.run()
    harness.assert_converged(stack, {'a': 'y', 'b': 'y', 'c': 'c', 'd': 'y'}, 'UPDATE_COMPLETE')
    assert {count for (verb, _), count in harness.reality.calls.items() if verb == 'create'} == {1}
    assert harness.reality.calls['update', 'c'] == 0


def test_an_old_object_goes_only_after_everybody_has_left_it(harness):
    """I7, I8: the replacement is there, dependents use it, then the old one is removed."""
    stack = harness.created(DIAMOND)
    harness.reality.journal.clear()
    harness.update(stack, {**DIAMOND, 'a': {'value': 'x', 'key': 'k'}})
    harness.run()
    harness.assert_converged(stack, {'a': 'x', 'b': 'x', 'c': 'c', 'd': 'x'}, 'UPDATE_COMPLETE')
    steps = [(verb, name) for verb, name, _ in harness.reality.journal if verb in ('create', 'update', 'delete')]
    assert steps == [('create', 'a'), ('update', 'c'), ('delete', 'a')]


def test_an_attribute_that_nobody_asked_for_before_is_read_without_touching_the_object(harness):
    """A new consumer of an old resource."""
    stack = harness.created({'a': 'x'})
    harness.update(stack, {'a': 'x', 'new': {'value': {'get_attr': ['a', 'other']}}})
    harness.run()
    harness.assert_converged(stack, {'a': 'x', 'new': 'x'}, 'UPDATE_COMPLETE')
    assert harness.reality.calls['update', 'a'] == 0


def test_a_long_action_waits_in_its_row(harness):
    """Parked after each poll: no thread is kept, any worker goes on, and the id is known from the start."""
    harness.reality.once['create', 'r'] = [starts(harness.reality)]
    harness.reality.once['poll', 'r'] = [goes_on(), goes_on()]
    stack = harness.create({'r': 'x'})
    harness.deliver()
    row = harness.row(stack, 'r')
    assert (row.owner, row.status, row.progress, row.physical_id) == (None, 'IN_PROGRESS', {'round': 1}, 'r-1')
    for worker in (1, 0, 1):
        harness.fire_timers()
        harness.deliver(worker=worker)
    harness.assert_converged(stack, {'r': 'x'}, 'CREATE_COMPLETE')
    assert harness.reality.calls['poll', 'r'] == 3


def test_a_parked_action_is_found_by_the_sweeper(harness):
    """The timer of the worker that parked it has died with it."""
    harness.reality.once['create', 'r'] = [starts(harness.reality)]
    stack = harness.create({'r': 'x'})
    harness.deliver()
    harness.restart()
    harness.recover()
    harness.assert_converged(stack, {'r': 'x'}, 'CREATE_COMPLETE')


@pytest.mark.parametrize('window', [1, 2, 3])
def test_no_more_messages_wait_than_the_window_allows(engine, window):
    """Bounded dispatch: the backlog stays in rows, whether all are ready at once or become so together."""
    harness = Harness(engine, window=window)
    names = [f'n{number}' for number in range(10)]
    resources = {**things(names), 'hub': {'value': 'x', 'after': names}}
    resources.update({f'm{number}': {'value': 'x', 'after': ['hub']} for number in range(10)})
    stack = harness.create(resources)
    most = 0
    while harness.messages.checks:
        most = max(most, len(harness.messages.checks))
        harness.deliver()
    harness.assert_converged(stack, dict.fromkeys(resources, 'x'), 'CREATE_COMPLETE')
    assert most == window
    harness.delete(stack)
    while harness.messages.checks:
        most = max(most, len(harness.messages.checks))
        harness.deliver()
    harness.assert_converged(stack, {}, 'DELETE_COMPLETE')
    assert most == window


@pytest.mark.parametrize('seed', range(8))
def test_any_sequence_of_templates_ends_as_the_last_one_says(harness, seed):
    """Random graphs, changes, removals, inversions and replacements, superseding each other, in any order of messages."""
    chance = random.Random(seed)
    names = ['a', 'b', 'c', 'd', 'e']
    stack = None
    for _ in range(6):
        chosen = chance.sample(names, chance.randrange(1, 6))
        resources = {}
        for index, name in enumerate(chosen):
            properties = {'value': chance.choice('xyz'), 'key': chance.choice('12')}
            if index and chance.random() < 0.7:
                properties['link'] = {'get_resource': chance.choice(chosen[:index])}
            resources[name] = properties
        if stack is None:
            stack = harness.create(resources)
        else:
            harness.update(stack, resources)
        for _ in range(chance.randrange(0, 6)):
            if harness.messages.checks:
                harness.deliver(chance.randrange(len(harness.messages.checks)), worker=chance.randrange(2))
    harness.run(shuffle=chance)
    action = 'UPDATE'
    harness.assert_converged(stack, {name: wanted['value'] for name, wanted in resources.items()}, f'{action}_COMPLETE')
    for name, wanted in resources.items():
        made = harness.reality.objects[harness.row(stack, name).physical_id]
        assert made['key'] == wanted['key']
        if 'link' in wanted:
            assert made['link'] == harness.row(stack, wanted['link']['get_resource']).physical_id
    harness.delete(stack)
    harness.run(shuffle=chance)
    harness.assert_converged(stack, {}, 'DELETE_COMPLETE')


# --- refusals ---------------------------------------------------------------------------------------------------


def test_names_are_unique_in_a_project_and_only_there(harness):
    """And a stack belongs to whoever made it (I12)."""
    stack = harness.created({'r': 'x'}, name='n')
    with pytest.raises(errors.StackExists, match='n'):
        harness.create({'r': 'x'}, name='n')
    harness.context = Context(project_id='other')
    harness.created({'r': 'x'}, name='n')
    for operation in (
        lambda: harness.update(stack, {'r': 'y'}),
        lambda: harness.delete(stack),
        lambda: harness.cancel(stack, rollback=False),
    ):
        with pytest.raises(errors.EntityNotFound):
            operation()


@pytest.mark.parametrize('name', ['', '1', '-a', 'a b', 'ä', 'x' * 256, 'a\n', 'a/b'])
def test_a_name_that_cannot_be_used_is_refused(harness, name):
    """Before anything is stored."""
    with pytest.raises(errors.Invalid, match='must start with a letter'):
        harness.create({'r': 'x'}, name=name)


@pytest.mark.parametrize(
    'args',
    [
        {'timeout_mins': 'soon'},
        {'timeout_mins': -1},
        {'disable_rollback': 'perhaps'},
        {'tags': ['a,b']},
        {'tags': ['x' * 81]},
        {'tags': 7},
        {'clear_parameters': 'size'},
        {'clear_parameters': [1]},
        {'colour': None},
    ],
)
def test_an_argument_that_is_wrong_is_named(harness, args):
    """Both for create and for update."""
    stack = harness.created({'r': 'x'})
    (argument,) = args
    with pytest.raises(errors.Invalid, match=argument):
        harness.create({'r': 'x'}, name='other', **args)
    with pytest.raises(errors.Invalid, match=argument):
        harness.update(stack, {'r': 'y'}, **args)
    harness.assert_converged(stack, {'r': 'x'}, 'CREATE_COMPLETE')


def test_what_is_not_offered_is_refused_and_not_ignored(harness):
    """Asking for nothing asks for nothing."""
    for args in ({'strict_validate': True}, {'nested_depth': 1}):
        (option,) = args
        with pytest.raises(errors.NotSupported, match=f'{option} is not offered'):
            harness.create({'r': 'x'}, **args)
    with pytest.raises(errors.Invalid, match='unknown option timeout_min; did you mean timeout_mins'):
        harness.create({'r': 'x'}, timeout_min=5)
    assert harness.create({'r': 'x'}, converge=False, adopt_stack_data=None)


def test_a_project_has_no_more_stacks_than_it_may(harness):
    """A deleted stack does not count."""
    limited = Stacks(
        harness.reader,
        harness.compiler,
        harness.traversals,
        StackLimits(max_stacks_per_project=1),
        harness.new_id,
        harness.nested_stops.release,
    )
    harness.stacks = limited
    stack = harness.created({'r': 'x'})
    with pytest.raises(errors.RequestLimitExceeded, match='max_stacks_per_project'):
        harness.create({'r': 'x'}, name='second')
    harness.delete(stack)
    harness.run()
    harness.created({'r': 'y'}, name='second')


@pytest.mark.parametrize(
    'resources',
    [
        {'r': {'type': 'No::Such::Type'}},
        {'r': {'nonsense': 1}},
        {'r': {'after': ['missing']}},
        {'r': {'link': {'get_attr': ['r2', 'no_such_attribute']}}, 'r2': 'x'},
        {'r': {'after': ['s']}, 's': {'after': ['r']}},
    ],
)
def test_a_template_that_is_wrong_changes_nothing(harness, resources):
    """Neither a new stack nor one that is there."""
    with pytest.raises(errors.StackValidationFailed):
        harness.create(resources)
    stack = harness.created({'r': 'x'})
    with pytest.raises(errors.StackValidationFailed):
        harness.update(stack, resources)
    harness.assert_converged(stack, {'r': 'x'}, 'CREATE_COMPLETE')


def test_what_a_partial_update_does_not_mention_stays(harness):
    """Only a parameter is sent; template, files and other parameters are those that the stack has."""
    source = {
        'heat_template_version': '2018-08-31',
        'parameters': {'p': {'type': 'string'}, 'q': {'type': 'string', 'default': 'd'}},
        'resources': {
            'r': {'type': 'Test::Thing', 'properties': {'value': {'get_param': 'p'}, 'link': {'get_param': 'q'}}}
        },
    }
    identity = harness.stacks.create_stack(harness.context, 's', source, {'parameters': {'p': '1', 'q': '2'}})
    harness.run()
    existing = {'existing': True}
    harness.stacks.update_stack(harness.context, identity, None, {'parameters': {'p': '3'}}, None, existing)
    harness.run()
    (made,) = harness.reality.objects.values()
    assert (made['value'], made['link']) == ('3', '2')
    harness.stacks.update_stack(harness.context, identity, None, {}, None, {**existing, 'clear_parameters': ['q']})
    harness.run()
    (made,) = harness.reality.objects.values()
    assert (made['value'], made['link']) == ('3', 'd')


def test_nothing_secret_is_shown_when_the_database_complains(harness):
    """I11: an error of the database does not carry the values that were to be written."""

    def refuse(*arguments):
        raise RuntimeError('full')

    event.listen(harness.engine, 'before_cursor_execute', refuse)
    try:
        with harness.store.writing() as connection, pytest.raises(Exception) as raised:
            connection.execute(DUTY.insert(), [{'name': 's3cr3t', 'holder': None, 'until': 0.0}])
    finally:
        event.remove(harness.engine, 'before_cursor_execute', refuse)
    with harness.store.writing() as connection, pytest.raises(Exception) as duplicate:
        connection.execute(DUTY.insert(), [{'name': 's3cr3t', 'holder': None, 'until': 0.0}] * 2)
    assert 's3cr3t' not in str(raised.value) + str(duplicate.value)
