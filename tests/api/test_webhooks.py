"""Webhooks over HTTP: made, shown, tried and deleted by those who may, and no secret in any answer but the first."""

from __future__ import annotations

import pytest

from convergence.config import NotificationSettings
from tests.api.installation import TEMPLATE, installed, verified


@pytest.fixture(scope='module')
def inside(tmp_path_factory):
    """An installation whose operator allows webhooks on this machine."""
    allowing = NotificationSettings(
        allowed_networks=('127.0.0.1',), interval_s=0.05, max_webhooks_per_project=3, timeout_s=20.0
    )
    with installed(tmp_path_factory.mktemp('webhooks'), notifications=allowing) as made:
        yield made


def create(api, url, project='p', **more):
    return api.ask('POST', f'/v1/{project}/webhooks', json={'url': url, **more})


def test_a_webhook_from_its_creation_to_its_end(inside, receiver):
    path = inside.create('told')
    made = create(inside, receiver.url, stack='told', name='ci')
    assert made.status_code == 201
    webhook = made.json['webhook']
    key = webhook.pop('key')
    assert key.startswith('whsec_')
    assert webhook['stack_id'] == path.split('/')[2]
    tested = inside.ask('POST', f'webhooks/{webhook["id"]}/test')
    assert tested.json['result'] == {'delivered': True, 'status': 204, 'error': ''}
    assert inside.ask('PATCH', path, json={'parameters': {'text': 'other'}}).status_code == 202
    told = receiver.expect(3)
    assert [each['type'] for each in told] == [
        'orchestration.webhook.test',
        'orchestration.stack.update.start',
        'orchestration.stack.update.end',
    ]
    shown = inside.ask('GET', f'webhooks/{webhook["id"]}')
    listed = inside.ask('GET', 'webhooks', query_string='stack=told')
    assert [each['id'] for each in listed.json['webhooks']] == [webhook['id']]
    assert shown.json['webhook']['name'] == 'ci'
    assert key not in shown.text + listed.text + tested.text
    assert inside.ask('DELETE', f'webhooks/{webhook["id"]}').status_code == 204
    assert inside.ask('GET', f'webhooks/{webhook["id"]}').status_code == 404
    assert inside.ask('GET', 'webhooks').json == {'webhooks': []}


def test_what_no_webhook_can_be_is_refused_and_says_why(api, inside):
    for url, said in (
        ('http://169.254.169.254/latest/meta-data', 'allowed_networks'),
        ('http://127.0.0.1:8004/', 'allowed_networks'),
        ('ftp://host/', 'https://'),
        ('http://user:password@host/', 'no user, no password'),
        ('', 'needs a url'),
    ):
        refused = create(api, url)
        assert (refused.status_code, said in refused.text, 'password@' in refused.text) == (400, True, False), url
    assert create(api, 'http://192.0.2.1/', stack='nobody').status_code in (400, 404)
    for body in ({}, {'url': 3}, {'url': 'http://h/', 'more': 1}, {'url': 'http://h/', 'name': 'x' * 300}):
        assert api.ask('POST', 'webhooks', json=body).status_code == 400, body
    assert create(inside, 'http://127.0.0.1:9/', stack='nobody').status_code == 404
    assert [create(inside, 'http://127.0.0.1:9/', 'full').status_code for _ in range(4)] == [201, 201, 201, 400]


def test_a_receiver_that_is_not_there_is_an_answer_and_no_error(inside):
    webhook_id = create(inside, 'http://127.0.0.1:9/', 'away').json['webhook']['id']
    result = inside.ask('POST', f'/v1/away/webhooks/{webhook_id}/test').json['result']
    assert (result['delivered'], result['status']) == (False, None)
    assert 'cannot be reached' in result['error']


def test_webhooks_are_for_members_of_their_project_and_readers_look_at_them(inside):
    webhook_id = create(inside, 'http://127.0.0.1:9/', 'theirs').json['webhook']['id']
    every = [('GET', ''), ('DELETE', ''), ('POST', '/test')]
    for method, end in every:
        assert inside.ask(method, f'/v1/mine/webhooks/{webhook_id}{end}').status_code == 404
    reader, nobody = verified(inside, 'theirs', 'reader'), verified(inside, 'theirs', '')
    assert reader('GET', f'/v1/theirs/webhooks/{webhook_id}').status_code == 200
    assert reader('GET', '/v1/theirs/webhooks').status_code == 200
    for ask in (reader, nobody):
        assert ask('POST', '/v1/theirs/webhooks', json={'url': 'http://127.0.0.1:9/'}).status_code == 403
        assert ask('DELETE', f'/v1/theirs/webhooks/{webhook_id}').status_code == 403
        assert ask('POST', f'/v1/theirs/webhooks/{webhook_id}/test').status_code == 403
    assert nobody('GET', '/v1/theirs/webhooks').status_code == 403


def test_an_installation_without_webhooks_says_so(tmp_path):
    with installed(tmp_path, notifications=NotificationSettings(webhooks=False)) as made:
        refused = create(made, 'https://receiver.example/')
        assert refused.status_code == 501
        assert '[notifications] webhooks' in refused.text
        assert made.ask('GET', 'webhooks').json == {'webhooks': []}


def test_what_the_field_calls_topics_and_sinks_is_refused_with_what_takes_their_place(inside):
    """No event would reach them."""
    sinks = {'event_sinks': [{'type': 'zaqar-queue', 'target': 'q', 'ttl': 60}]}
    refused = inside.ask('POST', 'stacks', json={'stack_name': 'sinks', 'template': TEMPLATE, 'environment': sinks})
    assert (refused.status_code, 'webhook create' in refused.text) == (400, True)
    body = {'stack_name': 'topics', 'template': TEMPLATE, 'notification_topics': ['arn:aws:sns:topic']}
    refused = inside.ask('POST', 'stacks', json=body)
    assert (refused.status_code, 'notification_topics' in refused.text) == (400, True)
    sinks = {'event_sinks': [{'type': 'webhook', 'target': 'ci', 'key': 'mine'}]}
    refused = inside.ask('POST', 'stacks', json={'stack_name': 'sinks', 'template': TEMPLATE, 'environment': sinks})
    assert (refused.status_code, 'type and target alone' in refused.text) == (400, True)
    group = {'type': 'AWS::AutoScaling::AutoScalingGroup', 'properties': {'NotificationConfigurations': []}}
    template = {'heat_template_version': '2018-08-31', 'resources': {'group': group}}
    refused = inside.ask('POST', 'stacks', json={'stack_name': 'group', 'template': template})
    assert (refused.status_code, 'NotificationConfigurations' in refused.text) == (400, True)


def test_a_sink_of_an_environment_is_a_webhook_that_tells_of_the_stack(inside):
    """Its creator has seen its key. Environments are stored and shown, so they must not contain one."""
    environment = {'event_sinks': [{'type': 'webhook', 'target': 'ci'}]}
    body = {'stack_name': 'sunk', 'template': TEMPLATE, 'environment': environment}
    refused = inside.ask('POST', 'stacks', json=body)
    assert (refused.status_code, 'webhook create URL --name ci' in refused.text) == (400, True)
    assert inside.ask('POST', 'stacks/preview', json=body).status_code == 400
    made = create(inside, 'http://127.0.0.1:9/', name='ci').json['webhook']
    created = inside.ask('POST', 'stacks', json=body)
    assert created.status_code == 201
    stack = f'stacks/sunk/{created.json["stack"]["id"]}'
    shown = inside.ask('GET', f'{stack}/environment')
    assert shown.json['event_sinks'] == environment['event_sinks']
    assert made['key'] not in shown.text
    own = create(inside, 'http://127.0.0.1:9/', name='own', stack='sunk').json['webhook']
    for target, status in ((own['id'], 202), ('own', 202), (made['id'], 202), ('nobody', 400)):
        sinks = {'event_sinks': [{'type': 'webhook', 'target': target}]}
        body = {'template': TEMPLATE, 'environment': sinks}
        assert inside.ask('PUT', stack, json=body).status_code == status, target
    sinks = {'event_sinks': [{'type': 'webhook', 'target': 'own'}]}
    other = {'stack_name': 'other', 'template': TEMPLATE, 'environment': sinks}
    assert inside.ask('POST', 'stacks', json=other).status_code == 400, 'that webhook tells of another stack'
    for webhook in (made, own):
        assert inside.ask('DELETE', f'webhooks/{webhook["id"]}').status_code == 204
