"""Who is let in, and to what."""

from __future__ import annotations

import pytest
from keystonemiddleware.auth_token import AuthProtocol
from oslo_policy.policy import Enforcer

from convergence.api.application import Application, ApplicationOptions
from convergence.api.identity import Authentication
from convergence.api.policy import Policy
from tests.api.installation import TEMPLATE, application, client, empty_conf, verified

FORGED = {
    'X-Identity-Status': 'Confirmed',
    'X-Project-Id': 'q',
    'X-User-Id': 'mallory',
    'X-Roles': 'admin',
}


@pytest.mark.parametrize(
    'headers',
    [
        {'Host': 'evil.example'},
        {'Origin': 'http://evil.example'},
        {'Origin': 'null'},
        {'Host': '127.0.0.1.evil.example'},
    ],
)
def test_without_keystone_a_page_of_somebody_else_is_not_served(api, headers):
    """A browser on this machine sends what any page tells it to, but says for which host and from where."""
    assert api.ask('GET', 'stacks', headers=headers).status_code == 403


@pytest.mark.parametrize('host', ['127.0.0.1:8004', 'localhost', '[::1]:8004'])
def test_without_keystone_this_machine_is_served(api, host):
    assert api.ask('GET', 'stacks', headers={'Host': host}).status_code == 200


def test_without_keystone_another_machine_is_not_served(api):
    assert api.ask('GET', 'stacks', remote_addr='192.0.2.1').status_code == 403


@pytest.mark.parametrize('sent', [{}, {'X-Auth-Token': ''}, {'X-Auth-Token': 'x' * 43}, {'X-Auth-Token': '\xe9'}])
def test_without_keystone_only_who_knows_the_token_is_served(api, sent):
    """Every account of the machine reaches its loopback address, and could once run programs as the server's."""
    token = 'secret-canary-' * 3
    asked = client(application(api.embedded.client, token=token))
    refused = asked.simulate_get('/v1/p/stacks', headers=sent)
    assert refused.status_code == 401
    assert 'token' in refused.json['error']['message'] and 'canary' not in refused.text
    assert asked.simulate_post('/v1/p/stacks', headers=sent, body=b'{').status_code == 401
    assert asked.simulate_get('/v1/p/stacks', headers={'X-Auth-Token': token}).status_code == 200
    assert asked.simulate_get('/health/ready', headers=sent).status_code == 200
    for elsewhere in ({'Origin': 'http://evil.example'}, {'Host': 'evil.example'}):
        assert asked.simulate_get('/v1/p/stacks', headers={'X-Auth-Token': token, **elsewhere}).status_code == 403


def test_without_keystone_nobody_is_believed_who_names_himself(api):
    """The project is that of the URL, whatever the headers say."""
    api.create('mine', project='forged')
    assert api.ask('GET', '/v1/forged/stacks/mine', headers=FORGED).status_code == 302
    assert api.ask('GET', '/v1/q/stacks/mine', headers=FORGED).status_code == 404


def test_with_keystone_nobody_comes_in_unverified(api):
    asked = client(application(api.embedded.client, Authentication.KEYSTONE))
    refused = asked.simulate_get('/v1/p/stacks')
    assert refused.status_code == 401
    assert refused.json['error']['type'] == 'HTTPUnauthorized'
    assert asked.simulate_get('/').status_code == 300
    assert asked.simulate_get('/health/ready').status_code == 200


def test_with_keystone_forged_headers_are_removed(api):
    """keystonemiddleware itself stands before the application; there is no Keystone, and no token either."""
    protocol = AuthProtocol(
        application(api.embedded.client, Authentication.KEYSTONE),
        {'oslo_config_config': empty_conf(), 'delay_auth_decision': True, 'www_authenticate_uri': 'http://127.0.0.1:9'},
    )
    asked = client(lambda environ, start_response: protocol(environ, start_response))
    refused = asked.simulate_get('/v1/q/stacks', headers=FORGED)
    assert (refused.status_code, refused.json['error']['type']) == (401, 'HTTPUnauthorized')
    assert 'http://127.0.0.1:9' in refused.headers['www-authenticate']
    assert asked.simulate_get('/', headers=FORGED).status_code == 300


def test_a_token_for_one_project_does_not_open_another(api):
    assert verified(api)('GET', '/v1/p/stacks').status_code == 200
    refused = verified(api)('GET', '/v1/q/stacks')
    assert (refused.status_code, refused.json['error']['type']) == (403, 'Forbidden')


def test_a_reader_may_look_and_not_touch(api):
    reader, member, nobody = verified(api, roles='reader'), verified(api), verified(api, roles='guest')
    body = {'stack_name': 'untouchable', 'template': TEMPLATE}
    assert reader('GET', '/v1/p/stacks').status_code == 200
    refused = reader('POST', '/v1/p/stacks', json=body)
    assert refused.status_code == 403
    assert refused.json['error']['message'] == 'You are not authorized to complete this action: stacks:create.'
    for method, path in (
        ('POST', '/v1/p/stacks/preview'),
        ('PUT', '/v1/p/stacks/any/id/preview'),
        ('PATCH', '/v1/p/stacks/any/id/preview'),
        ('GET', '/v1/p/stacks/any/id/export'),
    ):
        # Whoever has a template evaluated with stored values, or sees private data, could as well update the stack.
        assert reader(method, path, json=body).status_code == 403
        assert member(method, path, json=body).status_code in (200, 404)
    assert reader('POST', '/v1/p/validate', json={'template': TEMPLATE}).status_code == 200
    assert nobody('GET', '/v1/p/stacks').status_code == 403
    assert member('GET', '/v1/p/services').status_code == 403
    assert verified(api, roles='admin')('GET', '/v1/p/services').status_code == 200


def test_the_project_of_a_stack_is_listed_for_admins(api):
    api.create('owned')
    for roles, is_shown in (('member', False), ('admin', True)):
        (stack,) = verified(api, roles=roles)('GET', '/v1/p/stacks', query_string='name=owned').json['stacks']
        assert ('project' in stack) is is_shown


def test_an_action_has_a_rule_of_its_own(api, tmp_path):
    rules = tmp_path / 'policy.yaml'
    rules.write_text('"actions:suspend": "!"\n')
    policy = Policy(Enforcer(empty_conf(), policy_file=str(rules)))
    asked = client(Application(api.embedded.client, policy, ApplicationOptions()))
    path = f'/v1/p/stacks/x/{"0" * 36}/actions'
    assert asked.simulate_post(path, json={'suspend': None}).status_code == 403
    assert asked.simulate_post(path, json={'cancel_update': None}).status_code == 404
