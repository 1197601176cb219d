"""No link is made of a name that a request made up."""

from __future__ import annotations

import pytest

from convergence import errors
from convergence.api.faults import HttpProblem
from convergence.api.hosts import Hosts
from convergence.api.identity import Authentication
from convergence.config.loading import _check_api
from convergence.settings import ApiSettings
from tests.api.installation import TEMPLATE, application, client

VERIFIED = {'X-Identity-Status': 'Confirmed', 'X-Project-Id': 'p', 'X-User-Id': 'u', 'X-Roles': 'member'}


@pytest.mark.parametrize(
    ('host', 'is_known'),
    [
        ('localhost', True),
        ('localhost:8004', True),
        ('127.0.0.1:8004', True),
        ('[::1]:8004', True),
        ('API.example.org:443', True),
        ('api.example.org.', True),
        ('10.0.0.5', True),
        ('evil.example', False),
        ('api.example.org.evil.example', False),
        ('api.example.org@evil.example', False),
        ('evil@localhost', False),
        ('localhost/x', False),
        ('localhost:80:80', False),
        ('localhost:x', False),
        ('local host', False),
        ('', False),
    ],
)
def test_a_link_begins_with_a_host_that_is_known(host, is_known):
    hosts = Hosts('', ['api.example.org', '10.0.0.5'])
    if is_known:
        assert hosts.base('https', host) == f'https://{host}'
    else:
        with pytest.raises(HttpProblem) as refused:
            hosts.base('https', host)
        assert refused.value.status == 421


def test_where_the_operator_says_it_the_host_does_not_matter():
    assert Hosts('https://api.example.org/orchestration/').base('http', 'x') == 'https://api.example.org/orchestration'


@pytest.mark.parametrize('path', ['/', '/v1', '/v3', '/openapi.json', '/v1/p/stacks', '/v1/p/stacks/name'])
def test_a_request_for_an_unknown_host_gets_no_answer_with_links(api, path):
    asked = client(application(api.embedded.client, Authentication.KEYSTONE))
    refused = asked.simulate_get(path, headers={**VERIFIED, 'Host': 'evil.example'})
    assert (refused.status_code, 'evil' in refused.text) == (421, False)
    assert 'Location' not in refused.headers
    for probe in ('/health/live', '/health/ready', '/healthcheck'):  # probes name the address of a machine
        assert asked.simulate_get(probe, headers={'Host': '10.1.2.3'}).status_code == 200


def test_a_stack_that_is_made_behind_a_proxy_has_its_public_address(api):
    public = application(api.embedded.client, Authentication.KEYSTONE, public_url='https://api.example.org')
    body = {'stack_name': 'public', 'template': TEMPLATE}
    made = client(public).simulate_post('/v1/p/stacks', json=body, headers={**VERIFIED, 'Host': 'evil.example'})
    assert made.headers['Location'].startswith('https://api.example.org/v1/p/stacks/public/')


@pytest.mark.parametrize(
    ('options', 'said'),
    [
        ({'host': '0.0.0.0'}, 'Set public_url, or allowed_hosts'),
        ({'host': '::'}, 'Set public_url, or allowed_hosts'),
        ({'key_file': '/k'}, 'cert_file is not'),
        ({'trusted_proxies': ('proxy.example',)}, 'proxy.example is neither an address nor a network'),
        ({'max_client_buffered_bytes': 5000}, 'must not be less than max_body_bytes'),
    ],
)
def test_what_cannot_work_is_said_at_the_start(options, said):
    with pytest.raises(errors.ConfigurationError, match=said):
        _check_api(ApiSettings(authentication='keystone', **options))
    _check_api(ApiSettings(authentication='keystone', host='0.0.0.0', allowed_hosts=('api.example.org',)))
