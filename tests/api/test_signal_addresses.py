"""Signals without a token, as they come over HTTP: an address opens one resource for signals, and nothing else."""

from __future__ import annotations

import io
import json
import logging
import time

import pytest

from convergence import logs
from convergence.api.endpoints.signals import MAX_BODY_BYTES
from convergence.api.identity import Authentication
from convergence.cmd.wiring.api import _signed_first
from convergence.config import ApiSettings
from tests.api.installation import BASE, LONG_S, application, client, installed, verified

TOKEN = 'the token of the account'
WAITING = {
    'heat_template_version': '2018-08-31',
    'resources': {
        'handle': {'type': 'OS::Heat::WaitConditionHandle'},
        'ready': {
            'type': 'OS::Heat::WaitCondition',
            'properties': {'handle': {'get_resource': 'handle'}, 'timeout': 600},
        },
    },
    'outputs': {
        name: {'value': {'get_attr': ['handle', name]}} for name in ('endpoint', 'token', 'curl_cli', 'signal')
    },
}


@pytest.fixture(scope='module')
def here(tmp_path_factory):
    """An installation whose operator has said where the API is."""
    with installed(tmp_path_factory.mktemp('addresses'), api=ApiSettings(public_url='http://localhost:8004')) as made:
        yield made


@pytest.fixture(params=list(Authentication))
def asked(request, here):
    """An API that wants a token, of either kind."""
    return client(application(here.embedded.client, request.param, token=TOKEN))


def begin(here, name):
    """A stack that waits; its path, and what its handle says."""
    made = here.ask('POST', '/v1/p/stacks', json={'stack_name': name, 'template': WAITING})
    assert made.status_code == 201, made.text
    path = f'stacks/{name}/{made.json["stack"]["id"]}'
    for _ in range(int(LONG_S * 20)):
        found = here.ask('GET', path).json['stack'].get('outputs', [])
        told = {each['output_key']: each['output_value'] for each in found}
        if told.get('signal'):
            return path, told
        time.sleep(0.05)
    raise AssertionError(here.ask('GET', path).text)


def address(told):
    """The path and the query of the address in what a handle says."""
    return json.loads(told['signal'])['alarm_url'].removeprefix(BASE.removesuffix('/v1')).split('?')


def name_of(request, word):
    return f'{word}-{abs(hash(request.node.name))}'


@pytest.mark.parametrize('method', ['PUT', 'POST'])
@pytest.mark.parametrize('kind', ['application/json', 'application/x-www-form-urlencoded', ''])
def test_an_address_needs_no_token(here, asked, request, method, kind):
    path, told = begin(here, name_of(request, 'open'))
    where, query = address(told)
    body = json.dumps({'Status': 'SUCCESS', 'Reason': 'up', 'UniqueId': 'a', 'Data': 'x'})
    headers = {'Content-Type': kind, 'Host': 'anywhere.example.org', 'Origin': 'https://anywhere.example.org'}
    answer = asked.simulate_request(method, where, query_string=query, body=body, headers=headers)
    assert (answer.status_code, answer.text) == (200, 'null'), answer.text
    assert here.settle(path)['stack_status'] == 'COMPLETE'


def test_the_token_of_a_handle_opens_its_endpoint_and_nothing_else(here, asked, request):
    path, told = begin(here, name_of(request, 'token'))
    endpoint = told['endpoint'].removeprefix(BASE.removesuffix('/v1'))
    assert told['token'] in told['curl_cli']
    headers = {'X-Auth-Token': told['token']}
    _, query = address(told)
    for method, other in (
        ('GET', f'/v1/p/{path}'),
        ('GET', '/v1/p/stacks'),
        ('DELETE', f'/v1/p/{path}'),
        ('POST', f'/v1/p/{path}/resources/handle/signal'),
        ('POST', f'/v1/p/{path}/resources/handle/signal_url'),
    ):
        refused = asked.simulate_request(method, other, query_string=query, headers=headers)
        assert refused.status_code == 401, (method, other, refused.text)
    for method in ('GET', 'DELETE', 'PATCH', 'HEAD'):
        assert asked.simulate_request(method, endpoint, query_string=query, headers=headers).status_code == 405
    for more in ('/metadata', '/', '/..'):
        assert asked.simulate_request('POST', endpoint + more, query_string=query, headers=headers).status_code == 404
    assert asked.simulate_request('POST', endpoint, headers=headers).status_code == 200
    assert here.settle(path)['stack_status'] == 'COMPLETE'


def test_whatever_is_wrong_with_an_address_the_answer_is_the_same(here, asked, request):
    path, told = begin(here, name_of(request, 'wrong'))
    _, other = begin(here, name_of(request, 'other'))
    where, query = address(told)
    elsewhere, _ = address(other)
    spoilt = query[:-1] + ('A' if query[-1] != 'A' else 'B')
    timed = here.ask('POST', f'/v1/p/{path}/resources/handle/signal_url', json={'expires_in_s': 600}).json['signal_url']
    longer = timed.partition('?')[2].replace('Expires=', 'Expires=9')
    tries = [
        (elsewhere, query),
        (where, spoilt),
        (where, ''),
        (where, f'Expires=99999999999&{query}'),
        (where, longer),
        (where.replace('/v1/p/', '/v1/q/'), query),
        ('/v1/p/signals/nothing', query),
        ('/v1/p/signals/%C3%A9', 'Signature=%C3%A9'),
    ]
    answers = {asked.simulate_request('PUT', there, query_string=said).text for there, said in tries}
    made = here.ask('POST', f'/v1/p/{path}/resources/handle/signal_url', json={'revoke': True})
    assert made.json['revoked'] is True
    answers.add(asked.simulate_request('PUT', where, query_string=query).text)
    there, _, said = made.json['signal_url'].removeprefix(BASE.removesuffix('/v1')).partition('?')
    assert asked.simulate_request('PUT', there, query_string=said).status_code == 200
    here.settle(path)
    here.ask('DELETE', f'/v1/p/{path}')
    here.settle(path)
    for gone in (query, said):
        answers.add(asked.simulate_request('PUT', where, query_string=gone).text)
    (answer,) = answers
    assert json.loads(answer)['code'] == 403


def test_what_is_sent_has_a_limit_and_must_make_sense(here, asked, request):
    path, told = begin(here, name_of(request, 'limits'))
    where, query = address(told)
    large = json.dumps({'data': 'x' * MAX_BODY_BYTES})
    for body, status in ((large, 413), ('{', 400), ('[]', 400), ('{"unset_hook": "pre-create"}', 400)):
        answer = asked.simulate_request('PUT', where, query_string=query, body=body)
        assert answer.status_code == status, answer.text
    assert here.ask('GET', path).json['stack']['stack_status'] == 'CREATE_IN_PROGRESS'


def test_members_make_addresses_and_readers_do_not(here, request):
    path, _ = begin(here, name_of(request, 'roles'))
    where = f'/v1/p/{path}/resources/handle/signal_url'
    assert verified(here, roles='reader')('POST', where).status_code == 403
    made = verified(here, roles='member')('POST', where, json={'expires_in_s': 60})
    assert made.status_code == 200
    assert made.json['expires_at'] <= time.time() + 120
    assert verified(here, project='q')('POST', where.replace('/p/', '/q/')).status_code == 404
    assert verified(here)('POST', where, json={'expires_in_s': -1}).status_code == 400
    assert verified(here)('POST', where.replace('handle', 'ready')).status_code == 400


def test_a_signature_is_in_no_log_and_in_no_message(here, request):
    """Not in any line at DEBUG, refused or not; an engine gets a hash of it."""
    path, told = begin(here, name_of(request, 'canary'))
    where, query = address(told)
    messages = []

    class Overheard:
        def call(self, context, name, /, **arguments):
            messages.append(json.dumps(arguments))
            return here.embedded.client.call(context, name, **arguments)

    written = io.StringIO()
    handler = logging.StreamHandler(written)
    handler.setFormatter(logs.SafeFormatter(logging.Formatter(logs.LINE_FORMAT)))
    root = logging.getLogger()
    level = root.level
    root.addHandler(handler)
    root.setLevel(logging.DEBUG)
    try:
        heard = client(application(Overheard(), Authentication.NOAUTH, token=TOKEN))
        assert heard.simulate_request('GET', where, query_string=query).status_code == 405
        assert heard.simulate_request('PUT', where, query_string=f'{query}x').status_code == 403
        assert heard.simulate_request('PUT', where, query_string=query).status_code == 200
        here.settle(path)
        logging.getLogger('convergence.plugin').warning('cannot reach %s', told['curl_cli'])
    finally:
        root.removeHandler(handler)
        root.setLevel(level)
    assert where in written.getvalue()
    assert 'cannot reach curl' in written.getvalue()
    assert told['token'][:20] not in written.getvalue()
    assert len(messages) == 2
    assert all(told['token'][:20] not in message for message in messages)
    for part in ('events', 'explain', 'resources?with_detail=true', 'resources/handle', 'traversals', 'graph'):
        shown = here.ask('GET', f'/v1/p/{path}/{part}'.partition('?')[0], query_string=part.partition('?')[2])
        assert shown.status_code == 200
        assert told['token'][:20] not in shown.text


def test_keystone_is_not_shown_signatures_and_nobody_is_let_in_by_the_way_around_it():
    seen = []
    answer = _signed_first(
        lambda environ, start: seen.append(('open', environ)), lambda environ, start: seen.append(('verified', environ))
    )
    claims = {'HTTP_X_IDENTITY_STATUS': 'Confirmed', 'HTTP_X_PROJECT_ID': 'p', 'HTTP_X_ROLES': 'admin'}
    for path in ('/v1/p/signals/x', '/v1/p/signals/x/', '/v1/p/signals/x/y', '/v1/p/stacks/signals/x', '/v1/p/stacks'):
        answer({'PATH_INFO': path, **claims}, None)
    assert [way for way, _ in seen] == ['open', 'verified', 'verified', 'verified', 'verified']
    assert seen[0][1] == {'PATH_INFO': '/v1/p/signals/x'}
