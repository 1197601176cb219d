"""What an environment does to a stack: types that stand for others, restrictions, immutable parameters, files."""

import json
from datetime import datetime

import pytest

from convergence import errors
from convergence.engine.compile.submission import Submission
from convergence.engine.preview.preview import Previews
from convergence.engine.reads.stacks import StackReads
from convergence.resources.contract import FinalFailure
from tests.harness import Crash, hot
from tests.reality import fails, makes_then

TYPES = {'resource_registry': {'My::Thing': 'Test::Thing'}}


def source(value, type_='My::Thing', **more):
    return hot({'a': {'type': type_, 'value': value, **more}})


def create(harness, template, environment=None, files=None, environment_files=None, **args):
    identity = harness.stacks.create_stack(harness.context, 's', template, environment, files, args, environment_files)
    return identity['stack_id']


def update(harness, stack, template, environment=None, files=None, environment_files=None, **args):
    harness.stacks.update_stack(
        harness.context, {'stack_id': stack}, template, environment, files, args, environment_files
    )


def restricted(*actions):
    return {'resource_registry': {'resources': {'a*': {'restricted_actions': list(actions)}}}}


def test_a_type_that_stands_for_another_makes_what_that_makes(harness):
    stack = create(harness, source('x'), TYPES)
    harness.run()
    harness.assert_converged(stack, {'a': 'x'}, 'CREATE_COMPLETE')
    row = harness.row(stack, 'a')
    assert (row.type, row.shown_type) == ('Test::Thing', 'My::Thing')
    assert {event.resource_type for event in harness.reader.events(stack) if event.resource_name} == {'My::Thing'}


def test_another_name_for_the_same_type_changes_nothing_real(harness):
    stack = create(harness, source('x'), TYPES)
    harness.run()
    before = harness.row(stack, 'a').physical_id
    update(harness, stack, source('x', 'Test::Thing'))
    harness.run()
    assert harness.row(stack, 'a').physical_id == before
    assert harness.row(stack, 'a').shown_type == 'Test::Thing'
    assert harness.reality.order('update') == []


def test_a_rollback_brings_the_environment_back(harness):
    stack = create(harness, source('x'), TYPES, disable_rollback=False)
    harness.run()
    other = {'resource_registry': {'My::Thing': 'OS::Heat::TestResource'}}
    update(harness, stack, hot({'a': {'type': 'My::Thing', 'value': 'y', 'fail': True}}), other, disable_rollback=False)
    harness.run()
    harness.assert_converged(stack, {'a': 'x'}, 'ROLLBACK_COMPLETE')
    assert harness.row(stack, 'a').type == 'Test::Thing'


def test_a_restricted_update_fails_and_leaves_the_resource_as_it_is(harness):
    stack = create(harness, source('x', 'Test::Thing'), restricted('update'))
    harness.run()
    harness.assert_converged(stack, {'a': 'x'}, 'CREATE_COMPLETE')
    update(harness, stack, source('y', 'Test::Thing'), restricted('update'))
    harness.run()
    assert harness.state(stack) == 'UPDATE_FAILED'
    assert harness.stack(stack).status_reason == (
        'Resource UPDATE failed: ResourceActionRestricted: resources.a: update is restricted for resource.'
    )
    failed = [event for event in harness.reader.events(stack) if event.resource_name and event.status == 'FAILED']
    assert [(event.action, event.reason) for event in failed] == [('UPDATE', 'update is restricted for resource.')]
    harness.assert_quiet()
    update(harness, stack, source('y', 'Test::Thing'))
    harness.run()
    harness.assert_converged(stack, {'a': 'y'}, 'UPDATE_COMPLETE')


def test_a_restricted_replacement_fails_and_an_update_does_not(harness):
    stack = create(harness, source('x', 'Test::Thing'), restricted('replace'))
    harness.run()
    before = harness.row(stack, 'a').physical_id
    update(harness, stack, source('y', 'Test::Thing'), restricted('replace'))
    harness.run()
    harness.assert_converged(stack, {'a': 'y'}, 'UPDATE_COMPLETE')
    update(harness, stack, source('y', 'Test::Thing', key='another'), restricted('replace'))
    harness.run()
    assert harness.state(stack) == 'UPDATE_FAILED'
    assert 'replace is restricted for resource.' in harness.stack(stack).status_reason
    assert harness.row(stack, 'a').physical_id == before


def test_a_preview_tells_what_is_restricted(harness):
    preview = Previews(harness.reader, harness.registry, harness.stacks).preview_update_stack
    stack = create(harness, source('x', 'Test::Thing'))
    harness.run()
    given = restricted('update', 'replace')
    with pytest.raises(errors.StackValidationFailed, match=r'update is restricted for resource\. \(value changes\)'):
        preview(harness.context, {'stack_id': stack}, source('y', 'Test::Thing'), given)
    with pytest.raises(errors.StackValidationFailed, match=r'replace is restricted for resource\. \(key changes\)'):
        preview(harness.context, {'stack_id': stack}, source('x', 'Test::Thing', key='k'), given)
    unchanged = preview(harness.context, {'stack_id': stack}, source('x', 'Test::Thing'), given)['unchanged']
    assert [resource['resource_name'] for resource in unchanged] == ['a']


def test_a_preview_refuses_what_the_update_refuses_after_a_failed_snapshot(harness):
    """The preview once announced an update there."""
    stack = create(harness, source('x', 'Test::Kept'))
    harness.run()
    harness.reality.once['snapshot', 'a'] = [fails(FinalFailure('no'))]
    harness.snapshots.stack_snapshot(harness.context, {'stack_id': stack}, 'first')
    harness.run()
    assert harness.row(stack, 'a').status == 'FAILED'
    preview = Previews(harness.reader, harness.registry, harness.stacks).preview_update_stack
    with pytest.raises(errors.StackValidationFailed, match=r'update is restricted for resource\.'):
        preview(harness.context, {'stack_id': stack}, source('x', 'Test::Kept'), restricted('update'))
    update(harness, stack, source('x', 'Test::Kept'), restricted('update'))
    harness.run()
    assert 'update is restricted for resource.' in harness.stack(stack).status_reason


def test_a_restriction_holds_nobody_back_who_changes_nothing_or_deletes(harness):
    stack = create(harness, source('x', 'Test::Thing'))
    harness.run()
    update(harness, stack, source('x', 'Test::Thing'), restricted('update', 'replace'))
    harness.run()
    harness.assert_converged(stack, {'a': 'x'}, 'UPDATE_COMPLETE')
    update(harness, stack, hot({}), restricted('update', 'replace'))
    harness.run()
    harness.assert_converged(stack, {}, 'UPDATE_COMPLETE')


def test_a_hook_that_does_not_exist_is_refused(harness):
    with pytest.raises(errors.InvalidBreakPointHook):
        create(harness, source('x', 'Test::Thing'), {'resource_registry': {'resources': {'a': {'hooks': 'pre'}}}})


WITH_PARAMETERS = """
heat_template_version: 2018-08-31
parameters:
  name: {type: string, default: x, immutable: IMMUTABLE}
resources:
  a: {type: Test::Thing, properties: {value: {get_param: name}}}
"""


def test_immutable_parameters_keep_their_values(harness):
    template = WITH_PARAMETERS.replace('IMMUTABLE', 'true')
    stack = create(harness, template, {'parameters': {'name': 'one'}})
    harness.run()
    message = '^The following parameters are immutable and may not be updated: name$'
    for environment in ({'parameters': {'name': 'two'}}, {}):
        with pytest.raises(errors.ImmutableParameterModified, match=message):
            update(harness, stack, template, environment)
    update(harness, stack, template, {'parameter_defaults': {'name': 'one'}})
    harness.run()
    harness.assert_converged(stack, {'a': 'one'}, 'UPDATE_COMPLETE')
    update(harness, stack, WITH_PARAMETERS.replace('IMMUTABLE', 'false'), {'parameters': {'name': 'two'}})
    harness.run()
    harness.assert_converged(stack, {'a': 'two'}, 'UPDATE_COMPLETE')


def test_environment_files_are_merged_and_stored(harness):
    template = WITH_PARAMETERS.replace('IMMUTABLE', 'false')
    files = {
        'one.yaml': 'parameters: {name: a}',
        'two.yaml': 'parameters: {name: b}\nparameter_merge_strategies: {name: merge}',
    }
    stack = create(harness, template, {'parameters': {'name': 'sent'}}, files, ['one.yaml', 'two.yaml'])
    harness.run()
    harness.assert_converged(stack, {'a': 'ab'}, 'CREATE_COMPLETE')
    assert Submission.from_content(harness.reader.template(harness.stack(stack).template_id).content) == Submission(
        template, {'parameters': {'name': 'ab'}}, {}, files, implied={}
    )
    update(
        harness, stack, None, {'parameters': {}}, {'three.yaml': 'parameters: {name: c}'}, ['three.yaml'], existing=True
    )
    harness.run()
    harness.assert_converged(stack, {'a': 'c'}, 'UPDATE_COMPLETE')
    update(harness, stack, None, existing=True)
    harness.run()
    harness.assert_converged(stack, {'a': 'c'}, 'UPDATE_COMPLETE')


class LongAfterwards(datetime):
    @classmethod
    def now(cls, zone=None):
        return cls(3001, 1, 1, tzinfo=zone)


def test_a_moment_that_was_in_the_future_is_not_questioned_by_a_rollback(harness, monkeypatch):
    template = """
heat_template_version: 2018-08-31
parameters: {until: {type: string, constraints: [{custom_constraint: expiration}]}}
resources: {a: {type: Test::Thing, properties: {value: {get_param: until}}}}
"""
    past, future = '2001-01-01T00:00:00Z', '2999-01-01T00:00:00Z'
    with pytest.raises(errors.StackValidationFailed, match='Expiration time is out of date'):
        create(harness, template, {'parameters': {'until': past}})
    stack = create(harness, template, {'parameters': {'until': future}}, disable_rollback=False)
    harness.run()
    monkeypatch.setattr('convergence.resources.checks.moments.datetime', LongAfterwards)
    harness.compiler.cache.clear()
    with pytest.raises(errors.StackValidationFailed, match='Expiration time is out of date'):
        update(harness, stack, template, {'parameters': {'until': future}})
    failing = hot({'a': {'type': 'OS::Heat::TestResource', 'fail': True}})
    update(harness, stack, failing, disable_rollback=False)
    harness.run()
    harness.assert_converged(stack, {'a': future}, 'ROLLBACK_COMPLETE')


@pytest.mark.parametrize('made', [True, False])
def test_a_creation_that_was_interrupted_is_begun_again_although_nothing_may_be_replaced(harness, made):
    """What the restriction protects is in use; this never was."""

    def killed(call):
        harness.store.dead = True
        raise Crash

    harness.reality.once['create', 'a'] = [makes_then(harness.reality, lambda: killed(None)) if made else killed]
    stack = create(harness, source('x', 'Test::Thing'), restricted('replace'))
    with pytest.raises(Crash):
        harness.run()
    harness.restart()
    harness.recover()
    harness.assert_converged(stack, {'a': 'x'}, 'CREATE_COMPLETE')


def test_what_was_never_made_is_made_in_another_way_although_nothing_may_be_replaced(harness):
    harness.reality.once['create', 'a'] = [fails(FinalFailure('no'))]
    stack = create(harness, source('x', 'Test::Thing'), restricted('replace'))
    harness.run()
    assert harness.state(stack) == 'CREATE_FAILED'
    update(harness, stack, source('y', 'Test::Thing', key='another'), restricted('replace'))
    harness.run()
    harness.assert_converged(stack, {'a': 'y'}, 'UPDATE_COMPLETE')


def test_a_failed_resource_that_may_not_be_replaced_fails_again_and_can_be_released(harness):
    failing = {'type': 'OS::Heat::TestResource', 'value': 'x', 'fail': True}
    stack = create(harness, hot({'a': failing}), restricted('replace'))
    harness.run()
    assert harness.state(stack) == 'CREATE_FAILED'
    working = hot({'a': {**failing, 'fail': False}})
    update(harness, stack, working, restricted('replace'))
    harness.run()
    assert harness.state(stack) == 'UPDATE_FAILED'
    assert 'replace is restricted for resource. (it failed' in harness.stack(stack).status_reason
    harness.assert_quiet()
    update(harness, stack, working)
    harness.run()
    assert harness.state(stack) == 'UPDATE_COMPLETE'
    harness.assert_quiet()


def test_the_value_of_a_parameter_that_is_not_declared_is_not_shown(harness):
    """An environment that several stacks share has the secrets of the others in it."""
    whole = {
        'heat_template_version': '2018-08-31',
        'parameters': {'open': {'type': 'string'}},
        'resources': {'a': {'type': 'Test::Thing', 'properties': {'value': {'get_param': 'open'}}}},
    }
    params = {'parameter_defaults': {'open': 'seen', 'of_others': 'canary-4711'}}
    stack = harness.stacks.create_stack(harness.context, 'shared', whole, params, None, {})['stack_id']
    harness.run()
    identity = {'stack_id': stack}
    shown = StackReads(harness.reader, harness.compiler).get_environment(harness.context, identity)
    assert shown['parameter_defaults'] == {'open': 'seen', 'of_others': '******'}
    data = harness.abandonment.export_stack(harness.context, identity)
    assert 'canary-4711' not in json.dumps(data)
    adopted = harness.stacks.create_stack(
        harness.context, 'again', None, None, args={'adopt_stack_data': json.dumps(data)}
    )['stack_id']
    shown = StackReads(harness.reader, harness.compiler).get_environment(harness.context, {'stack_id': adopted})
    assert shown['parameter_defaults'] == {'open': 'seen'}
