"""Configurations and deployments as resources: what agents find on their servers, and how they report back."""

import json

import pytest

from convergence import errors, signing
from convergence.concurrency import Task
from convergence.core.software import IN_PROGRESS
from convergence.db.repositories.software import SoftwareRows
from convergence.engine.reads.resources import ResourceReads
from convergence.engine.signals.software import Software
from convergence.worker.attempts.attempt import PollPolicy
from tests.engine.test_signal_addresses import send
from tests.harness import Harness

CONFIG = {
    'type': 'OS::Heat::SoftwareConfig',
    'properties': {
        'group': 'script',
        'config': 'echo $port',
        'inputs': [{'name': 'port', 'default': 80}, {'name': 'disk', 'replace_on_change': True}],
        'outputs': [{'name': 'answer'}, {'name': 'trouble', 'error_output': True}],
    },
}
OUTPUTS = {
    name: {'value': {'get_attr': ['deployment', name]}}
    for name in ('answer', 'deploy_stdout', 'deploy_stderr', 'deploy_status_code')
}


@pytest.fixture
def harness(engine):
    """A parked action is looked at again when something happens, not because time goes by."""
    return Harness(engine, pace=PollPolicy(0.0, 1e6, -1.0, 1))


@pytest.fixture
def software(harness):
    return Software(SoftwareRows(harness.store), harness.new_id)


def deployment(**properties):
    given = {'config': {'get_resource': 'config'}, 'server': 'a-server', **properties}
    return {'type': 'OS::Heat::SoftwareDeployment', 'properties': given}


def template(**resources):
    return {'heat_template_version': '2018-08-31', 'resources': resources, 'outputs': OUTPUTS}


def create(harness, config=CONFIG, **properties):
    whole = template(config=config, deployment=deployment(**properties))
    made = harness.stacks.create_stack(harness.context, 'stack', whole, None, None, {})
    harness.run()
    return made['stack_id']


def update(harness, stack, config=CONFIG, **properties):
    whole = template(config=config, deployment=deployment(**properties))
    harness.stacks.update_stack(harness.context, {'stack_id': stack}, whole, None, None, {})
    harness.run()


def on_server(harness, software, server='a-server'):
    """What the agent finds: each configuration, and the values of its inputs."""
    found = software.metadata_software_deployments(harness.context, server)
    return [(each, {given['name']: given['value'] for given in each['inputs']}) for each in found]


def answer(harness, software, **details):
    """The agent does what it finds, and reports back as it was told."""
    ((_, inputs),) = on_server(harness, software)
    send(harness, inputs['deploy_signal_id'], details)
    harness.run()


def attributes(harness, stack):
    return harness.row(stack, 'deployment').output.attributes


def configs(harness, software):
    return software.list_software_configs(harness.context)


def test_a_deployment_waits_in_its_row_until_the_server_has_reported_back(harness, software):
    stack = create(harness, input_values={'port': 8080, 'zone': 'a'})
    assert harness.state(stack) == 'CREATE_IN_PROGRESS'
    assert harness.row(stack, 'deployment').owner is None
    ((config, inputs),) = on_server(harness, software)
    assert (config['group'], config['config']) == ('script', 'echo $port')
    assert {name: inputs[name] for name in ('port', 'disk', 'zone', 'deploy_action', 'deploy_server_id')} == {
        'port': 8080,
        'disk': None,
        'zone': 'a',
        'deploy_action': 'CREATE',
        'deploy_server_id': 'a-server',
    }
    assert inputs['deploy_stack_id'] == f'stack/{stack}'
    assert (inputs['deploy_resource_name'], inputs['deploy_signal_verb']) == ('deployment', 'POST')
    (listed,) = software.list_software_deployments(harness.context)
    assert (listed['action'], listed['status'], listed['config_id']) == ('CREATE', IN_PROGRESS, config['id'])
    answer(harness, software, answer=[42], deploy_stdout='out', deploy_stderr='', deploy_status_code=0, more='x')
    assert harness.state(stack) == 'CREATE_COMPLETE'
    said = {'answer': [42], 'deploy_stdout': 'out', 'deploy_stderr': '', 'deploy_status_code': 0}
    assert attributes(harness, stack) == said
    (listed,) = software.list_software_deployments(harness.context, 'a-server')
    assert (listed['id'], listed['output_values']) == (harness.row(stack, 'deployment').physical_id, said)
    assert (listed['status'], listed['status_reason']) == ('COMPLETE', 'Outputs received')
    reasons = [event.reason for event in harness.reader.events(stack) if event.action == 'SIGNAL']
    assert reasons == ['deployment succeeded']
    harness.delete(stack)
    harness.run()
    assert software.list_software_deployments(harness.context) == configs(harness, software) == []


@pytest.mark.parametrize(
    ('said', 'reason'),
    [
        (
            {'deploy_status_code': 3},
            'deploy_status_code : Deployment exited with non-zero status code: 3',
        ),
        ({'deploy_status_code': 0, 'trouble': 'disk full'}, 'trouble : disk full'),
    ],
)
def test_what_fails_on_the_server_fails_the_resource_and_is_done_again_by_the_next_update(
    harness, software, said, reason
):
    stack = create(harness)
    ((first, _),) = on_server(harness, software)
    answer(harness, software, **said)
    assert harness.stack(stack).status_reason == (
        f'Resource CREATE failed: resources.deployment: Deployment to server failed: {reason}'
    )
    update(harness, stack)
    found = on_server(harness, software)
    assert first['id'] not in {each['id'] for each, _ in found[-1:]}
    for each, inputs in found:
        if each['id'] != first['id']:
            send(harness, inputs['deploy_signal_id'], {})
    harness.run()
    assert harness.state(stack) == 'UPDATE_COMPLETE'
    assert len(software.list_software_deployments(harness.context)) == 1
    assert len(configs(harness, software)) == 2


def test_an_update_derives_anew_in_place_and_a_late_answer_to_the_old_one_counts_for_nothing(harness, software):
    stack = create(harness)
    answer(harness, software, answer='a')
    physical_id = harness.row(stack, 'deployment').physical_id
    seen = {on_server(harness, software)[0][0]['id']}
    for port in (1, 2, 1):
        update(harness, stack, input_values={'port': port})
        ((config, inputs),) = on_server(harness, software)
        assert (inputs['port'], inputs['deploy_action']) == (port, 'UPDATE')
        assert config['id'] not in seen, 'the agent would take it for done'
        seen.add(config['id'])
        answer(harness, software, answer=port)
        assert attributes(harness, stack)['answer'] == port
        send(harness, inputs['deploy_signal_id'], {'answer': 'late', 'deploy_status_code': 1})
        harness.run()
    assert harness.state(stack) == 'UPDATE_COMPLETE'
    assert harness.row(stack, 'deployment').physical_id == physical_id
    assert software.show_software_deployment(harness.context, physical_id)['output_values']['answer'] == 1
    assert len(configs(harness, software)) == 2, 'its own configuration, and what was derived last'


def test_an_input_that_says_so_replaces_the_deployment(harness, software):
    stack = create(harness, input_values={'disk': 'a'})
    answer(harness, software)
    physical_id = harness.row(stack, 'deployment').physical_id
    update(harness, stack, input_values={'disk': 'b'})
    (new,) = [inputs for _, inputs in on_server(harness, software) if inputs['disk'] == 'b']
    send(harness, new['deploy_signal_id'])
    harness.run()
    assert harness.state(stack) == 'UPDATE_COMPLETE'
    assert harness.row(stack, 'deployment').physical_id != physical_id
    ((_, inputs),) = on_server(harness, software)
    assert inputs['disk'] == 'b'


def test_actions_are_done_on_the_server_also_when_the_resource_rests_or_goes(harness, software):
    stack = create(harness, actions=['SUSPEND', 'RESUME', 'DELETE'])
    assert harness.state(stack) == 'CREATE_COMPLETE'
    assert on_server(harness, software) == []
    for action in ('suspend', 'resume'):
        harness.act(stack, action)
        harness.run()
        assert harness.state(stack) == f'{action.upper()}_IN_PROGRESS'
        assert on_server(harness, software)[0][1]['deploy_action'] == action.upper()
        answer(harness, software)
        assert harness.state(stack) == f'{action.upper()}_COMPLETE'
    harness.delete(stack)
    harness.run()
    assert harness.state(stack) == 'DELETE_IN_PROGRESS'
    assert on_server(harness, software)[0][1]['deploy_action'] == 'DELETE'
    answer(harness, software)
    assert harness.state(stack) == 'DELETE_COMPLETE'
    assert software.list_software_deployments(harness.context) == configs(harness, software) == []


def test_a_component_says_itself_in_which_actions_it_is_done(harness, software):
    component = {
        'type': 'OS::Heat::SoftwareComponent',
        'properties': {'configs': [{'tool': 'script', 'config': 'x', 'actions': ['UPDATE']}]},
    }
    stack = create(harness, component)
    assert harness.state(stack) == 'CREATE_COMPLETE'
    update(harness, stack, component, name='first')
    ((config, inputs),) = on_server(harness, software)
    assert (config['name'], config['group'], inputs['deploy_action']) == ('first', 'component', 'UPDATE')
    assert config['config'] == {'configs': [{'actions': ['UPDATE'], 'config': 'x', 'tool': 'script'}]}


def test_a_component_tells_its_configurations_as_a_map_and_as_a_list(harness):
    asked = {name: {'get_attr': ['component', name]} for name in ('config', 'configs')}
    resources = {
        'component': {'type': 'OS::Heat::SoftwareComponent', 'properties': {'configs': [{'tool': 'script'}]}},
        'asking': {'type': 'OS::Heat::Value', 'properties': {'value': asked}},
    }
    whole = {'heat_template_version': '2018-08-31', 'resources': resources}
    stack = harness.stacks.create_stack(harness.context, 'stack', whole, None, None, {})['stack_id']
    harness.run()
    told = harness.row(stack, 'asking').properties['value']
    assert told['config'] == {'configs': told['configs']}
    assert told['configs'] == [{'actions': ['CREATE', 'UPDATE'], 'config': None, 'tool': 'script'}]


def test_a_cancel_is_told_to_the_agent(harness, software):
    stack = create(harness)
    harness.cancel(stack, rollback=False)
    harness.deliver_cancels()
    for row in harness.sweeps.parked_at_rest(10):  # with its next heartbeat a worker sees to these
        harness.workers[0]._parts.checks.interrupt(row, Task('interrupt'))
    (listed,) = software.list_software_deployments(harness.context)
    assert (listed['status'], listed['status_reason']) == ('FAILED', 'Deployment cancelled.')


def test_nobody_waits_for_a_deployment_without_a_signal(harness, software):
    stack = create(harness, signal_transport='NO_SIGNAL')
    assert harness.state(stack) == 'CREATE_COMPLETE'
    (listed,) = software.list_software_deployments(harness.context)
    assert (listed['status'], listed['status_reason']) == ('COMPLETE', 'Not waiting for outputs signal')
    assert attributes(harness, stack)['answer'] is None


def test_a_member_may_report_over_the_api(harness, software):
    stack = create(harness, signal_transport='HEAT_SIGNAL')
    ((_, inputs),) = on_server(harness, software)
    assert (inputs['deploy_signal_transport'], inputs['deploy_password']) == ('HEAT_SIGNAL', '')
    with pytest.raises(errors.Invalid, match='it must be a map of outputs'):
        harness.signals.resource_signal(harness.context, {'stack_id': stack}, 'deployment', 'done')
    harness.signals.resource_signal(harness.context, {'stack_id': stack}, 'deployment', {'answer': 1})
    harness.run()
    assert harness.state(stack) == 'CREATE_COMPLETE'


def test_a_change_over_the_api_is_noticed_when_its_time_has_come(harness, software):
    stack = create(harness)
    (listed,) = software.list_software_deployments(harness.context)
    software.update_software_deployment(harness.context, listed['id'], status='COMPLETE', output_values={'answer': 'x'})
    harness.recover()
    assert harness.state(stack) == 'CREATE_COMPLETE'
    assert attributes(harness, stack)['answer'] == 'x'


def test_many_signals_take_no_room(harness, software):
    """What a deployment is told is kept as its output, not as signals that add up to a limit."""
    stack = create(harness)
    for _ in range(3):
        answer(harness, software, answer='x' * 600_000)
    assert harness.reader.count_signals(harness.row(stack, 'deployment').id) == 0
    assert harness.state(stack) == 'CREATE_COMPLETE'


def test_workers_that_die_leave_one_deployment_and_one_derived_configuration(harness, software):
    whole = template(config=CONFIG, deployment=deployment())
    stack = harness.stacks.create_stack(harness.context, 'stack', whole, None, None, {})['stack_id']
    for _ in range(20):
        if harness.messages.checks:
            harness.deliver()
        harness.restart()
        harness.let_time_pass()
        harness.sweep()
    harness.run()
    ((config, inputs),) = on_server(harness, software)
    assert signing.resource_of(inputs['deploy_signal_id']) == harness.row(stack, 'deployment').id
    assert len(configs(harness, software)) == 2
    answer(harness, software)
    assert harness.state(stack) == 'CREATE_COMPLETE'
    assert on_server(harness, software)[0][0]['id'] == config['id']


def test_a_structured_deployment_puts_values_into_the_configuration(harness, software):
    config = {
        'type': 'OS::Heat::StructuredConfig',
        'properties': {
            'config': {'port': {'get_input': 'port'}, 'list': [{'get_input': 'none'}], 'a': {'get_input': 1}},
            'inputs': [{'name': 'port', 'default': 80}],
        },
    }
    structured = {**deployment(signal_transport='NO_SIGNAL'), 'type': 'OS::Heat::StructuredDeployment'}
    strict = {**structured, 'properties': {**structured['properties'], 'input_values_validate': 'STRICT'}}
    whole = {'heat_template_version': '2018-08-31', 'resources': {'config': config, 'lax': structured}}
    made = harness.stacks.create_stack(harness.context, 'stack', whole, None, None, {})['stack_id']
    harness.run()
    assert harness.state(made) == 'CREATE_COMPLETE'
    assert on_server(harness, software)[0][0]['config'] == {'port': 80, 'list': [None], 'a': {'get_input': 1}}
    whole['resources']['strict'] = strict
    harness.stacks.update_stack(harness.context, {'stack_id': made}, whole, None, None, {})
    harness.run()
    assert 'The Parameter (none) was not provided.' in harness.stack(made).status_reason


def test_a_message_of_many_parts_takes_in_other_configurations(harness, software):
    config = {'type': 'OS::Heat::CloudConfig', 'properties': {'cloud_config': {'users': ['default']}}}
    inner = {'type': 'OS::Heat::MultipartMime', 'properties': {'parts': [{'config': {'get_resource': 'config'}}]}}
    parts = [
        {'config': '#!/bin/sh', 'filename': 'x-shellscript.sh'},
        {'config': {'get_resource': 'inner'}, 'type': 'multipart'},
    ]
    outer = {'type': 'OS::Heat::MultipartMime', 'properties': {'parts': parts, 'group': 'tool'}}
    whole = {
        'heat_template_version': '2018-08-31',
        'resources': {'config': config, 'inner': inner, 'outer': outer},
        'outputs': {'all': {'value': {'get_attr': ['outer', 'config']}}},
    }
    stack = harness.stacks.create_stack(harness.context, 'stack', whole, None, None, {})['stack_id']
    harness.run()
    message = harness.row(stack, 'outer').output.attributes['config']
    assert 'Content-Type: text/x-shellscript' in message
    assert 'filename="x-shellscript.sh"' in message
    assert '#cloud-config\nusers:\n- default' in message
    assert message.count('multipart/mixed') == 1
    kept = [harness.ports.software.config('p', harness.row(stack, name).physical_id) for name in ('inner', 'outer')]
    assert [each.group for each in kept] == ['Heat::Ungrouped', 'tool']


def test_a_declared_output_is_an_attribute_of_a_group_by_the_names_of_its_servers(harness, software):
    given = {'config': {'get_resource': 'config'}, 'servers': {'web': 'server-1', 'db': 'server-2'}}
    paths = {'all': ['answer'], 'one': ['answer', 'web'], 'of_member': ['resource.db', 'answer']}
    whole = template(
        config=CONFIG,
        group={'type': 'OS::Heat::SoftwareDeploymentGroup', 'properties': given},
        **{
            name: {'type': 'OS::Heat::Value', 'properties': {'value': {'get_attr': ['group', *path]}}}
            for name, path in paths.items()
        },
    )
    whole.pop('outputs')
    stack = harness.stacks.create_stack(harness.context, 'stack', whole, None, None, {})['stack_id']
    harness.run()
    for server, said in (('server-1', 'one'), ('server-2', 'two')):
        ((_, inputs),) = on_server(harness, software, server)
        send(harness, inputs['deploy_signal_id'], {'answer': said, 'deploy_status_code': 0})
        harness.run()
    assert harness.state(stack) == 'CREATE_COMPLETE', harness.stack(stack).status_reason
    told = {name: harness.row(stack, name).properties['value'] for name in paths}
    assert told == {'all': {'web': 'one', 'db': 'two'}, 'one': 'one', 'of_member': 'two'}


def test_the_metadata_of_a_server_say_what_is_to_be_done_on_it(harness, software):
    server = {
        'type': 'OS::Heat::DeployedServer',
        'metadata': {'rack': 7},
        'properties': {'name': 'one', 'software_config_transport': 'POLL_SERVER_HEAT'},
    }
    whole = template(config=CONFIG, server=server, deployment=deployment(server={'get_resource': 'server'}))
    whole['outputs'] = {'name': {'value': {'get_attr': ['server', 'name']}}}
    stack = harness.stacks.create_stack(harness.context, 'stack', whole, None, None, {})['stack_id']
    harness.run()
    reads = ResourceReads(harness.reader, harness.compiler, harness.ports.software)
    shown = reads.describe_stack_resource(harness.context, {'stack_id': stack}, 'server')
    metadata = shown['metadata']
    assert metadata['rack'] == 7
    assert metadata['os-collect-config']['heat']['stack_id'] == f'stack/{stack}'
    (told,) = metadata['deployments']
    server_id = harness.row(stack, 'server').physical_id
    ((fetched, _),) = on_server(harness, software, server_id)
    assert told == {name: value for name, value in fetched.items() if name != 'creation_time'}
    assert json.loads(json.dumps(told)) == told


@pytest.mark.parametrize(
    ('kind', 'properties', 'message'),
    [
        ('SoftwareDeployment', {'server': 's', 'signal_transport': 'TEMP_URL_SIGNAL'}, 'needs an object store'),
        ('StructuredDeployment', {'server': 's', 'signal_transport': 'ZAQAR_SIGNAL'}, 'a queueing service'),
        ('DeployedServer', {'software_config_transport': 'ZAQAR_MESSAGE'}, 'a queueing service'),
        ('AccessPolicy', {'AllowedResources': ['one', 'two']}, 'AccessPolicy resource two not in stack'),
    ],
)
def test_what_cannot_work_here_is_refused_before_anything_is_made(harness, kind, properties, message):
    whole = {
        'heat_template_version': '2018-08-31',
        'resources': {'one': {'type': f'OS::Heat::{kind}', 'properties': properties}},
    }
    with pytest.raises(errors.StackValidationFailed, match=message):
        harness.stacks.create_stack(harness.context, 'stack', whole, None, None, {})
