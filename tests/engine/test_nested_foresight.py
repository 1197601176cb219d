"""What is wrong in the template of a nested stack is told with the stack that it is to be in."""

from __future__ import annotations

from typing import Any

import pytest
import yaml

from convergence import errors
from convergence.engine.preview.preview import Previews
from convergence.engine.reads.answers import InstallationReads
from convergence.template import compiler
from tests.engine.test_nested import CHILD, create, nested, tree
from tests.harness import Harness, hot

WRONG = """heat_template_version: 2018-08-31
parameters:
  value: {type: string}
resources:
  thing0:
    type: Test::Thing
    properties: {colour: blue}
  other:
    type: Test::Nothing
"""


def validate(harness: Harness, template: str, files: dict[str, str], **more: Any) -> dict[str, Any]:
    """What is told of a template."""
    reads = InstallationReads(harness.compiler, harness.registry, harness.roster, '1')
    return reads.validate_template(harness.context, template, files=files, **more)


@pytest.mark.parametrize('how', ['validate', 'create', 'preview', 'update'])
def test_what_is_wrong_two_levels_down_is_told_with_its_file_and_line(harness, how):
    files = {**tree(1), 'level1.yaml': tree(2)['level1.yaml'], 'level2.yaml': WRONG}
    resources = {'top': {'type': 'level1.yaml', 'value': 'a'}}
    before = create(harness, {'top': 'x'}, {})
    with pytest.raises(errors.StackValidationFailed) as refused:
        if how == 'validate':
            validate(harness, hot(resources), files)
        elif how == 'update':
            harness.stacks.update_stack(harness.context, {'stack_id': before}, hot(resources), files=files)
        elif how == 'preview':
            Previews(harness.reader, harness.registry, harness.stacks).preview_stack(
                harness.context, 'other', hot(resources), files=files
            )
        else:
            harness.stacks.create_stack(harness.context, 'other', hot(resources), files=files)
    told = {(each.place.source, each.place.line): each for each in refused.value.problems}
    assert set(told) == {('level2.yaml', 7), ('level2.yaml', 9)}
    property_problem, type_problem = told['level2.yaml', 7], told['level2.yaml', 9]
    assert property_problem.message.startswith('resources.top.resources.below.resources.thing0 (Test::Thing): ')
    assert 'colour' in property_problem.message and '^' in property_problem.excerpt
    assert type_problem.kind == 'UnknownResourceType'


def test_what_is_only_known_later_refuses_nothing(harness):
    """A value of the nested stack's parameter comes from another resource: its default must not stand for it."""
    inner = yaml.safe_load(nested(count=1))
    inner['parameters'] = {'value': {'type': 'string', 'default': 'a'}}
    inner['conditions'] = {'bad': {'equals': [{'get_param': 'value'}, 'a']}}
    inner['resources']['thing0']['properties'] = {'value': {'if': ['bad', {'get_param': 'value'}, 'x']}}
    resources = {'first': 'x', 'child': {'type': CHILD, 'value': {'get_attr': ['first', 'value']}}}
    create(harness, resources, {CHILD: yaml.safe_dump(inner)})
    harness.run()
    assert harness.reality.values() == {'first': 'x', 'thing0': 'x'}


def test_identical_members_are_looked_at_once(harness, monkeypatch):
    """F152."""
    looked: list[str] = []
    run = compiler._Compilation.run

    def watched(self: Any, *arguments: Any) -> Any:
        looked.append(self._document.source)
        return run(self, *arguments)

    monkeypatch.setattr(compiler._Compilation, 'run', watched)
    members = {f'child{number}': {'type': 'level1.yaml', 'value': 'a'} for number in range(20)}
    files = tree(2)
    validate(harness, hot(members), files)
    assert looked.count('level1.yaml') == looked.count('level2.yaml') == 1
    validate(harness, hot(members), files)
    assert looked.count('level1.yaml') == 1


@pytest.mark.parametrize(
    ('told', 'compiled'), [('x', 1), ({'get_param': 'OS::stack_id'}, 4)], ids=['alike', 'each asks which one it is']
)
def test_members_that_are_alike_are_compiled_once(harness, monkeypatch, told, compiled):
    """F152."""
    looked: list[str] = []
    run = compiler._Compilation.run

    def watched(self: Any, *arguments: Any) -> Any:
        looked.append(self._request.identity.stack_id)
        return run(self, *arguments)

    inner = hot({'thing0': {'value': told}}, outputs={'told': {'value': {'get_attr': ['thing0', 'value']}}})
    members = {f'child{number}': {'type': CHILD} for number in range(4)}
    stack_id = create(harness, members, {CHILD: inner})
    monkeypatch.setattr(compiler._Compilation, 'run', watched)
    harness.run()
    assert harness.state(stack_id) == 'CREATE_COMPLETE'
    ids = {harness.row(stack_id, name).physical_id for name in members}
    assert len({*looked} & ids) == compiled
    for child_id in ids:
        stack = harness.stack(child_id)
        assert harness.compiler.compiled(stack, stack.template_id).parameters['OS::stack_id'].value == child_id
        thing = harness.row(child_id, 'thing0')
        assert thing.properties['value'] == (told if told == 'x' else child_id)


def test_nested_parameters_are_shown_to_whoever_asks(harness):
    files = {'level1.yaml': tree(2)['level1.yaml'], 'level2.yaml': nested(value='x')}
    template = hot({'top': {'type': 'level1.yaml', 'value': 'a'}})
    assert 'NestedParameters' not in validate(harness, template, files)
    top = validate(harness, template, files, show_nested=True)['NestedParameters']['top']
    assert (top['Type'], top['Parameters']['value']['Value']) == ('level1.yaml', 'a')
    assert 'Default' not in top['Parameters']['value']
    below = top['NestedParameters']['below']
    assert (below['Type'], below['Parameters']['value']['Default']) == ('level2.yaml', 'x')


def test_defaults_of_the_environment_satisfy_what_a_template_requires(harness):
    params = {'parameter_defaults': {'value': 'from afar'}}
    inner = nested().replace('default: x', 'description: needed')
    template = hot({'child': {'type': CHILD}})
    with pytest.raises(errors.StackValidationFailed, match='Property value not assigned'):
        validate(harness, template, {CHILD: inner})
    validate(harness, template, {CHILD: inner}, params=params)
    identity = harness.stacks.create_stack(harness.context, 's', template, params=params, files={CHILD: inner})
    harness.run()
    assert harness.state(identity['stack_id']) == 'CREATE_COMPLETE', harness.stack(identity['stack_id']).status_reason
    assert harness.reality.values() == {'thing0': 'from afar'}


def test_what_is_wrong_in_a_group_in_a_nested_template_is_told(harness):
    member = {'type': 'Test::Thing', 'properties': {'colour': 'blue'}}
    group = {'type': 'OS::Heat::ResourceGroup', 'resource_def': member, 'count': 2}
    with pytest.raises(errors.StackValidationFailed) as refused:
        create(harness, {'child': {'type': CHILD}}, {CHILD: hot({'group': group})})
    assert 'resources.child.resources.group.resources.0 (Test::Thing): ' in str(refused.value)
