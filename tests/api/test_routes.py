"""The routing table, and what is made from it."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest
import schemathesis
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from openapi_spec_validator import validate
from schemathesis import GenerationMode

from convergence.api import openapi, policy
from convergence.api.routes import ROUTES, Access
from convergence.rpc.operations import OPERATIONS
from tests.api.installation import TEMPLATE, application

ROOT = Path(__file__).parents[2]
S = '/stacks/{stack_name}/{stack_id}'
R = f'{S}/resources/{{resource_name}}'
SURFACE = f"""
GET /stacks; GET /stacks/detail; POST /stacks; POST /stacks/preview; GET /stacks/{{stack_name}}; GET {S}; PUT {S};
PATCH {S}; PUT {S}/preview; PATCH {S}/preview; DELETE {S}; DELETE {S}/abandon; GET {S}/export; GET {S}/template;
GET {S}/environment; GET {S}/files; GET {S}/outputs; GET {S}/outputs/{{output_key}}; POST {S}/actions;
GET {S}/resources; GET {R}; PATCH {R}; GET {R}/metadata; POST {R}/signal; GET {S}/events; GET {R}/events;
GET {R}/events/{{event_id}}; POST {S}/snapshots; GET {S}/snapshots; GET {S}/snapshots/{{snapshot_id}};
DELETE {S}/snapshots/{{snapshot_id}}; POST {S}/snapshots/{{snapshot_id}}/restore; POST /validate;
GET /resource_types; GET /resource_types/{{type_name}}; GET /resource_types/{{type_name}}/template;
GET /template_versions; GET /template_versions/{{template_version}}/functions; GET /build_info; GET /services;
GET /software_configs; POST /software_configs; GET /software_configs/{{config_id}};
DELETE /software_configs/{{config_id}}; GET /software_deployments; POST /software_deployments;
GET /software_deployments/{{deployment_id}}; PUT /software_deployments/{{deployment_id}};
DELETE /software_deployments/{{deployment_id}}; GET /software_deployments/metadata/{{server_id}}
"""
"""The endpoints of the Orchestration API v1 that clients use."""


def test_every_endpoint_of_the_version_is_there():
    wanted = {' '.join(line.split()) for line in SURFACE.split(';')}
    assert wanted - {f'{route.method} {route.path}' for route in ROUTES} == set()
    assert len({(route.method, route.path) for route in ROUTES}) == len(ROUTES)


def test_every_route_has_a_rule_and_every_rule_a_use():
    rules = {rule.name for rule in policy.list_rules()}
    assert {route.rule for route in ROUTES if route.access is Access.TOKEN} <= rules
    assert {route.rule for route in ROUTES if route.access is Access.SIGNATURE} == {''}
    asked_further = {
        rule for rule in rules if rule.startswith(('actions:', policy.TYPES)) or rule.endswith(':global_index')
    }
    assert rules - {route.rule for route in ROUTES} - asked_further == {
        policy.ADMIN,
        policy.MEMBER,
        policy.READER,
    }


def test_every_route_asks_for_an_operation_that_exists():
    assert {name for route in ROUTES for name in route.operations} <= set(OPERATIONS)
    for route in ROUTES:
        assert route.summary.endswith('.'), route.path


def test_the_documentation_names_every_route():
    text = (ROOT / 'docs/api.rst').read_text()
    for route in ROUTES:
        if route.rule != 'stacks:lookup':
            assert re.search(rf'{route.method}[^\n]*``{re.escape(route.path)}``', text), f'{route.method} {route.path}'


def test_what_is_not_offered_answers_501(api):
    for asked in ({'template_url': 'http://127.0.0.1/t'}, {'template': TEMPLATE, 'files_container': 'c'}):
        answer = api.ask('POST', '/v1/p/stacks', json={'stack_name': 'not-offered', **asked})
        assert answer.status_code == 501, answer.text


def test_the_sample_of_the_policy_is_current(tmp_path):
    """If this fails: `make config`, and commit the result."""
    written = tmp_path / 'policy.yaml'
    program = Path(sys.executable).with_name('oslopolicy-sample-generator')
    arguments = ['--config-file', 'etc/convergence/policy-generator.conf', '--output-file', str(written)]
    subprocess.run([str(program), *arguments], cwd=ROOT, check=True)
    assert (ROOT / 'etc/convergence/policy.yaml.sample').read_text() == written.read_text()


def test_the_description_of_the_api_is_valid_and_complete(api):
    document = api.ask('GET', '/openapi.json').json
    validate(document)
    described = {(method.upper(), path) for path, methods in document['paths'].items() for method in methods}
    assert described == {(route.method, route.template) for route in ROUTES} | {('GET', '/proof')}
    assert document['servers'] == [{'url': 'http://localhost:8004'}]
    assert document == openapi.describe('http://localhost:8004')


# --- whatever the description allows, and whatever it does not ---------------------------------------------------


CHECKS = [
    schemathesis.checks.status_code_conformance,
    schemathesis.checks.content_type_conformance,
    schemathesis.checks.response_schema_conformance,
]


@pytest.fixture(scope='module')
def described(api):
    """What schemathesis knows of the API: its description, and the application itself."""
    wsgi = application(api.embedded.client)
    return schemathesis.openapi.from_wsgi('/openapi.json', lambda environ, start: wsgi(here(environ), start))


def here(environ):
    """A request for this machine, for an answer that has an end."""
    query = environ.get('QUERY_STRING', '').replace('follow', 'unfollow')
    return {**environ, 'HTTP_HOST': 'localhost', 'REMOTE_ADDR': '127.0.0.1', 'QUERY_STRING': query}


@pytest.mark.parametrize('route', ROUTES, ids=lambda route: f'{route.method} {route.path}')
def test_no_request_is_too_strange(described, route):
    """No request makes the API fail, and every answer is one that the description announces."""

    operation = described[route.template][route.method]
    allowed, forbidden = (operation.as_strategy(generation_mode=mode) for mode in GenerationMode)

    @given(case=st.one_of(allowed, forbidden))
    @settings(
        max_examples=max(2, settings.default.max_examples // 8),
        deadline=None,
        derandomize=True,
        database=None,
        phases=[Phase.generate],
        suppress_health_check=list(HealthCheck),
    )
    def ask(case):
        response = case.call()
        assert response.status_code != 500, response.text
        case.validate_response(response, checks=CHECKS)

    ask()
