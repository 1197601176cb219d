"""Software configurations and deployments: data for agents, kept per project."""

import pytest

from convergence import errors
from convergence.db.repositories.software import SoftwareRows
from convergence.engine.signals.software import Software
from tests.harness import Context

MINE, THEIRS = Context(), Context(project_id='other')
INPUTS = [{'name': 'port', 'default': 80}, {'name': 'host', 'type': 'String'}]


@pytest.fixture
def software(harness):
    return Software(SoftwareRows(harness.store), harness.new_id)


def config(software, name='web', context=MINE, **more):
    return software.create_software_config(context, 'script', name, '#!/bin/sh', INPUTS, [{'name': 'out'}], **more)


def test_a_configuration_is_kept_as_it_was_given(software):
    made = config(software, options={'a': 1})
    assert made['creation_time'].endswith('Z')
    assert {name: made[name] for name in ('group', 'name', 'config', 'inputs', 'outputs', 'options')} == {
        'group': 'script',
        'name': 'web',
        'config': '#!/bin/sh',
        'options': {'a': 1},
        'inputs': [{'type': 'String', 'name': 'port', 'default': 80}, {'name': 'host', 'type': 'String'}],
        'outputs': [{'type': 'String', 'name': 'out'}],
    }
    assert software.show_software_config(MINE, made['id']) == made
    listed = software.list_software_configs(MINE)
    assert listed == [{name: made[name] for name in ('id', 'group', 'name', 'creation_time')}]
    software.delete_software_config(MINE, made['id'])
    assert software.list_software_configs(MINE) == []


def test_what_is_left_out_has_a_default(software):
    made = software.create_software_config(MINE, None, None, None)
    assert (made['group'], made['name'], made['config'], made['inputs']) == ('Heat::Ungrouped', '', '', [])
    with pytest.raises(errors.Invalid, match='inputs: each must be a map with a name'):
        software.create_software_config(MINE, None, 'x', '', [{'type': 'String'}])
    with pytest.raises(errors.Invalid, match='name must not be longer than 255'):
        config(software, 'x' * 256)


def test_pages_follow_each_other_without_gap_or_double(software):
    made = [config(software, str(number))['id'] for number in range(5)]
    seen, marker = [], None
    while page := software.list_software_configs(MINE, 2, marker):
        seen += [each['id'] for each in page]
        marker = seen[-1]
    assert sorted(seen) == sorted(made)
    assert len(set(seen)) == 5
    with pytest.raises(errors.EntityNotFound):
        software.list_software_configs(THEIRS, 2, made[0])
    with pytest.raises(errors.Invalid):
        software.list_software_configs(MINE, -1)


def test_a_deployment_tells_what_has_become_of_a_configuration(software):
    used = config(software)['id']
    made = software.create_software_deployment(MINE, 'server', used, input_values={'port': 8080, 'zone': 'a'})
    assert {name: made[name] for name in ('action', 'status', 'status_reason', 'output_values', 'updated_time')} == {
        'action': 'INIT',
        'status': 'COMPLETE',
        'status_reason': '',
        'output_values': {},
        'updated_time': None,
    }
    (told,) = software.metadata_software_deployments(MINE, 'server')
    assert told['id'] == used
    assert [(each['name'], each['value']) for each in told['inputs']] == [('port', 8080), ('host', None), ('zone', 'a')]
    changed = software.update_software_deployment(
        MINE, made['id'], status='FAILED', action='CREATE', output_values={'out': 1}, config_id=None
    )
    assert (changed['status'], changed['action'], changed['config_id']) == ('FAILED', 'CREATE', used)
    assert (changed['input_values'], changed['output_values']) == ({'port': 8080, 'zone': 'a'}, {'out': 1})
    assert changed['updated_time'] is not None
    assert software.list_software_deployments(MINE) == software.list_software_deployments(MINE, 'server') == [changed]
    assert software.list_software_deployments(MINE, 'another') == []
    software.delete_software_deployment(MINE, made['id'])
    assert software.list_software_deployments(MINE) == []


def test_a_configuration_in_use_stays(software):
    used = config(software)['id']
    deployment = software.create_software_deployment(MINE, 'server', used)
    with pytest.raises(errors.Invalid, match=f'Software config with id {used} can not be deleted as it is referenced'):
        software.delete_software_config(MINE, used)
    software.delete_software_deployment(MINE, deployment['id'])
    software.delete_software_config(MINE, used)


def test_nobody_sees_or_touches_what_belongs_to_another_project(software):
    used = config(software)['id']
    made = software.create_software_deployment(MINE, 'server', used, stack_user_project_id='agents')['id']
    for call in (
        lambda: software.show_software_config(THEIRS, used),
        lambda: software.delete_software_config(THEIRS, used),
        lambda: software.create_software_deployment(THEIRS, 'server', used),
        lambda: software.show_software_deployment(THEIRS, made),
        lambda: software.update_software_deployment(THEIRS, made, status='FAILED'),
        lambda: software.delete_software_deployment(THEIRS, made),
        lambda: software.update_software_deployment(MINE, made, config_id=config(software, context=THEIRS)['id']),
    ):
        with pytest.raises(errors.EntityNotFound):
            call()
    assert software.list_software_deployments(THEIRS) == software.metadata_software_deployments(THEIRS, 'server') == []
    agents = Context(project_id='agents')
    assert [each['id'] for each in software.metadata_software_deployments(agents, 'server')] == [used]
    assert software.update_software_deployment(agents, made, status='COMPLETE')['status'] == 'COMPLETE'
