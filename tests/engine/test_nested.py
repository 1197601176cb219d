"""Stacks in stacks: each is a stack of its own, and what happens to one happens to all below it."""

from __future__ import annotations

from typing import Any

import pytest
import yaml

from convergence import errors
from convergence.concurrency import Task
from convergence.core.model import Status
from convergence.core.rows import Stack
from convergence.db.scopes import NewStack
from convergence.resources.contract import FinalFailure, InProgress
from tests.harness import Harness, hot
from tests.reality import fails

CHILD = 'child.yaml'


def nested(value: str = 'x', count: int = 1, **more: Any) -> str:
    """A template of things whose value is a parameter."""
    things = {f'thing{number}': {'value': {'get_param': 'value'}} for number in range(count)}
    return hot(
        {**things, **more},
        parameters={'value': {'type': 'string', 'default': value}},
        outputs={'told': {'value': {'get_attr': ['thing0', 'value']}}},
    )


def tree(depth: int) -> dict[str, str]:
    """Files of stacks in stacks: ``level1.yaml`` has ``level2.yaml`` in it, and so on; the last one has a thing."""
    parameters = {'value': {'type': 'string'}}
    files = {
        f'level{level}.yaml': hot(
            {'below': {'type': f'level{level + 1}.yaml', 'value': {'get_param': 'value'}}}, parameters=parameters
        )
        for level in range(1, depth)
    }
    return {**files, f'level{depth}.yaml': nested()}


def create(harness: Harness, resources: dict[str, Any], files: dict[str, str], **args: Any) -> str:
    """Accept a stack with files; its id."""
    identity = harness.stacks.create_stack(harness.context, 's', hot(resources), files=files, args=args)
    return str(identity['stack_id'])


def update(harness: Harness, stack_id: str, resources: dict[str, Any], files: dict[str, str]) -> None:
    """Accept an update with files."""
    harness.stacks.update_stack(harness.context, {'stack_id': stack_id}, hot(resources), files=files)


def child_of(harness: Harness, stack_id: str, name: str = 'child') -> Stack:
    """The nested stack that a resource is."""
    return harness.stack(harness.row(stack_id, name).physical_id or '')


def lowest(harness: Harness, stack_id: str, depth: int) -> Stack:
    """The stack at the end of a `tree`."""
    found = harness.stack(stack_id)
    for _ in range(depth):
        found = child_of(harness, found.id, 'below')
    return found


def states(harness: Harness, stack: Stack) -> str:
    return f'{stack.action}_{stack.status}: {stack.status_reason}'


def test_a_template_is_a_resource_and_its_outputs_are_attributes(harness):
    stack_id = create(
        harness,
        {
            'child': {'type': CHILD, 'value': 'hello'},
            'reader': {'value': {'get_attr': ['child', 'told']}},
            'all': {'link': {'get_attr': ['child', 'outputs']}},
            'inside': {'value': {'get_attr': ['child', 'resource.thing0.value']}},
        },
        {CHILD: nested()},
    )
    harness.run()
    stack, child = harness.stack(stack_id), child_of(harness, stack_id)
    assert states(harness, stack) == 'CREATE_COMPLETE: Stack CREATE completed successfully'
    assert states(harness, child) == 'CREATE_COMPLETE: Stack CREATE completed successfully'
    assert (child.parent_id, child.root_id, child.nested_depth) == (stack_id, stack_id, 1)
    assert child.name.startswith('s-child-')
    assert harness.reality.values() == {'thing0': 'hello', 'reader': 'hello', 'inside': 'hello', 'all': ''}
    assert harness.row(stack_id, 'all').properties['link'] == {'told': 'hello'}
    harness.delete(stack_id)
    harness.run()
    assert harness.reality.objects == {}
    assert harness.stack(child.id).deleted_at is not None
    assert harness.state(stack_id) == 'DELETE_COMPLETE'


def test_a_nested_stack_has_the_attribute_that_every_resource_has(harness):
    """It was accepted, and whoever asked for it failed."""
    stack_id = create(
        harness,
        {
            'child': {'type': CHILD, 'value': 'hello'},
            'own': {'type': 'own.yaml'},
            'reader': {'link': {'child': {'get_attr': ['child', 'show']}, 'own': {'get_attr': ['own', 'show']}}},
        },
        {CHILD: nested(), 'own.yaml': hot({'a': 'x'}, outputs={'show': {'value': 'me'}})},
    )
    harness.run()
    assert states(harness, harness.stack(stack_id)) == 'CREATE_COMPLETE: Stack CREATE completed successfully'
    assert harness.row(stack_id, 'reader').properties['link'] == {'child': None, 'own': 'me'}


def test_an_output_that_a_nested_stack_lacks_is_refused_or_fails_who_asks_for_it(harness):
    """F162: where the template is known only later, too, nobody waits for it."""
    child = {'type': CHILD, 'value': 'a'}
    reader = {'value': {'get_attr': ['child', 'absent']}}
    with pytest.raises(errors.StackValidationFailed, match=r'child\.yaml has no attribute absent'):
        create(harness, {'child': child, 'reader': reader}, {CHILD: nested()})
    child = {'type': 'AWS::CloudFormation::Stack', 'TemplateURL': CHILD}
    reader = {'value': {'get_attr': ['child', 'Outputs.absent']}}
    stack_id = create(harness, {'child': child, 'reader': reader}, {CHILD: nested()}, disable_rollback=True)
    harness.run()
    assert harness.state(stack_id) == 'CREATE_FAILED'
    assert 'no output absent' in harness.stack(stack_id).status_reason
    assert harness.row(stack_id, 'child').status is Status.COMPLETE


def test_nobody_asks_for_the_outputs_of_a_template_that_has_none(harness, monkeypatch):
    asked: list[str] = []
    read = harness.read_nested_stack
    monkeypatch.setattr(harness, 'read_nested_stack', lambda context, key: asked.append(key) or read(context, key))
    stack_id = create(harness, {'silent': {'type': 'silent.yaml'}}, {'silent.yaml': hot({'thing0': 'x'})})
    harness.run()
    update(harness, stack_id, {'silent': {'type': 'silent.yaml'}}, {'silent.yaml': hot({'thing0': 'y'})})
    harness.run()
    assert asked == []
    telling = {'silent.yaml': hot({'thing0': 'y'}, outputs={'told': {'value': 1}})}
    update(harness, stack_id, {'silent': {'type': 'silent.yaml'}}, telling)
    harness.run()
    assert harness.row(stack_id, 'silent').output.shown == {'told': 1}


def test_a_row_that_another_update_waits_for_is_not_left_parked_for_the_one_before(harness):
    """The stack is updated just before the nested one is planned: no wake-up is lost, and no sweep needed."""
    stack_id = create(harness, {'child': {'type': CHILD, 'value': 'a'}}, {CHILD: nested()})
    goal = {'child': {'type': CHILD, 'value': 'b'}}
    harness.store.before(NewStack, lambda: update(harness, stack_id, goal, {CHILD: nested()}))
    harness.run()
    assert states(harness, harness.stack(stack_id)).startswith('UPDATE_COMPLETE')
    assert harness.reality.values() == {'thing0': 'b'}


@pytest.mark.parametrize(
    ('content', 'is_silent'), [(nested(), False), (hot({'thing0': 'x'}), True)], ids=['with outputs', 'without']
)
def test_an_engine_whose_answer_is_lost_says_again_what_it_has_begun(harness, content, is_silent):
    act, told = harness.nesting.act_on_nested_stack, []

    def asked_twice(*arguments: Any) -> Any:
        told.extend((act(*arguments), act(*arguments)))
        return told[-1]

    harness.nesting.act_on_nested_stack = asked_twice
    child = {'type': CHILD} if is_silent else {'type': CHILD, 'value': 'a'}
    stack_id = create(harness, {'child': child}, {CHILD: content})
    harness.run()
    assert harness.state(stack_id) == 'CREATE_COMPLETE'
    first, again = told
    assert first == again
    assert (first['handoff']['traversal_id'], first['is_silent']) == (first['traversal_id'], is_silent)
    assert len(harness.reader.traversals(child_of(harness, stack_id).id)) == 1


@pytest.mark.parametrize('count', [64, 65, 130])
def test_whoever_has_lost_the_answer_tells_of_all_that_nobody_else_will_tell_of(harness, count):
    """More than may be told of at once: those behind the window are told of by whoever takes the one before."""
    act, asked = harness.nesting.act_on_nested_stack, []

    def lose_the_first(*arguments: Any) -> Any:
        asked.append(act(*arguments))
        if len(asked) == 1:
            raise errors.NoAnswer('no answer in time')
        return asked[-1]

    harness.nesting.act_on_nested_stack = lose_the_first
    stack_id = create(harness, {'child': {'type': CHILD, 'value': 'a'}}, {CHILD: nested(count=count)})
    harness.run()
    assert harness.state(stack_id) == 'CREATE_COMPLETE'
    assert asked[0]['handoff']['nodes'] == asked[1]['handoff']['nodes'] != ()


def test_workers_of_the_version_before_are_told_of_nodes_and_look_themselves(harness):
    """They say nothing of what the end of the nested stack means, and do not know what the answer holds now."""
    act = harness.nesting.act_on_nested_stack

    def without_ends(context: Any, resource_id: str, fence: int, step: int, node: int | None, ends: Any) -> Any:
        answer = act(context, resource_id, fence, step, node)
        assert answer['handoff'] is None or answer['handoff']['nodes'] == ()
        return answer

    harness.nesting.act_on_nested_stack = without_ends
    stack_id = create(harness, {'below': {'type': 'level1.yaml', 'value': 'a'}}, tree(2))
    harness.run()
    assert harness.state(stack_id) == 'CREATE_COMPLETE'
    harness.acted(lowest(harness, stack_id, 1).id, 'suspend')
    update(harness, stack_id, {'below': {'type': 'level1.yaml', 'value': 'b'}}, tree(2))
    harness.run()
    assert harness.state(stack_id) == 'UPDATE_COMPLETE'
    assert harness.reality.values() == {'thing0': 'b'}
    harness.delete(stack_id)
    harness.run()
    assert harness.state(stack_id) == 'DELETE_COMPLETE'


def test_an_update_goes_down_and_what_does_not_change_is_not_touched(harness):
    files = tree(3)
    stack_id = create(harness, {'below': {'type': 'level1.yaml', 'value': 'a'}, 'beside': 'x'}, files)
    harness.run()
    assert harness.reality.values() == {'thing0': 'a', 'beside': 'x'}
    before = lowest(harness, stack_id, 3)
    update(harness, stack_id, {'below': {'type': 'level1.yaml', 'value': 'b'}, 'beside': 'x'}, files)
    harness.run()
    assert states(harness, harness.stack(stack_id)).startswith('UPDATE_COMPLETE')
    assert harness.reality.values() == {'thing0': 'b', 'beside': 'x'}
    assert lowest(harness, stack_id, 3).id == before.id
    assert harness.reality.calls['create', 'thing0'] == 1
    steps = len(harness.reality.journal)
    update(harness, stack_id, {'below': {'type': 'level1.yaml', 'value': 'b'}, 'beside': 'x'}, files)
    harness.run()
    assert len(harness.reality.journal) == steps
    assert lowest(harness, stack_id, 3).action == 'UPDATE'


def test_a_template_that_has_changed_is_updated_though_no_property_has(harness):
    stack_id = create(harness, {'below': {'type': 'level1.yaml', 'value': 'a'}}, tree(2))
    harness.run()
    update(
        harness, stack_id, {'below': {'type': 'level1.yaml', 'value': 'a'}}, {**tree(2), 'level2.yaml': nested(count=2)}
    )
    harness.run()
    assert states(harness, harness.stack(stack_id)).startswith('UPDATE_COMPLETE')
    assert harness.reality.values() == {'thing0': 'a', 'thing1': 'a'}


@pytest.mark.parametrize('shuffled', [3, 4])
def test_a_failure_comes_up_with_its_cause_and_a_rollback_goes_down(harness, shuffled):
    import random

    files = tree(3)
    stack_id = create(harness, {'below': {'type': 'level1.yaml', 'value': 'a'}}, files, disable_rollback=False)
    harness.run()
    harness.reality.once['update', 'thing0'] = [fails(FinalFailure('Error: no such flavor'))]
    update(harness, stack_id, {'below': {'type': 'level1.yaml', 'value': 'b'}}, files)
    harness.run(shuffle=random.Random(shuffled))
    harness.recover()
    stack = harness.stack(stack_id)
    assert states(harness, stack) == (
        'ROLLBACK_COMPLETE: Stack ROLLBACK completed successfully; Resource UPDATE failed: Error: resources.below.'
        'resources.below.resources.below.resources.thing0: no such flavor'
    )
    assert harness.reality.values() == {'thing0': 'a'}
    assert {lowest(harness, stack_id, depth).status for depth in range(4)} == {Status.COMPLETE}


def test_what_turns_out_to_be_wrong_deep_below_is_told_with_one_path_to_it(harness):
    """A value that comes from another resource is no number, as the innermost template wants."""
    inner = {**yaml.safe_load(nested()), 'parameters': {'value': {'type': 'number'}}}
    files = {**tree(3), 'level3.yaml': yaml.safe_dump(inner)}
    below = {'type': 'level1.yaml', 'value': {'get_attr': ['first', 'value']}}
    stack_id = create(harness, {'first': 'x', 'below': below}, files, disable_rollback=True)
    harness.run()
    assert states(harness, harness.stack(stack_id)).startswith(
        'CREATE_FAILED: Resource CREATE failed: resources.below.resources.below.resources.below (level3.yaml): '
        'Property value: the value must be a number, not a text\n  level2.yaml, line '
    )


def test_five_levels_are_made_changed_and_removed_by_one_worker_with_one_thread(harness):
    """F116: no thread waits for a nested stack: one is enough, however deep they are."""
    harness.die(harness.workers.pop())
    stack_id = create(harness, {'below': {'type': 'level1.yaml', 'value': 'a'}}, tree(5))
    harness.run()
    assert states(harness, harness.stack(stack_id)).startswith('CREATE_COMPLETE')
    assert lowest(harness, stack_id, 5).nested_depth == 5
    update(harness, stack_id, {'below': {'type': 'level1.yaml', 'value': 'b'}}, tree(5))
    harness.run()
    assert harness.reality.values() == {'thing0': 'b'}
    harness.delete(stack_id)
    harness.run()
    assert harness.state(stack_id) == 'DELETE_COMPLETE'
    assert harness.reality.objects == {}


def test_an_update_overtakes_the_one_that_a_nested_stack_is_busy_with(harness):
    """F115: it reaches level 3 while the old one is still under way there."""
    files = tree(3)
    stack_id = create(harness, {'below': {'type': 'level1.yaml', 'value': 'a'}}, files)
    harness.run()
    harness.reality.always['update', 'thing0'] = lambda call: InProgress({}, poll_after_s=1e6, is_told=True)
    harness.reality.always['poll', 'thing0'] = lambda call: InProgress({}, poll_after_s=1e6, is_told=True)
    update(harness, stack_id, {'below': {'type': 'level1.yaml', 'value': 'b'}}, files)
    harness.run()
    assert harness.state(lowest(harness, stack_id, 3).id) == 'UPDATE_IN_PROGRESS'
    update(harness, stack_id, {'below': {'type': 'level1.yaml', 'value': 'c'}}, files)
    harness.run()
    last = lowest(harness, stack_id, 3)
    traversals = harness.reader.traversals(last.id)
    assert [each.status for each in traversals] == ['COMPLETE', 'SUPERSEDED', 'RUNNING']
    harness.reality.always.clear()
    harness.recover()
    assert harness.state(stack_id) == 'UPDATE_COMPLETE'
    assert harness.reality.values() == {'thing0': 'c'}


def test_a_creation_that_is_under_way_below_is_overtaken_too(harness):
    harness.reality.always['create', 'thing0'] = lambda call: InProgress({}, poll_after_s=1e6, is_told=True)
    harness.reality.always['poll', 'thing0'] = lambda call: InProgress({}, poll_after_s=1e6, is_told=True)
    stack_id = create(harness, {'child': {'type': CHILD, 'value': 'a'}}, {CHILD: nested()})
    harness.run()
    before = child_of(harness, stack_id)
    assert harness.state(before.id) == 'CREATE_IN_PROGRESS'
    other = hot({'other': {'value': {'get_param': 'value'}}}, parameters={'value': {'type': 'string'}})
    harness.reality.always.clear()
    update(harness, stack_id, {'child': {'type': CHILD, 'value': 'b'}}, {CHILD: other})
    harness.recover()
    assert harness.state(stack_id) == 'UPDATE_COMPLETE'
    assert child_of(harness, stack_id).id == before.id
    assert harness.reality.values() == {'other': 'b'}


def test_a_delete_reaches_every_level_of_what_is_still_being_made(harness):
    """F117."""
    harness.reality.always['create', 'thing0'] = lambda call: InProgress({}, poll_after_s=1e6, is_told=True)
    stack_id = create(harness, {'below': {'type': 'level1.yaml', 'value': 'a'}}, tree(3))
    harness.run()
    below = [lowest(harness, stack_id, depth).id for depth in (1, 2, 3)]
    harness.reality.always.clear()
    harness.delete(stack_id)
    harness.recover()
    assert harness.state(stack_id) == 'DELETE_COMPLETE'
    assert [harness.state(each) for each in below] == ['DELETE_COMPLETE'] * 3
    assert harness.reality.objects == {}


def stop_below(harness: Harness) -> None:
    """All that sweeps and workers do until nothing goes on that nobody wants."""
    for _ in range(8):
        harness.run()
        harness.sweep()
        for row in harness.sweeps.parked_at_rest(10):  # with its next heartbeat a worker sees to these
            harness.workers[0]._parts.checks.interrupt(row, Task('interrupt'))


def test_a_cancel_and_a_failed_sibling_leave_nothing_running_below(harness):
    """F105, F118: and the user can update soon after."""
    harness.reality.always['create', 'thing0'] = lambda call: InProgress({}, poll_after_s=1e6, is_told=True)
    harness.reality.always['poll', 'thing0'] = lambda call: InProgress({}, poll_after_s=1e6, is_told=True)
    harness.reality.once['create', 'bad'] = [fails(FinalFailure('broken'))]
    resources = {'below': {'type': 'level1.yaml', 'value': 'a'}, 'bad': 'x'}
    stack_id = create(harness, resources, tree(3), disable_rollback=True)
    stop_below(harness)
    assert harness.state(stack_id) == 'CREATE_FAILED'
    last = lowest(harness, stack_id, 3)
    assert [harness.state(lowest(harness, stack_id, depth).id) for depth in (1, 2, 3)] == ['CREATE_FAILED'] * 3, last
    harness.reality.always.clear()
    update(harness, stack_id, resources, tree(3))
    harness.recover()
    assert harness.state(stack_id) == 'UPDATE_COMPLETE'
    assert harness.reality.values() == {'thing0': 'a', 'bad': 'x'}
    assert lowest(harness, stack_id, 3).id == last.id


def test_what_an_update_that_fails_has_begun_below_is_cancelled_and_not_taken_back(harness):
    """F105: the update said that it is not to be rolled back."""
    stack_id = create(harness, {'below': {'type': 'level1.yaml', 'value': 'a'}, 'bad': 'x'}, tree(3))
    harness.run()
    for verb in ('update', 'poll'):
        harness.reality.always[verb, 'thing0'] = lambda call: InProgress({}, poll_after_s=1e6, is_told=True)
    harness.reality.once['update', 'bad'] = [fails(FinalFailure('broken'))]
    args = {'disable_rollback': True}
    template = hot({'below': {'type': 'level1.yaml', 'value': 'b'}, 'bad': 'y'})
    harness.stacks.update_stack(harness.context, {'stack_id': stack_id}, template, files=tree(3), args=args)
    stop_below(harness)
    assert [harness.state(lowest(harness, stack_id, depth).id) for depth in range(4)] == ['UPDATE_FAILED'] * 4
    actions = [each.action for each in harness.reader.traversals(lowest(harness, stack_id, 3).id)]
    assert actions == ['CREATE', 'UPDATE']


def test_a_cancel_that_comes_after_the_end_of_a_nested_stack_changes_nothing_in_it(harness):
    """F119: the stack is complete, and its resource has not heard of that yet."""
    asked, cancel = [], harness.nested_stops.cancel_nested_stack

    def told(*which: Any) -> None:
        asked.append(which)
        cancel(*which)

    harness.nested_stops.cancel_nested_stack = told
    stack_id = create(harness, {'child': {'type': CHILD, 'value': 'a'}}, {CHILD: nested()}, disable_rollback=True)
    while (row := harness.row(stack_id, 'child')).token is None or harness.state(row.token) != 'CREATE_COMPLETE':
        harness.deliver()
    harness.messages.checks.clear()
    child = child_of(harness, stack_id)
    harness.stacks.stack_cancel_update(harness.context, {'stack_id': stack_id}, cancel_with_rollback=False, now=True)
    for interrupted in harness.sweeps.parked_at_rest(10):  # with its next heartbeat a worker sees to it
        harness.workers[0]._parts.checks.interrupt(interrupted, Task('interrupt'))
    assert (len(asked), harness.state(stack_id)) == (1, 'CREATE_FAILED')
    assert (harness.state(child.id), harness.stack(child.id).traversal_id) == ('CREATE_COMPLETE', child.traversal_id)
    update(harness, stack_id, {'child': {'type': CHILD, 'value': 'a'}}, {CHILD: nested()})
    harness.recover()
    assert harness.state(stack_id) == 'UPDATE_COMPLETE'
    assert (child_of(harness, stack_id).id, harness.reality.calls['create', 'thing0']) == (child.id, 1)


def test_suspend_resume_and_check_go_down(harness):
    stack_id = create(harness, {'below': {'type': 'level1.yaml', 'value': 'a'}}, tree(2))
    harness.run()
    for action in ('suspend', 'resume', 'check'):
        harness.acted(stack_id, action)
        assert harness.state(lowest(harness, stack_id, 2).id) == f'{action.upper()}_COMPLETE'
        assert bool(harness.reality.asleep) is (action == 'suspend')


def test_an_update_wakes_a_nested_stack_that_somebody_suspended(harness):
    stack_id = create(harness, {'below': {'type': 'level1.yaml', 'value': 'a'}}, tree(2))
    harness.run()
    harness.acted(lowest(harness, stack_id, 1).id, 'suspend')
    update(harness, stack_id, {'below': {'type': 'level1.yaml', 'value': 'b'}}, tree(2))
    harness.recover()
    assert harness.state(stack_id) == 'UPDATE_COMPLETE'
    assert harness.reality.values() == {'thing0': 'b'}
    assert not harness.reality.asleep


def test_an_update_wakes_a_nested_stack_that_never_heard_of_its_resume(harness):
    """Found by `tree:12` of the simulator: a worker died when it had written that it resumes the stack."""
    stack_id = create(harness, {'below': {'type': 'level1.yaml', 'value': 'a'}}, tree(2))
    harness.run()
    harness.acted(stack_id, 'suspend')
    act = harness.nesting.act_on_nested_stack

    def refuse(*args: Any, **kwargs: Any) -> Any:
        raise errors.NotSupported('not now')

    harness.nesting.act_on_nested_stack = refuse
    harness.act(stack_id, 'resume')
    harness.run()
    assert harness.state(stack_id) == 'RESUME_FAILED'
    assert harness.state(lowest(harness, stack_id, 1).id) == 'SUSPEND_COMPLETE'
    harness.nesting.act_on_nested_stack = act
    update(harness, stack_id, {'below': {'type': 'level1.yaml', 'value': 'a'}}, tree(2))
    harness.recover()
    assert harness.state(stack_id) == 'UPDATE_COMPLETE'
    assert not harness.reality.asleep


def test_only_what_failed_in_a_nested_stack_is_made_again(harness):
    """F130."""
    harness.reality.once['create', 'thing1'] = [fails(FinalFailure('broken'))]
    stack_id = create(harness, {'child': {'type': CHILD, 'value': 'a'}}, {CHILD: nested(count=2)})
    harness.run()
    assert harness.state(stack_id) == 'CREATE_FAILED'
    child = child_of(harness, stack_id)
    update(harness, stack_id, {'child': {'type': CHILD, 'value': 'a'}}, {CHILD: nested(count=2)})
    harness.recover()
    assert harness.state(stack_id) == 'UPDATE_COMPLETE'
    assert child_of(harness, stack_id).id == child.id
    assert harness.reality.calls['create', 'thing0'] == 1


def test_a_request_that_comes_late_makes_nothing(harness):
    """The worker is slow; meanwhile the stack is deleted. What it asks for then would be an orphan."""
    stack_id = create(harness, {'child': {'type': CHILD, 'value': 'a'}}, {CHILD: nested()})
    late = []
    act = harness.nesting.act_on_nested_stack

    def hold(context: Any, resource_id: str, fence: int, step: int = 0, node: int | None = None) -> Any:
        late.append((resource_id, fence))
        raise errors.NoAnswer('no answer in time')

    harness.nesting.act_on_nested_stack = hold
    harness.run()
    harness.nesting.act_on_nested_stack = act
    harness.delete(stack_id)
    harness.recover()
    assert harness.state(stack_id) == 'DELETE_COMPLETE'
    for resource_id, fence in late:
        with pytest.raises(errors.Conflict):
            act(harness.context, resource_id, fence)
    assert harness.reality.objects == {}


def test_depth_is_limited_before_anything_is_made(harness):
    """A template that nests itself, or a chain that is too long: the types on the way are told."""
    itself = hot({'again': {'type': 'level1.yaml', 'value': 'x'}}, parameters={'value': {'type': 'string'}})
    member = {'type': 'OS::Heat::ResourceGroup', 'resource_def': {'type': 'level1.yaml', 'properties': {'value': 'x'}}}
    through_a_group = hot({'again': member}, parameters={'value': {'type': 'string'}})
    for files, way in (
        (tree(7), ' > '.join(f'level{level}.yaml' for level in range(1, 7))),
        ({'level1.yaml': itself}, ' > '.join(['level1.yaml'] * 6)),
        ({'level1.yaml': through_a_group}, ' > '.join(['level1.yaml', 'OS::Heat::ResourceGroup'] * 3)),
    ):
        with pytest.raises(errors.StackValidationFailed) as refused:
            create(harness, {'below': {'type': 'level1.yaml', 'value': 'a'}}, files)
        assert f'Recursion depth exceeds 5 ([limits] max_nested_stack_depth): {way}' in str(refused.value)
    create(harness, {'below': {'type': 'level1.yaml', 'value': 'a'}}, tree(5))


def test_depth_that_depends_on_what_is_not_known_before_is_limited_where_it_is_reached(harness):
    deeper = {'type': 'level1.yaml', 'value': {'get_attr': ['thing0', 'value']}}
    files = {'level1.yaml': nested(count=1, again=deeper)}
    stack_id = create(harness, {'below': {'type': 'level1.yaml', 'value': 'a'}}, files, disable_rollback=True)
    harness.run()
    assert harness.state(stack_id) == 'CREATE_FAILED'
    assert 'Recursion depth exceeds 5 ([limits] max_nested_stack_depth).' in harness.stack(stack_id).status_reason


def test_a_mapping_does_not_hold_inside_of_what_it_maps_to(harness):
    texts = {name: {'type': 'string', 'default': ''} for name in ('value', 'key', 'link')}
    outputs = {name: {'value': {'get_attr': ['real', name]}} for name in ('value', 'other')}
    wrapper = hot({'real': {'value': {'get_param': 'value'}}}, parameters=texts, outputs=outputs)
    identity = harness.stacks.create_stack(
        harness.context,
        's',
        hot({'child': {'value': 'x'}}),
        params={'resource_registry': {'Test::Thing': 'wrapper.yaml'}},
        files={'wrapper.yaml': wrapper},
    )
    harness.run()
    assert harness.state(identity['stack_id']) == 'CREATE_COMPLETE', harness.stack(identity['stack_id']).status_reason
    assert harness.reality.values() == {'real': 'x'}


def test_a_template_can_ask_what_the_resource_says_of_itself_that_it_stands_for(harness):
    """Also what a change of that alone means; what is hidden in it stays so."""
    told = {'list_join': [' ', [{'resource_facade': 'deletion_policy'}, {'get_param': 'of'}]]}
    metadata = {'str_replace': {'template': 'M', 'params': {'M': {'resource_facade': 'metadata'}}}}
    child = hot(
        {'policy': {'value': told}, 'metadata': {'value': metadata}},
        parameters={'of': {'type': 'string'}},
        outputs={'told': {'value': {'resource_facade': 'metadata'}}},
    )

    def resources(key: Any) -> dict[str, Any]:
        said = {'metadata': {'key': key}, 'deletion_policy': 'Retain'}
        return {'child': {'type': CHILD, 'of': 'child', **said}, 'reader': {'value': 'x'}}

    stack_id = create(harness, resources('one'), {CHILD: child})
    harness.run()
    assert harness.reality.values() == {'policy': 'Retain child', 'metadata': '{"key": "one"}', 'reader': 'x'}
    update(harness, stack_id, resources({'get_attr': ['reader', 'value']}), {CHILD: child})
    harness.run()
    assert harness.reality.values()['metadata'] == '{"key": "x"}', harness.stack(stack_id).status_reason


def test_lost_messages_are_made_up_for(harness):
    """Whatever is not delivered: the row that a nested stack has told is found."""
    stack_id = create(harness, {'below': {'type': 'level1.yaml', 'value': 'a'}}, tree(3))
    for _ in range(60):
        harness.messages.checks.clear()
        harness.sweep()
        if harness.messages.checks:
            harness.deliver()
    assert harness.state(stack_id) == 'CREATE_COMPLETE'


def test_a_retained_nested_stack_becomes_the_root_of_a_tree_of_its_own(harness):
    child = {'type': 'level1.yaml', 'value': 'a', 'deletion_policy': 'Retain'}
    stack_id = create(harness, {'below': child}, tree(3))
    harness.run()
    before = [lowest(harness, stack_id, depth).id for depth in (1, 2, 3)]
    harness.delete(stack_id)
    harness.run()
    assert harness.state(stack_id) == 'DELETE_COMPLETE'
    after = [harness.stack(each) for each in before]
    assert after[0].parent_id is None
    assert [(each.tree_id, each.nested_depth, each.deleted_at) for each in after] == [
        (before[0], depth, None) for depth in range(3)
    ]
    assert harness.reality.values() == {'thing0': 'a'}


def test_abandon_leaves_the_objects_at_every_depth(harness):
    """F126."""
    stack_id = create(harness, {'below': {'type': 'level1.yaml', 'value': 'a'}}, tree(3))
    harness.run()
    last = lowest(harness, stack_id, 3)
    harness.abandonment.abandon_stack(harness.context, {'stack_id': stack_id})
    harness.run()
    assert harness.state(stack_id) == 'DELETE_COMPLETE'
    assert harness.state(last.id) == 'DELETE_COMPLETE'
    assert harness.reality.values() == {'thing0': 'a'}
    assert harness.reality.calls['delete', 'thing0'] == 0


def test_hidden_values_stay_hidden_below(harness):
    source = yaml.safe_load(hot({'child': {'type': CHILD, 'value': {'get_param': 'secret'}}}))
    source['parameters'] = {'secret': {'type': 'string', 'hidden': True, 'default': 'opensesame'}}
    identity = harness.stacks.create_stack(harness.context, 's', source, files={CHILD: nested()})
    harness.run()
    child = child_of(harness, identity['stack_id'])
    assert harness.reality.values() == {'thing0': 'opensesame'}
    _, compiled = harness.compiler.stored(child, child.template_id or '')
    assert compiled.parameters['value'].hidden
