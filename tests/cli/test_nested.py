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


def test_hooks_graphs_and_histories_go_down_by_paths(run, here):
    hooks = 'resource_registry: {resources: {top: {in*: {hooks: pre-create}}}}\n'
    (here / 'paused.yaml').write_text(hooks)
    assert run('stack', 'create', 'halted', '-t', 'top.yaml', '-e', 'paused.yaml')[0] == 0
    paused = []
    while not paused:
        paused = json.loads(run('stack', 'hook', 'list', 'halted', '--nested-depth', '1', '-f', 'json')[1])
    assert [(each['resource_name'], each['hook']) for each in paused] == [('top/inner', 'pre-create')]
    assert 'top/inner (pre-create)' in run('stack', 'hook', 'clear', 'halted', 'top/other')[2]
    explained = run('stack', 'explain', 'halted', '--nested-depth', '5')[1]
    assert 'top: CREATE of stack halted-top-' in explained and 'top/inner' in explained
    assert run('stack', 'hook', 'clear', 'halted', 'top/in*')[2] == 'Hook pre-create of top/inner is cleared.\n'
    assert run('stack', 'wait', 'halted')[0] == 0
    drawn = run('stack', 'graph', 'halted', '--nested-depth', '5')[1]
    assert [line.split('  ')[0] for line in drawn.splitlines()] == ['top', '├─ top/inner', '└─ top/still']
    rows = json.loads(run('stack', 'history', 'halted', '--nested-depth', '5', '-f', 'json')[1])
    assert [(each['path'], each['action']) for each in rows] == [('top', 'CREATE'), ('', 'CREATE')]


def test_the_root_cause_of_a_failure_is_named_by_its_path(run, here):
    (here / 'member.yaml').write_text(MEMBER.replace('{value: still}', '{value: still, fail: true}'))
    code, _, err = run('stack', 'create', 'broken', '-t', 'top.yaml', '--wait')
    assert code == 1
    assert 'Root cause: top/still' in err
