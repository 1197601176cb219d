"""Each example of the language is created for real, and its outputs are what they should be."""

import hashlib
import re
from functools import cache
from pathlib import Path

import jsonschema
import pytest

from convergence.cli.template.files import load
from convergence.cli.template.installed import installed_types
from convergence.cmd.embedded import Embedded
from convergence.concurrency import Executor
from convergence.config import (
    DatabaseSettings,
    EngineSettings,
    LimitSettings,
    LocalProviderSettings,
    Settings,
    TransportSettings,
    WorkerSettings,
)
from convergence.resources.catalog import RegistryCatalog
from convergence.template.authoring.json_schema import schema
from convergence.template.limits import Limits
from convergence.template.problems import Problems
from convergence.template.sources import read
from convergence.template.versions import VERSIONS

EXAMPLES = Path(__file__).parents[2] / 'examples'
DIRECTORY = EXAMPLES / 'language'
LONG_S = 120.0
ENVIRONMENTS = {
    'environment.yaml': ['environment.env.yaml'],
    'environment-merged.yaml': ['environment-base.env.yaml', 'environment-more.env.yaml'],
}
TEMPLATES = sorted(path for path in EXAMPLES.rglob('*.yaml') if not path.name.endswith('.env.yaml'))

OUTPUTS = {
    'cloudformation.yaml': {'Greeting': 'Hello, world', 'Stack': 'cloudformation'},
    'conditions.yaml': {
        'machine': {'cores': 2, 'disks': ['system'], 'plan': 'free'},
        'backup_id': re.compile('.{8}'),
        'archive': None,
        'plain': None,
    },
    'deletion-policy.yaml': {'kept': re.compile('.*/kept.txt'), 'removed': re.compile('.*/removed.txt')},
    'environment-merged.yaml': {
        'settings': {
            'labels': {'tier': 'web', 'limits': {'cpu': 1, 'memory': 2}},
            'names': ['a', 'b'],
            'zone': 'west',
        }
    },
    'environment.yaml': {'database': '3 in east'},
    'external-id.yaml': {'machine': 'attached to the-network-of-everybody'},
    'files.yaml': {'greeting': 'Hello, world!\n'},
    'groups.yaml': {
        'names': ['web-0', 'web-1', 'web-2'],
        'first': 'web-0',
        'by_name': {'0': 'web-0', '1': 'web-1', '2': 'web-2'},
        'greeting': 'hello',
    },
    'lists-and-maps.yaml': {
        'labels': {'color': 'blue', 'tier': 'web'},
        'renamed': {'colour': 'blue', 'tier': 'front'},
        'names': ['a', 'b', 'c'],
        'all': ['a', 'a', 'b'],
        'has_b': True,
        'url': 'https://[2001:db8::1]:8443/a%20page?q=x+y',
    },
    'outputs.yaml': {'first': 1, 'nothing_there': None, 'wrong': None},
    'parameters.yaml': {
        'settings': {'machines': 4, 'zone': 'east', 'owner': 'bob', 'public': False, 'stack': 'parameters'}
    },
    'references.yaml': {
        'port': 443,
        'note': 'ready',
        'all_of_tree': {'value': {'hosts': [{'name': 'a', 'ports': [80, 443]}], 'which': 'ports'}},
    },
    'repeat.yaml': {
        'rules': [
            {'from': network, 'port': port} for network in ('10.0.0.0/8', '192.168.0.0/16') for port in ('80', '443')
        ],
        'pairs': ['http is 80', 'https is 443'],
        'hosts': ['web.example.org', 'db.example.org'],
    },
    'reuse.yaml': {'all': ['small', 'small', 'large']},
    'software.yaml': {
        'server': 'web-1',
        'collectors': ['heat', 'local'],
        'users': '#cloud-config\nusers:\n- default\n',
        'user_data': re.compile('(?s)Content-Type: multipart/mixed.*text/cloud-config.*install-server.*'),
    },
    'text.yaml': {
        'script': '#!/bin/sh\nserve --name shop --options \'{"threads": 4}\'\n',
        'strict': 'example.org:8080',
        'joined': 'one, two, three',
        'domain': 'example',
        'digest': hashlib.sha256(b'one, two, three').hexdigest(),
        'digest_of_secret': re.compile('[0-9a-f]{64}'),
    },
    'time-limits.yaml': {'slow': 'here'},
    'yaql.yaml': {'large': ['b', 'c'], 'cores': 26},
}


@pytest.fixture(scope='module')
def embedded(tmp_path_factory):
    directory = tmp_path_factory.mktemp('examples')
    settings = Settings(
        host='here',
        executor=Executor.THREADING,
        state_dir=directory,
        database=DatabaseSettings(f'sqlite:///{directory}/convergence.sqlite'),
        transport=TransportSettings(),
        engine=EngineSettings(),
        worker=WorkerSettings(workers=2),
        limits=LimitSettings(),
        local_provider=LocalProviderSettings(enabled=True, root=directory / 'local', programs={}),
    )
    with Embedded(settings) as running:
        yield running


def create(embedded, name, stack=None, **parameters):
    """Create the stack of an example and show it, as a client that sends files and environments along."""
    environments = [str(DIRECTORY / each) for each in ENVIRONMENTS.get(name, ())]
    bundle = load(str(DIRECTORY / name), environments, Limits())
    assert bundle.problems == ()
    identity = embedded.client.create_stack(
        embedded.context('p'),
        stack or name.removesuffix('.yaml'),
        bundle.text,
        params={'parameters': parameters} if parameters else {},
        files={**bundle.files, **bundle.environments},
        environment_files=list(bundle.environments) or None,
    )
    return identity, embedded.wait(identity, LONG_S)


def delete(embedded, identity):
    embedded.client.delete_stack(embedded.context('p'), identity)
    embedded.wait(identity, LONG_S)


def test_every_example_is_tested():
    assert set(OUTPUTS) == {path.name for path in TEMPLATES if path.parent == DIRECTORY}


@pytest.mark.parametrize('name', OUTPUTS)
def test_it_gives_what_it_says(embedded, name):
    identity, shown = create(embedded, name)
    assert (shown['stack_action'], shown['stack_status']) == ('CREATE', 'COMPLETE'), shown['stack_status_reason']
    outputs = {output['output_key']: output['output_value'] for output in shown['outputs']}
    assert set(outputs) == set(OUTPUTS[name])
    for key, expected in OUTPUTS[name].items():
        if isinstance(expected, re.Pattern):
            assert expected.fullmatch(outputs[key]), key
        else:
            assert outputs[key] == expected, key
    delete(embedded, identity)


def test_conditions_change_what_there_is(embedded):
    identity, shown = create(embedded, 'conditions.yaml', 'another', size='large', backups=False)
    outputs = {output['output_key']: output['output_value'] for output in shown['outputs']}
    assert outputs == {
        'machine': {'cores': 16, 'disks': ['system', 'data'], 'plan': 'paid'},
        'backup_id': None,
        'archive': None,
        'plain': None,
    }
    delete(embedded, identity)


def test_what_is_to_be_retained_survives_its_stack(embedded):
    identity, shown = create(embedded, 'deletion-policy.yaml', 'leaving', path='other.txt')
    kept, removed = (
        Path(next(output['output_value'] for output in shown['outputs'] if output['output_key'] == key))
        for key in ('kept', 'removed')
    )
    assert kept.read_text() == 'still here'
    assert removed.exists()
    delete(embedded, identity)
    assert kept.read_text() == 'still here'
    assert not removed.exists()


def test_an_output_that_cannot_be_computed_says_why(embedded):
    identity, shown = create(embedded, 'outputs.yaml', 'wrong')
    errors = {output['output_key']: output.get('output_error') for output in shown['outputs']}
    assert errors['first'] is errors['nothing_there'] is None
    assert 'str_split' in errors['wrong']
    delete(embedded, identity)


@cache
def validator():
    """The schema of all installed types: to make it takes longer than all examples."""
    return jsonschema.Draft202012Validator(schema(RegistryCatalog(installed_types())))


@pytest.mark.parametrize('path', TEMPLATES, ids=lambda path: path.name)
def test_the_schema_for_editors_accepts_it(path):
    document = read(path.read_text(encoding='utf-8'), path.name, Limits(), Problems()).root
    validator().validate(document)


def test_each_function_is_in_an_example():
    text = '\n'.join(path.read_text(encoding='utf-8') for path in TEMPLATES)
    newest = list(VERSIONS.values())[-1]
    missing = {name for name in newest.functions if not re.search(rf'\b{name}:', text)}
    assert missing <= {'resource_facade', 'str_replace_vstrict'}


def test_the_index_names_each_example_and_nothing_else():
    index = (EXAMPLES / 'README.rst').read_text(encoding='utf-8')
    linked = set(re.findall(r'<([^>`]+\.(?:yaml|py))>`__', index))
    there = {str(path.relative_to(EXAMPLES)) for pattern in ('*.yaml', '*.py') for path in EXAMPLES.rglob(pattern)}
    assert linked == there
