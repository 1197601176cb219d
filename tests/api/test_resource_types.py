"""Which resource types a caller may use, on every way by which a type gets into a stack."""

from __future__ import annotations

import json

import pytest
from oslo_policy.policy import Enforcer

from convergence.api.policy import Policy
from convergence.config import EngineSettings
from convergence.engine.callers.permits import Permits
from convergence.rpc.context import CallerContext, ContextSerializer
from tests.api.installation import empty_conf, installed, verified

LOCAL = 'Convergence::Local::File'
ALIAS = 'My::Harmless'


@pytest.fixture(scope='module')
def adopting(tmp_path_factory):
    """An installation in which stacks can be adopted."""
    engine = EngineSettings(sweep_interval_s=0.2, enable_stack_adopt=True)
    with installed(tmp_path_factory.mktemp('types'), engine=engine) as made:
        yield made


def holding(type_name, path='x'):
    """A template with a resource of a type."""
    properties = {'path': path} if type_name.startswith(('Convergence::Local', 'My')) else {}
    resources = {'it': {'type': type_name, 'properties': properties}}
    return {'heat_template_version': '2018-08-31', 'resources': resources}


PLAIN = holding('OS::Heat::RandomString')
WRITTEN = [
    (holding(LOCAL), {}),
    (holding(ALIAS), {'resource_registry': {ALIAS: LOCAL}}),
    (holding(ALIAS), {'resource_registry': {'My::*': 'Convergence::Local::*', ALIAS: LOCAL}}),
    (holding('OS::Heat::None'), {'resource_registry': {'resources': {'it': {'OS::Heat::None': LOCAL}}}}),
    (holding('My::File'), {'resource_registry': {'My::*': 'Convergence::Local::*'}}),
]
"""Templates and environments in which the same type is used."""


def is_refused(answer):
    """Because of the type, and not because of anything else."""
    assert answer.status_code == 403, answer.text
    assert f'resource type {LOCAL}' in answer.json['error']['message']
    assert answer.json['error']['type'] == 'Forbidden'


@pytest.mark.parametrize(('template', 'environment'), WRITTEN)
def test_a_member_cannot_use_what_is_for_admins_by_whatever_name(adopting, template, environment):
    """Every member of every project could once run programs as the user of the service."""
    member = verified(adopting)
    body = {'stack_name': 'forbidden', 'template': template, 'environment': environment}
    is_refused(member('POST', '/v1/p/stacks', json=body))
    is_refused(member('POST', '/v1/p/stacks/preview', json=body))
    is_refused(member('POST', '/v1/p/validate', json={'template': template, 'environment': environment}))
    files = {'stack_name': 'forbidden', 'template': template, 'files': {'env': json.dumps(environment)}}
    is_refused(member('POST', '/v1/p/stacks', json={**files, 'environment_files': ['env']}))
    data = {'template': template, 'environment': environment, 'resources': {}}
    is_refused(member('POST', '/v1/p/stacks', json={'stack_name': 'adopted', 'adopt_stack_data': json.dumps(data)}))
    assert member('GET', '/v1/p/stacks/forbidden').status_code == 404


@pytest.mark.parametrize('method', ['PUT', 'PATCH'])
@pytest.mark.parametrize(('template', 'environment'), WRITTEN)
def test_nor_by_an_update(adopting, template, environment, method):
    member = verified(adopting, project='updates')
    made = member('POST', '/v1/updates/stacks', json={'stack_name': 'plain', 'template': PLAIN})
    assert made.status_code in (201, 409)
    path = member('GET', '/v1/updates/stacks/plain').headers['location'].partition('8004')[2]
    for below in ('', '/preview'):
        is_refused(member(method, path + below, json={'template': template, 'environment': environment}))


def test_nor_by_changing_what_an_admin_has_made_nor_by_an_environment_alone(adopting):
    path = adopting.create('of-an-admin', holding(LOCAL, 'of-an-admin'), project='shared')
    member = verified(adopting, project='shared')
    for below in ('', '/preview'):
        is_refused(member('PATCH', f'/v1/shared/{path}{below}', json={'parameters': {}}))
    plain = adopting.create('plain', PLAIN, project='shared')
    environment = {'resource_registry': {'OS::Heat::RandomString': LOCAL}}
    is_refused(member('PATCH', f'/v1/shared/{plain}', json={'environment': environment}))
    assert member('GET', f'/v1/shared/{path}').json['stack']['stack_status'] == 'CREATE_COMPLETE'
    assert member('DELETE', f'/v1/shared/{path}').status_code == 204


def test_nor_by_coming_back_to_a_snapshot(adopting):
    path = adopting.create('kept', holding(LOCAL, 'kept'), project='back')
    admin, member = (verified(adopting, project='back', roles=roles) for roles in ('admin', 'member'))
    taken = admin('POST', f'/v1/back/{path}/snapshots', json={}).json['id']
    adopting.wait(path.split('/')[1], path.split('/')[2], 'back')
    shown = member('GET', f'/v1/back/{path}/snapshots/{taken}')
    assert shown.json['snapshot']['status'] == 'COMPLETE'
    is_refused(member('POST', f'/v1/back/{path}/snapshots/{taken}/restore', json={}))
    assert admin('POST', f'/v1/back/{path}/snapshots/{taken}/restore', json={}).status_code == 202
    adopting.wait(path.split('/')[1], path.split('/')[2], 'back')


def test_an_admin_may_and_so_may_who_runs_the_installation_alone(adopting):
    admin = verified(adopting, roles='admin')
    body = {'stack_name': 'allowed', 'template': holding(LOCAL, 'allowed')}
    assert admin('POST', '/v1/p/stacks/preview', json=body).status_code == 200
    assert adopting.ask('POST', 'stacks/preview', json=body).status_code == 200


def test_a_name_that_is_forbidden_may_be_made_harmless(adopting):
    """What counts is the type that a resource gets, not how it is called."""
    environment = {'resource_registry': {LOCAL: 'OS::Heat::None'}}
    body = {'stack_name': 'harmless', 'template': holding(LOCAL), 'environment': environment}
    assert verified(adopting)('POST', '/v1/p/stacks/preview', json=body).status_code == 200


def test_types_that_one_may_not_use_are_not_shown(adopting):
    member, admin = verified(adopting), verified(adopting, roles='admin')
    for ask, is_shown in ((member, False), (admin, True)):
        listed = ask('GET', '/v1/p/resource_types').json['resource_types']
        assert (LOCAL in listed) is is_shown
        assert 'OS::Heat::Value' in listed
        described = ask('GET', '/v1/p/resource_types', query_string='with_description=true').json['resource_types']
        assert any(each['resource_type'] == LOCAL for each in described) is is_shown
        for path in (f'/v1/p/resource_types/{LOCAL}', f'/v1/p/resource_types/{LOCAL}/template'):
            answer = ask('GET', path)
            if is_shown:
                assert answer.status_code == 200
            else:
                is_refused(answer)


# --- the rules ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ('rules', 'allowed'),
    [
        (None, True),
        ({}, True),
        ({'*': False}, False),
        ({'*': True, 'A::*': False}, False),
        ({'A::*': False, 'A::B::*': True}, True),
        ({'A::B::*': True, 'A::B::C': False}, False),
        ({'A::B::*': False, 'A::B::C': True}, True),
        ({'A::B': False, 'A::BC::*': False, 'B::*': False}, True),
    ],
)
def test_the_rule_that_says_most_wins(rules, allowed):
    assert Permits(rules).allows('A::B::C') is allowed


def test_operators_write_rules_of_their_own(tmp_path):
    written = tmp_path / 'policy.yaml'
    lines = ['"resource_types:A::*": "!"', '"resource_types:A::B": "role:member"', '"resource_types:*": "role:admin"']
    written.write_text('\n'.join(lines))
    policy = Policy(Enforcer(empty_conf(), policy_file=str(written)))
    rules = policy.type_rules(CallerContext(project_id='p', roles=['member'], overwrite=False), 'p')
    assert rules == {'A::*': False, 'A::B': True, '*': False, 'Convergence::Local::*': False}


def test_the_answers_travel_with_the_request():
    carried = ContextSerializer()
    for rules in (None, {}, {'A::*': False}):
        document = carried.serialize_context(CallerContext(type_rules=rules, project_id='p', overwrite=False))
        assert carried.deserialize_context(json.loads(json.dumps(document))).type_rules == rules
