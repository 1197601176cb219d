"""Services are asked for the user, also about a stack that is not there yet, and nothing of that outlives the request."""

from __future__ import annotations

import pytest

from convergence.credentials.model import Method
from convergence.errors import KeystoneUnavailable
from tests.credentials.installation import cloud, lending, template

ANN = 'ann: member,reader'
CHECKED = 'Test::CheckedCloud'


@pytest.fixture(scope='module', params=[Method.TRUSTS, Method.APPLICATION_CREDENTIALS])
def installation(request, tmp_path_factory):
    with lending(tmp_path_factory.mktemp('asking'), request.param) as made:
        yield made


@pytest.fixture
def lent(installation):
    """As at its beginning."""
    installation.cloud.told.clear()
    assert installation.kept == 0
    return installation


def preview(lent, resources):
    return lent.ask('POST', 'stacks/preview', json={'stack_name': 's', 'template': template(resources)})


def validate(lent, resources):
    return lent.ask('POST', 'validate', json={'template': template(resources)})


@pytest.mark.parametrize('ask', [preview, validate])
def test_services_are_asked_about_a_stack_that_is_not_there_and_what_that_took_goes_at_once(lent, ask):
    assert ask(lent, {'a': cloud('x', CHECKED), 'b': cloud('y', CHECKED)}).status_code == 200
    assert lent.cloud.by('validate') == [ANN, ANN]
    assert (lent.kept, lent.removal.turn(), lent.kept) == (1, 1, 0)
    refused = ask(lent, {'a': cloud('impossible', CHECKED)})
    assert refused.status_code == 400 and 'the cloud has no room for it' in refused.text
    assert (lent.removal.turn(), lent.kept) == (1, 0)


@pytest.mark.parametrize('ask', [preview, validate])
def test_nothing_is_made_where_no_type_acts(lent, ask):
    assert ask(lent, {'a': cloud(), 'b': {'type': CHECKED, 'external_id': 'x'}}).status_code == 200
    assert (lent.kept, lent.cloud.told) == (0, [])


def test_a_stack_that_is_there_asks_with_what_it_has(lent):
    path = lent.create('s', {'a': cloud('1', CHECKED)})
    told = lent.ask('PUT', f'{path}/preview', json={'template': template({'a': cloud('same', CHECKED)})}).json
    assert [each['resource_name'] for each in told['resource_changes']['unchanged']] == ['a']
    assert (lent.cloud.by('plan'), lent.kept) == ([ANN], 1)
    lent.delete(path)
    assert lent.removal.turn() == 1


def test_a_keystone_that_is_away_leaves_it_unknown(lent, monkeypatch):
    def away(*arguments):
        raise KeystoneUnavailable('Keystone does not answer')

    monkeypatch.setattr(lent.issuer.keystone, 'make', away)
    answer = validate(lent, {'a': cloud('impossible', CHECKED)})
    assert answer.status_code == 200
    (warning,) = answer.json['Warnings']
    assert 'it is not known if it can be created' in warning['message']
    assert (
        'wants_credentials' not in answer.text
        and 'wants_credentials' not in preview(lent, {'a': cloud('x', CHECKED)}).text
    )
