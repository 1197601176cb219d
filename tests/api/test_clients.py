"""The clients that people have already, unchanged, against a server."""

from __future__ import annotations

import json
import os

import openstack
import pytest
from heatclient import client as heatclient
from heatclient import exc

from convergence.cmd.wiring.api import ApiProcess
from convergence.config import ApiSettings
from tests.api.installation import LONG_S, TEMPLATE, empty_conf, waiting
from tests.preloaded import openstack as openstack_program

SOFTWARE = """
heat_template_version: 2018-08-31
parameters: {mine: {type: string}}
resources:
  deployment:
    type: OS::Heat::SoftwareDeployment
    properties: {config: {get_param: mine}, server: a-server, signal_transport: NO_SIGNAL}
"""


@pytest.fixture(scope='module')
def token_file(tmp_path_factory):
    """Where the server that all these clients speak to keeps its token."""
    return tmp_path_factory.mktemp('clients') / 'token'


@pytest.fixture(scope='module')
def url(api, token_file):
    """A project of a server."""
    settings = ApiSettings(port=0, token_file=token_file)
    process = ApiProcess(settings, api.embedded.parts.transport, stop_s=LONG_S, conf=empty_conf())
    process.start()
    yield f'{process.address}/v1/clients'
    process.stop()


@pytest.fixture
def token(url, token_file):
    """What the server wants."""
    return token_file.read_text().strip()


# --- python-openstackclient with python-heatclient -------------------------------------------------------------


@pytest.fixture
def run(url, token, tmp_path):
    """Runs ``openstack …``; its answer as JSON where it was asked for that."""
    (tmp_path / 'one.yaml').write_text(TEMPLATE)
    (tmp_path / 'slow.yaml').write_text(json.dumps(waiting(600)))

    def openstack_client(*words: str, code: int = 0, how: dict[str, str] | None = None) -> object:
        environment = {name: value for name, value in os.environ.items() if not name.startswith('OS_')}
        environment |= {'OS_ENDPOINT': url, 'HOME': str(tmp_path)}
        environment |= how or {'OS_AUTH_TYPE': 'admin_token', 'OS_TOKEN': token}
        done = openstack_program().run(*words, directory=tmp_path, environment=environment)
        assert done.returncode == code, done.stdout + done.stderr
        return json.loads(done.stdout) if 'json' in words else done.stdout + done.stderr

    return openstack_client


@pytest.mark.parametrize('how', [{'OS_AUTH_TYPE': 'none'}, {'OS_AUTH_TYPE': 'admin_token', 'OS_TOKEN': 'any'}])
def test_openstack_without_the_token_is_told_where_it_is(run, how):
    assert 'The token is in the file' in run('stack', 'list', how=how, code=1)


def test_the_life_of_a_stack_with_openstack(run):
    said = run('stack', 'create', '-t', 'one.yaml', '--wait', '--poll', '1', '--tags', 'a,b', 'cli')
    assert 'CREATE_COMPLETE  Stack CREATE completed successfully' in said
    shown = run('stack', 'show', 'cli', '-f', 'json')
    assert (shown['stack_status'], shown['tags']) == ('CREATE_COMPLETE', ['a', 'b'])
    assert shown['parameters']['secret'] == '******'
    planned = run('stack', 'create', '-t', 'one.yaml', '--dry-run', 'cli-2')
    assert 'OS::Heat::TestResource' in planned
    assert 'updated' in run('stack', 'update', '-t', 'one.yaml', '--parameter', 'text=b', '--dry-run', 'cli')
    run('stack', 'update', '--existing', '--parameter', 'text=b', '--wait', 'cli')
    assert run('stack', 'output', 'show', 'cli', 'shown', '-f', 'json')['output_value'] == 'b'
    (listed,) = run('stack', 'list', '--tags', 'a', '--property', 'status=UPDATE_COMPLETE', '-f', 'json')
    assert listed['Stack Name'] == 'cli'
    assert run('stack', 'list', '--property', 'name=nothing', '-f', 'json') == []
    names = [each['resource_name'] for each in run('stack', 'resource', 'list', 'cli', '-f', 'json')]
    assert names == ['first', 'second']
    assert run('stack', 'resource', 'show', 'cli', 'first', '-f', 'json')['attributes']['output'] == 'b'
    assert 'UPDATE_COMPLETE' in run('stack', 'event', 'list', 'cli')
    assert 'heat_template_version' in run('stack', 'template', 'show', 'cli')
    assert '******' in run('stack', 'show', 'cli')
    run('stack', 'environment', 'show', 'cli')
    run('stack', 'failures', 'list', 'cli')
    run('stack', 'delete', '--yes', '--wait', 'cli')
    assert 'Stack not found: cli' in run('stack', 'show', 'cli', code=1)


OUTER = """
heat_template_version: 2018-08-31
parameters:
  text: {type: string, default: hello}
resources:
  child: {type: one.yaml, properties: {text: {get_param: text}}}
outputs:
  shown: {value: {get_attr: [child, shown]}}
"""


def test_a_stack_in_a_stack_with_openstack(run, tmp_path):
    (tmp_path / 'outer.yaml').write_text(OUTER)
    nested = run('orchestration', 'template', 'validate', '-t', 'outer.yaml', '--show-nested', '-f', 'json')
    assert nested['NestedParameters']['child']['Type'].endswith('one.yaml')
    run('stack', 'create', '-t', 'outer.yaml', '--wait', '--poll', '1', 'outer')
    listed = [each['Stack Name'] for each in run('stack', 'list', '-f', 'json')]
    assert 'outer' in listed
    assert not [name for name in listed if name.startswith('outer-')]
    listed = [
        each for each in run('stack', 'list', '--nested', '-f', 'json') if each['Stack Name'].startswith('outer')
    ]  # those of other tests may still go
    ids = {each['Stack Name'].rpartition('-')[0] or each['Stack Name']: each['ID'] for each in listed}
    parents = {each['Stack Name'].rpartition('-')[0] or each['Stack Name']: each['Parent'] for each in listed}
    assert parents == {'outer': None, 'outer-child': ids['outer']}
    rows = run('stack', 'resource', 'list', 'outer', '--nested-depth', '2', '-f', 'json')
    assert {each['resource_name']: each['stack_name'].startswith('outer-child-') for each in rows} == {
        'child': False,
        'first': True,
        'second': True,
    }
    events = run('stack', 'event', 'list', 'outer', '--nested-depth', '2', '-f', 'json')
    assert {'child', 'first', 'second'} <= {each['resource_name'] for each in events}
    run('stack', 'update', '--existing', '--parameter', 'text=b', '--wait', 'outer')
    assert run('stack', 'output', 'show', 'outer', 'shown', '-f', 'json')['output_value'] == 'b'
    run('stack', 'delete', '--yes', '--wait', 'outer')
    left = [each['Stack Name'] for each in run('stack', 'list', '--nested', '-f', 'json')]
    assert not [name for name in left if name.startswith('outer')]


def test_a_hook_in_a_nested_stack_is_found_and_cleared_by_its_path_with_openstack(run, heat, tmp_path):
    (tmp_path / 'outer.yaml').write_text(OUTER)
    (tmp_path / 'paused.yaml').write_text('resource_registry: {resources: {child: {first: {hooks: pre-create}}}}\n')
    run('stack', 'create', '-t', 'outer.yaml', '-e', 'paused.yaml', 'halted')
    paused = []
    while not paused:
        paused = run('stack', 'hook', 'poll', '--nested-depth', '2', 'halted', '-f', 'json')
    assert [each for each in paused if 'first' in each.values()] == paused
    run('stack', 'hook', 'clear', '--pre-create', 'halted', 'child/fi*')
    while heat.stacks.get('halted').stack_status == 'CREATE_IN_PROGRESS':
        pass
    assert heat.stacks.get('halted').stack_status == 'CREATE_COMPLETE'
    heat.stacks.delete('halted')


def test_an_operation_is_cancelled_with_openstack(run):
    run('stack', 'create', '-t', 'slow.yaml', 'slow')
    assert 'CREATE_FAILED' in run('stack', 'cancel', '--no-rollback', '--wait', 'slow', code=1)
    run('stack', 'delete', '--yes', '--wait', 'slow')


def test_what_concerns_no_stack_with_openstack(run):
    assert (
        run('orchestration', 'build', 'info', '-f', 'json')['api']
        == run('orchestration', 'build', 'info', '-f', 'json')['engine']
    )
    services = run('orchestration', 'service', 'list', '-f', 'json')
    assert {each['Status'] for each in services} == {'up'}
    types = run('orchestration', 'resource', 'type', 'list', '-f', 'json')
    assert 'OS::Heat::Value' in {each['Resource Type'] for each in types}
    assert 'properties' in run('orchestration', 'resource', 'type', 'show', 'OS::Heat::Value')
    assert 'two resources' in run('orchestration', 'template', 'validate', '-t', 'one.yaml')


def test_a_software_configuration_is_created_by_having_a_template_validated_first(run, heat, tmp_path):
    (tmp_path / 'script.sh').write_text('#!/bin/sh')
    made = run('software', 'config', 'create', '--config-file', 'script.sh', '--group', 'script', 'mine', '-f', 'json')
    assert heat.software_configs.get(made['id']).config == '#!/bin/sh'
    heat.software_configs.delete(made['id'])


# --- python-heatclient as a library ----------------------------------------------------------------------------


@pytest.fixture
def heat(url, token):
    """The client library."""
    return heatclient.Client('1', endpoint=url, token=token)


def test_the_life_of_a_stack_with_heatclient(api, heat):
    made = heat.stacks.create(stack_name='library', template=TEMPLATE, files={}, parameters={'text': 'one'})
    stack_id = made['stack']['id']
    api.wait('library', stack_id, 'clients')
    stack = heat.stacks.get('library')
    assert (stack.stack_status, stack.outputs[0]['output_value']) == ('CREATE_COMPLETE', 'one')
    changes = heat.stacks.preview_update(stack_id, template=TEMPLATE, parameters={'text': 'two'})
    assert {each['resource_name'] for each in changes['resource_changes']['updated']} == {'first', 'second'}
    heat.stacks.update(stack_id, template=TEMPLATE, parameters={'text': 'two'})
    api.wait('library', stack_id, 'clients')
    assert heat.stacks.output_show('library', 'shown')['output']['output_value'] == 'two'
    assert [each.stack_name for each in heat.stacks.list(filters={'name': 'library'}, limit=1)] == ['library']
    assert {each.resource_name for each in heat.resources.list('library')} == {'first', 'second'}
    events = heat.events.list('library')
    assert heat.events.get(stack_id, 'first', heat.events.list(stack_id, 'first')[0].id).resource_name == 'first'
    assert heat.events.list('library', marker=events[0].id, limit=1)[0].id == events[1].id
    assert heat.stacks.template('library')['heat_template_version'] == '2018-08-31'
    with pytest.raises(exc.HTTPConflict, match='already exists'):
        heat.stacks.create(stack_name='library', template=TEMPLATE)
    with pytest.raises(exc.HTTPBadRequest, match='colour'):
        heat.stacks.create(stack_name='wrong', template=TEMPLATE, parameters={'colour': 'blue'})
    heat.stacks.delete(stack_id)
    api.wait('library', stack_id, 'clients')
    with pytest.raises(exc.HTTPNotFound):
        heat.stacks.get('library')


def test_users_and_resources_keep_software_in_one_place_with_heatclient(api, heat):
    mine = heat.software_configs.create(name='mine', group='script', config='#!/bin/sh').id
    made = heat.stacks.create(stack_name='deployed', template=SOFTWARE, parameters={'mine': mine})['stack']['id']
    api.wait('deployed', made, 'clients')
    (deployment,) = heat.software_deployments.list(server_id='a-server')
    assert (deployment.server_id, deployment.status, deployment.action) == ('a-server', 'COMPLETE', 'CREATE')
    assert {each.id for each in heat.software_configs.list()} == {mine, deployment.config_id}
    (told,) = heat.software_deployments.metadata(server_id='a-server')
    assert (told['id'], told['config']) == (deployment.config_id, '#!/bin/sh')
    heat.stacks.delete(made)
    api.wait('deployed', made, 'clients')
    assert [each.id for each in heat.software_configs.list()] == [mine]
    heat.software_configs.delete(mine)


def test_pages_are_read_to_the_end_by_heatclient(heat):
    for number in range(3):
        heat.stacks.create(stack_name=f'page-{number}', template=TEMPLATE, tags='page')
    found = heat.stacks.list(limit=3, page_size=1, tags='page', sort_keys=['stack_name'], sort_dir='asc')
    assert [each.stack_name for each in found] == ['page-0', 'page-1', 'page-2']


# --- openstacksdk ----------------------------------------------------------------------------------------------


def test_the_life_of_a_stack_with_the_sdk(url, token):
    cloud = openstack.connection.Connection(auth_type='admin_token', auth={'endpoint': url, 'token': token})
    orchestration = cloud.orchestration
    name = 'with-the-sdk'
    stack = orchestration.create_stack(name=name, template=TEMPLATE, parameters={'text': 'one'})
    stack = orchestration.wait_for_status(stack, 'CREATE_COMPLETE', failures=['CREATE_FAILED'], interval=1, wait=LONG_S)
    assert {each.name for each in orchestration.resources(stack)} == {'first', 'second'}
    assert orchestration.find_stack(name).outputs[0]['output_value'] == 'one'
    previewed = orchestration.create_stack(preview=True, name=f'{name}-2', template=TEMPLATE)
    assert previewed.status is None
    changes = orchestration.update_stack(stack.id, preview=True, template=TEMPLATE, parameters={'text': 'two'})
    assert changes is not None
    orchestration.update_stack(stack.id, template=TEMPLATE, parameters={'text': 'two'})
    orchestration.wait_for_status(stack, 'UPDATE_COMPLETE', failures=['UPDATE_FAILED'], interval=1, wait=LONG_S)
    assert name in {each.name for each in orchestration.stacks()}
    assert orchestration.get_stack_template(stack)['heat_template_version'] == '2018-08-31'
    assert orchestration.validate_template(TEMPLATE)['Description'] == 'two resources, one after the other'
    assert next(each.resource_name for each in orchestration.stack_events(stack)) == name
    orchestration.delete_stack(stack)
    orchestration.wait_for_delete(stack, interval=1, wait=LONG_S)
    assert orchestration.find_stack(name) is None
