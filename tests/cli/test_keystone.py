"""The command line and the API with a Keystone between them: tokens that are got, sent and verified."""

import json
import os
import sys

import pytest
from oslo_config import cfg

from convergence.api.server import HttpServer
from convergence.cmd import convergence as command
from convergence.cmd.wiring.api import make_application
from convergence.config import ApiSettings
from tests import keystone
from tests.api.installation import TEMPLATE, installed

SECTION = """[keystone_authtoken]
auth_type = password
auth_url = {url}
www_authenticate_uri = {url}
username = service
password = service-password
project_name = demo
user_domain_name = Default
project_domain_name = Default
"""


@pytest.fixture(scope='module')
def identity():
    with keystone.running() as running:
        yield running


@pytest.fixture(scope='module')
def url(identity, tmp_path_factory):
    """A server that has every token verified, in the catalog as the region north."""
    directory = tmp_path_factory.mktemp('verified')
    (directory / 'api.conf').write_text(SECTION.format(url=identity.url))
    conf = cfg.ConfigOpts()
    conf([], default_config_files=[str(directory / 'api.conf')])
    with installed(directory) as api:
        application = make_application(ApiSettings(authentication='keystone'), api.embedded.parts.transport, conf)
        server = HttpServer(application, '127.0.0.1', 0, threads=8)
        server.start()
        identity.catalog = {'south': 'http://127.0.0.1:1', 'north': server.address}
        yield server.address
        server.stop(10)


@pytest.fixture
def run(url, tmp_path, monkeypatch, capfd):
    """Run a command with variables: exit code, standard output, standard error."""
    for name in [name for name in os.environ if name.startswith(('OS_', 'CONVERGENCE_'))]:
        monkeypatch.delenv(name)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv('XDG_CONFIG_HOME', str(tmp_path / 'config'))
    monkeypatch.setenv('XDG_STATE_HOME', str(tmp_path / 'state'))
    (tmp_path / 'one.yaml').write_text(TEMPLATE)

    def command_line(*arguments, **options):
        with monkeypatch.context() as patch:
            for name, value in options.items():
                patch.setenv(f'OS_{name.upper()}', value)
            code = command.main(list(arguments))
        out, err = capfd.readouterr()
        return code, out, err

    return command_line


def test_a_stack_from_its_creation_to_its_end_with_tokens(run, identity):
    ann = {**identity.options(), 'region_name': 'north'}
    code, out, err = run('stack', 'create', 'life', '-t', 'one.yaml', '--wait', '-f', 'json', **ann)
    assert code == 0, err
    assert json.loads(out)['stack_status'] == 'CREATE_COMPLETE'
    assert run('stack', 'list', '-f', 'value', '-c', 'stack_name', **ann)[:2] == (0, 'life\n')
    assert run('stack', 'delete', 'life', '--yes', '--wait', **ann)[0] == 0


def test_a_token_may_be_given_instead_of_a_password(run, identity, url):
    token, _ = identity.issue(
        {
            'auth': {
                'identity': {
                    'methods': ['password'],
                    'password': {'user': {'name': 'ann', 'password': keystone.PASSWORDS['ann']}},
                },
                'scope': {'project': {'name': 'demo'}},
            }
        }
    )
    project = identity.projects['demo']
    assert run('stack', 'list', '--endpoint', f'{url}/v1/{project}', token=token)[0] == 0
    scope = {'project_name': 'demo', 'project_domain_name': 'Default', 'region_name': 'north'}
    assert run('stack', 'list', auth_url=f'{identity.url}/v3', auth_type='token', token=token, **scope)[0] == 0


def test_a_server_of_the_configuration_file_may_have_a_keystone(run, identity, tmp_path):
    (tmp_path / 'config' / 'convergence').mkdir(parents=True)
    servers = {'cloud': {'auth': identity.options(), 'region_name': 'north'}}
    (tmp_path / 'config' / 'convergence' / 'cli.yaml').write_text(json.dumps({'servers': servers}))
    assert run('stack', 'list', '--server', 'cloud')[0] == 0


def test_a_cloud_of_clouds_yaml_is_logged_in_to(run, identity, tmp_path, monkeypatch):
    north = {'auth': identity.options(), 'region_name': 'north'}
    wrong = {**north, 'auth': {**identity.options(), 'password': 'canary-wrong-73'}}
    clouds = {
        'north': north,
        'wrong': wrong,
        'blind': {**north, 'verify': False},
        'nowhere': {**north, 'region_name': 'x'},
    }
    file = tmp_path / 'clouds.yaml'
    file.write_text(json.dumps({'clouds': clouds}))
    # openstacksdk fixes its search path at the first import in a process.
    monkeypatch.setenv('OS_CLIENT_CONFIG_FILE', str(file))
    assert run('stack', 'list', cloud='north')[0] == 0
    assert run('stack', 'list', '--os-cloud', 'north')[0] == 0
    for name, code, said in (
        ('missing', 2, 'missing'),
        ('wrong', 4, 'Keystone does not accept the credentials'),
        ('blind', 2, 'verify: false'),
        ('nowhere', 5, 'no orchestration service'),
    ):
        found, out, err = run('stack', 'list', '--os-cloud', name)
        assert (found, out) == (code, '') and said in err, err
        assert 'canary' not in err and 'Traceback' not in err
    assert run('stack', 'list', '--os-cloud', 'north', '--server', 'north')[0] == 2
    monkeypatch.setitem(sys.modules, 'openstack.config', None)
    code, _, err = run('stack', 'list', cloud='north')
    assert code == 2 and 'pip install convergence-orchestration[clouds]' in err


@pytest.mark.parametrize(
    ('options', 'code', 'said'),
    [
        ({'password': 'canary-wrong-72'}, 4, 'Keystone does not accept the credentials'),
        ({'project_name': 'nowhere'}, 4, 'Keystone does not accept the credentials'),
        ({'region_name': 'nowhere'}, 5, 'the catalog of Keystone has no orchestration service'),
        ({'region_name': 'south'}, 5, 'The server at http://127.0.0.1:1'),
        ({'auth_url': 'http://127.0.0.1:1/v3'}, 5, 'Keystone does not answer as expected'),
        ({'auth_type': 'nonsense'}, 2, 'nonsense'),
        ({'password': ''}, 2, 'has no password'),
    ],
)
def test_what_goes_wrong_is_said_without_a_secret(run, identity, options, code, said):
    found, out, err = run('stack', 'list', **{**identity.options(), 'region_name': 'north', **options})
    assert (found, out) == (code, ''), err
    assert said in err
    assert 'canary' not in err and 'Traceback' not in err


def test_a_keystone_that_is_out_of_order_is_said_to_be(run, identity, monkeypatch):
    monkeypatch.setattr(identity, 'is_broken', True)
    code, _, err = run('stack', 'list', **identity.options(), region_name='north')
    assert code == 5 and 'Keystone does not answer as expected' in err


def test_a_token_that_nobody_issued_opens_nothing(run, identity, url):
    project = identity.projects['demo']
    assert run('stack', 'list', '--endpoint', f'{url}/v1/{project}', token='made-up')[0] == 4
    assert run('stack', 'list', '--endpoint', f'{url}/v1/{project}')[0] == 4


def test_a_token_opens_its_own_project_only_and_what_its_roles_allow(run, identity, url):
    ann, other = identity.options(), identity.projects['other']
    assert run('stack', 'list', **ann, endpoint=f'{url}/v1/{other}')[0] == 4
    ben = {**identity.options('ben'), 'region_name': 'north'}
    assert run('stack', 'list', **ben)[0] == 0
    code, _, err = run('stack', 'create', 'mine', '-t', 'one.yaml', **ben)
    assert code == 4 and 'stacks:create' in err


def test_a_keystone_that_fails_after_the_first_token_is_told_as_such(identity, url, monkeypatch):
    """A token runs out while an operation is followed."""
    from convergence.cli.connection.keystone import log_in
    from convergence.cli.exits import Unreachable

    login = log_in({**identity.options(), 'region_name': 'north'}, 'a test', '')
    monkeypatch.setattr(identity, 'is_broken', True)
    monkeypatch.setattr('keystoneauth1.access.AccessInfo.will_expire_soon', lambda self, *stale: True)
    with pytest.raises(Unreachable, match='Keystone does not answer as expected'):
        login.token()
