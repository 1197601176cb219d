"""The commands about stacks in stacks: plans as a tree, hooks by their path."""

import json

import pytest

MEMBER = """
heat_template_version: wallaby
parameters: {text: {type: string}}
resources:
  inner: {type: OS::Heat::TestResource, properties: {value: {get_param: text}}}
  still: {type: OS::Heat::TestResource, properties: {value: still}}
"""
TOP = """
heat_template_version: wallaby
parameters: {text: {type: string, default: one}}
resources:
  top: {type: member.yaml, properties: {text: {get_param: text}}}
"""


@pytest.fixture
def run(command_line, here):
    """Run a command in a directory with a template that nests another one."""
    (here / 'member.yaml').write_text(MEMBER)
    (here / 'top.yaml').write_text(TOP)
    return command_line


def test_plans_are_trees_where_that_is_asked_for(run):
    plan = run('stack', 'create', 'tree', '-t', 'top.yaml', '--dry-run', '--show-nested')[1]
    assert [line.split()[1] for line in plan.splitlines() if ' is added' in line] == ['top', 'inner', 'still']
    assert '  + inner  OS::Heat::TestResource  is added' in plan
    assert plan.splitlines()[-1].startswith('Plan: 3 to add')
    flat = run('stack', 'create', 'tree', '-t', 'top.yaml', '--dry-run')[1]
    assert flat.splitlines()[-1].startswith('Plan: 1 to add')
    assert run('stack', 'create', 'tree', '-t', 'top.yaml', '--wait')[0] == 0
    plan = run('stack', 'update', 'tree', '-P', 'text=two', '--dry-run', '--show-nested')[1]
    assert [line.split()[:2] for line in plan.splitlines() if ' in place' in line] == [['~', 'top'], ['~', 'inner']]
    assert 'still' not in plan
    assert plan.splitlines()[-1] == 'Plan: 0 to add, 2 to update, 0 to replace, 0 to remove; 1 unchanged.'
    told = run('stack', 'delete', 'tree', '--dry-run', '--show-nested', '-f', 'json')[1]
    assert [each['path'] for each in json.loads(told)['changes']] == ['top', 'top/inner', 'top/still']
