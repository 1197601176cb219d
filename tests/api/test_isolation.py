"""Every route, asked by one project about what belongs to another."""

from __future__ import annotations

import json
import uuid

import pytest

from convergence.api.routes import ROUTES, Route
from tests.api.installation import TEMPLATE

BODIES = {
    'actions:action': {'cancel_without_rollback': None},
    'resource:mark_unhealthy': {'mark_unhealthy': True},
    'resource:accept': {'properties': ['value']},
    'stacks:drift_policy': {'drift_policy': 'repair'},
}
ABOUT_STACKS = [route for route in ROUTES if '{stack_name}' in route.path]


@pytest.fixture(scope='module')
def foreign(api):
    """A stack of another project, by the parts of its URLs.

    The project is new each time: where processes share this module, one may set it up twice.
    """
    project = uuid.uuid4().hex
    path = api.create('theirs', project=project)
    _, name, stack_id = path.split('/')
    event = api.ask('GET', f'/v1/{project}/{path}/resources/first/events').json['events'][0]
    return {
        'project': project,
        'stack_name': name,
        'stack_id': stack_id,
        'resource_name': 'first',
        'event_id': event['id'],
        'output_key': 'shown',
        'snapshot_id': 'e3a1',
        'whole': json.dumps(api.ask('GET', f'/v1/{project}/{path}').json),
    }


def label(route: Route) -> str:
    return f'{route.method} {route.path}'


@pytest.mark.parametrize('word', ['stack_name', 'stack_id'])
@pytest.mark.parametrize('route', ABOUT_STACKS, ids=label)
def test_nothing_of_another_project_is_found(api, foreign, route, word):
    """By the name or by the id; 501 is fine, it says the same of every stack."""
    parts = {**foreign, 'stack_name': foreign[word]}
    if word == 'stack_id' and 'stack_id' in route.variables:
        parts['stack_name'] = 'theirs'
    body = BODIES.get(route.rule, {'template': TEMPLATE})
    answer = api.ask(route.method, f'/v1/mine{route.path.format(**parts)}', json=body)
    assert answer.status_code in (404, 501), answer.text
    assert 'hello' not in answer.text


def test_a_list_has_stacks_of_the_project_only(api, foreign):
    for query in (
        '',
        'show_deleted=1',
        f'tenant={foreign["project"]}',
        f'id={foreign["stack_id"]}',
        'name=theirs',
        'show_nested=1',
    ):
        listed = api.ask('GET', '/v1/mine/stacks', query_string=f'{query}&with_count=1').json
        assert (listed['stacks'], listed['count']) == ([], 0)
    assert api.ask('GET', '/v1/mine/stacks', query_string=f'marker={foreign["stack_id"]}').status_code == 404


def test_the_other_project_was_not_touched(api, foreign):
    path = f'/v1/{foreign["project"]}/stacks/theirs/{foreign["stack_id"]}'
    assert json.dumps(api.ask('GET', path).json) == foreign['whole']
