"""Hooks: an operation pauses at a resource until a person lets it go on; nobody waits in a thread."""

import pytest

from convergence import errors
from convergence.core.model import Action, Hook
from convergence.engine.notifications.stall_reports import waiting_for
from convergence.engine.reads.explain import ExplainReads
from convergence.resources.contract import FinalFailure
from tests.harness import Crash
from tests.reality import fails

CHAIN = {'a': 'x', 'b': {'value': 'x', 'after': ['a']}}


def template(resources):
    body = {}
    for name, given in resources.items():
        wanted = dict(given) if isinstance(given, dict) else {'value': given}
        after = wanted.pop('after', [])
        body[name] = {'type': 'Test::Thing', 'properties': wanted, 'depends_on': after}
    return {'heat_template_version': '2018-08-31', 'resources': body}


def hooked(**hooks):
    return {'resource_registry': {'resources': {name: {'hooks': wanted} for name, wanted in hooks.items()}}}


def create(harness, resources, environment, **args):
    made = harness.stacks.create_stack(harness.context, 'stack', template(resources), environment, None, args)
    return made['stack_id']


def update(harness, stack, resources, environment, **args):
    harness.stacks.update_stack(harness.context, {'stack_id': stack}, template(resources), environment, None, args)


def clear(harness, stack, name, hook):
    harness.signals.resource_signal(harness.context, {'stack_id': stack}, name, {'unset_hook': hook})


def told(harness, stack, name):
    return [
        (f'{event.action}_{event.status}', event.reason)
        for event in harness.reader.events(stack)
        if event.resource_name == name
    ]


def test_a_resource_is_not_made_before_its_hook_is_cleared(harness):
    stack = create(harness, CHAIN, hooked(a='pre-create'))
    harness.run()
    assert harness.reality.order('create') == []
    assert harness.state(stack) == 'CREATE_IN_PROGRESS'
    assert told(harness, stack, 'a') == [('INIT_COMPLETE', 'CREATE paused until Hook pre-create is cleared')]
    clear(harness, stack, 'a', 'pre-create')
    harness.run()
    harness.assert_converged(stack, {'a': 'x', 'b': 'x'}, 'CREATE_COMPLETE')
    assert told(harness, stack, 'a') == [
        ('INIT_COMPLETE', 'CREATE paused until Hook pre-create is cleared'),
        ('INIT_COMPLETE', 'Hook pre-create is cleared'),
        ('CREATE_IN_PROGRESS', 'state changed'),
        ('CREATE_COMPLETE', 'state changed'),
    ]


def test_what_comes_after_waits_as_well(harness):
    stack = create(harness, CHAIN, hooked(a='post-create'))
    harness.run()
    assert harness.reality.order('create') == ['a']
    assert told(harness, stack, 'a')[-2:] == [
        ('CREATE_COMPLETE', 'state changed'),
        ('CREATE_COMPLETE', 'CREATE paused until Hook post-create is cleared'),
    ]
    clear(harness, stack, 'a', 'post-create')
    harness.run()
    harness.assert_converged(stack, {'a': 'x', 'b': 'x'}, 'CREATE_COMPLETE')
    assert harness.reality.order('create') == ['a', 'b']


@pytest.mark.parametrize('changed', ['y', {'value': 'x', 'key': 'k'}])
def test_an_update_and_a_replacement_pause_before_and_after(harness, changed):
    stack = create(harness, CHAIN, {})
    harness.run()
    both = hooked(a=['pre-update', 'post-update'])
    update(harness, stack, {**CHAIN, 'a': changed}, both)
    harness.run()
    calls = sum(harness.reality.calls.values())
    assert told(harness, stack, 'a')[-1] == ('CREATE_COMPLETE', 'UPDATE paused until Hook pre-update is cleared')
    clear(harness, stack, 'a', 'pre-update')
    harness.run()
    assert sum(harness.reality.calls.values()) > calls
    assert harness.state(stack) == 'UPDATE_IN_PROGRESS'
    assert told(harness, stack, 'a')[-1][1] == 'UPDATE paused until Hook post-update is cleared'
    clear(harness, stack, 'a', 'post-update')
    harness.run()
    assert harness.state(stack) == 'UPDATE_COMPLETE'
    harness.assert_quiet()


def test_an_update_pauses_before_what_does_not_change_and_not_after_it(harness):
    stack = create(harness, CHAIN, {})
    harness.run()
    update(harness, stack, CHAIN, hooked(a=['pre-update', 'post-update'], b='pre-create'))
    harness.run()
    assert told(harness, stack, 'a')[-1] == ('CREATE_COMPLETE', 'UPDATE paused until Hook pre-update is cleared')
    clear(harness, stack, 'a', 'pre-update')
    harness.run()
    harness.assert_converged(stack, {'a': 'x', 'b': 'x'}, 'UPDATE_COMPLETE')
    assert harness.reality.order('update') == []


def test_a_deletion_pauses_before_and_after(harness):
    stack = create(harness, CHAIN, hooked(b=['pre-delete', 'post-delete']))
    harness.run()
    harness.delete(stack)
    harness.run()
    assert harness.reality.order('delete') == []
    clear(harness, stack, 'b', 'pre-delete')
    harness.run()
    assert harness.reality.order('delete') == ['b']
    assert told(harness, stack, 'b')[-2:] == [
        ('DELETE_COMPLETE', 'state changed'),
        ('DELETE_COMPLETE', 'DELETE paused until Hook post-delete is cleared'),
    ]
    clear(harness, stack, 'b', 'post-delete')
    harness.run()
    harness.assert_converged(stack, {}, 'DELETE_COMPLETE')
    assert harness.reality.order('delete') == ['b', 'a']


def test_a_hook_that_nobody_waits_at_cannot_be_cleared(harness):
    stack = create(harness, CHAIN, hooked(a='pre-create'))
    harness.run()
    for name, hook in (('b', 'pre-create'), ('a', 'pre-update')):
        with pytest.raises(errors.InvalidBreakPointHook, match=f'The "{hook}" hook is not defined on {name}'):
            clear(harness, stack, name, hook)
    with pytest.raises(errors.InvalidBreakPointHook, match='Invalid hook type "pre-craete" for a'):
        clear(harness, stack, 'a', 'pre-craete')
    with pytest.raises(errors.ResourceNotFound, match=r'The Resource \(z\) could not be found in Stack stack\.'):
        clear(harness, stack, 'z', 'pre-create')
    clear(harness, stack, 'a', 'pre-create')
    with pytest.raises(errors.InvalidBreakPointHook):
        clear(harness, stack, 'a', 'pre-create')


def test_a_paused_row_is_left_alone_by_sweeps_and_named_to_whoever_asks(harness):
    stack = create(harness, CHAIN, hooked(a='pre-create'))
    harness.run()
    traversal = harness.stack(stack).traversal_id
    sent = harness.messages.sent
    harness.recover()
    assert harness.messages.sent == sent
    assert waiting_for(harness.reader, traversal) == 'waiting for a (paused until its hook pre-create is cleared)'
    explained = ExplainReads(harness.reader, harness.compiler).stack_explain(harness.context, {'stack_id': stack})
    assert [(node['state'], node['hook']) for node in explained['frontier']] == [('paused', 'pre-create')]
    assert 'it is paused until a hook is cleared: a (pre-create).' in explained['summary']
    row = harness.row(stack, 'a')
    assert (row.owner, row.hook, row.waits_at(traversal)) == (None, Hook.PRE_CREATE, Hook.PRE_CREATE)


def test_a_cleared_hook_is_found_by_the_sweeper_when_the_message_is_lost(harness):
    """All processes may die at the hook as well: what is known of it is in the row."""
    stack = create(harness, CHAIN, hooked(a='pre-create'))
    harness.run()
    harness.restart()
    harness.messages.lost = True
    clear(harness, stack, 'a', 'pre-create')
    harness.messages.lost = False
    harness.recover()
    harness.assert_converged(stack, {'a': 'x', 'b': 'x'}, 'CREATE_COMPLETE')


def test_an_update_during_the_pause_decides_anew(harness):
    stack = create(harness, CHAIN, hooked(a='pre-create'))
    harness.run()
    update(harness, stack, CHAIN, hooked(a='pre-create'))
    with pytest.raises(errors.InvalidBreakPointHook):
        clear(harness, stack, 'a', 'pre-create')
    harness.run()
    assert harness.reality.order('create') == []
    clear(harness, stack, 'a', 'pre-create')
    harness.run()
    harness.assert_converged(stack, {'a': 'x', 'b': 'x'}, 'UPDATE_COMPLETE')


def test_an_update_without_the_hook_goes_on(harness):
    stack = create(harness, CHAIN, hooked(a=['pre-create']))
    harness.run()
    update(harness, stack, CHAIN, {})
    harness.run()
    harness.assert_converged(stack, {'a': 'x', 'b': 'x'}, 'UPDATE_COMPLETE')


@pytest.mark.parametrize('hook', ['pre-create', 'post-create'])
def test_a_deletion_during_the_pause_does_not_wait(harness, hook):
    stack = create(harness, CHAIN, hooked(a=hook))
    harness.run()
    harness.delete(stack)
    harness.run()
    harness.assert_converged(stack, {}, 'DELETE_COMPLETE')


def test_a_failed_resource_pauses_before_it_is_repaired(harness):
    """F170."""
    harness.reality.once['create', 'a'] = [fails(FinalFailure('no'))]
    stack = create(harness, {'a': 'x'}, {})
    harness.run()
    assert harness.state(stack) == 'CREATE_FAILED'
    update(harness, stack, {'a': 'x'}, hooked(a='pre-update'))
    harness.run()
    assert told(harness, stack, 'a')[-1] == ('CREATE_FAILED', 'UPDATE paused until Hook pre-update is cleared')
    clear(harness, stack, 'a', 'pre-update')
    harness.run()
    harness.assert_converged(stack, {'a': 'x'}, 'UPDATE_COMPLETE')


def test_a_rollback_is_not_paused(harness):
    hooks = hooked(a=['pre-update', 'post-update'], b=['pre-delete', 'post-delete'])
    stack = create(harness, {'a': 'x'}, hooks, disable_rollback=False)
    harness.run()
    harness.reality.once['create', 'b'] = [fails(FinalFailure('no'))]
    update(harness, stack, {'a': 'y', 'b': {'value': 'x', 'after': ['a']}}, hooks, disable_rollback=False)
    harness.run()
    clear(harness, stack, 'a', 'pre-update')
    harness.run()
    clear(harness, stack, 'a', 'post-update')
    harness.run()
    harness.assert_converged(stack, {'a': 'x'}, 'ROLLBACK_COMPLETE')


def test_a_thousand_paused_resources_hold_nobody(harness):
    """F171: with more rows paused than nodes are cast at once, the others still get their turn."""
    many = {f'r{number}': 'x' for number in range(100)}
    stack = create(harness, {**many, 'zz': 'x'}, hooked(**{'r*': 'pre-create'}))
    harness.run()
    assert harness.reality.order('create') == ['zz']
    assert all(harness.row(stack, name).owner is None for name in many)
    assert harness.stack(stack).action is Action.CREATE


@pytest.mark.parametrize('commits', range(1, 22))
def test_everybody_may_die_after_any_commit(harness, commits):
    """F168: pauses and what was cleared are in the rows. Nothing is made twice, and the end is that of a quiet run."""
    hooks = [('a', 'pre-create'), ('a', 'post-create'), ('b', 'pre-create')]
    stack = create(harness, CHAIN, hooked(a=['pre-create', 'post-create'], b='pre-create'))
    harness.store.crash_after = harness.store.commits + commits
    for name, hook in hooks:
        surviving(harness, harness.run)
        surviving(harness, lambda name=name, hook=hook: clear_once(harness, stack, name, hook))
    surviving(harness, harness.run)
    harness.store.crash_after = 0
    harness.recover()
    harness.assert_converged(stack, {'a': 'x', 'b': 'x'}, 'CREATE_COMPLETE')
    assert harness.reality.order('create') == ['a', 'b']


def surviving(harness, step):
    """Do something; where everybody dies meanwhile, others take over, and it is done again."""
    try:
        step()
    except Crash:
        harness.restart()
        harness.recover()
        step()


def clear_once(harness, stack, name, hook):
    """Clear a hook, unless whoever asked has died after it was done."""
    row = harness.rows(stack, name)[-1]
    if not row.has_passed(Hook(hook), harness.stack(stack).traversal_id):
        clear(harness, stack, name, hook)
