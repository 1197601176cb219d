"""Stacks act for their users after a request is over, and with nothing that outlives them."""

from __future__ import annotations

import contextlib
import json
import logging
from urllib.parse import urlsplit

import pytest

from convergence.config import CredentialSettings
from convergence.credentials.model import Method
from convergence.db.null_ports import NO_CREDENTIALS
from convergence.db.repositories.credentials import CredentialRows
from convergence.errors import KeystoneUnavailable
from convergence.resources.contract import FinalFailure
from convergence.rpc.context import CallerContext
from convergence.worker.attempts.credentials import CredentialsOfStacks
from tests.credentials.installation import Lent, cloud, lending, template

ANN, BEN = 'ann: member,reader', 'ben: member'


@pytest.fixture(scope='module')
def installations(tmp_path_factory):
    """Gives an installation whose stacks have credentials, made in one way or the other."""
    made: dict[Method, Lent] = {}
    with contextlib.ExitStack() as stack:

        def give(method: Method) -> Lent:
            if method not in made:
                made[method] = stack.enter_context(lending(tmp_path_factory.mktemp('lending'), method))
            return made[method]

        yield give


@pytest.fixture(params=[Method.TRUSTS, Method.APPLICATION_CREDENTIALS])
def lent(request, installations):
    """As at its beginning."""
    installation = installations(request.param)
    installation.cloud.told.clear()
    installation.identity.roles.update({'ann': ['member', 'reader'], 'ben': ['member'], 'service': ['service']})
    installation.identity.is_broken, installation.identity.lasts_s = False, None
    installation.identity.revoke_tokens()
    installation.tokens.clear()
    installation.identity.requests.clear()
    assert installation.kept == 0
    return installation


def test_a_stack_acts_for_its_user_and_what_it_acts_with_goes_last(lent):
    path = lent.create('s', {'a': cloud(), 'b': cloud()})
    assert lent.cloud.by('create') == [ANN, ANN]
    assert lent.kept == 1
    assert lent.update(path, {'a': cloud('changed')})['stack_status'] == 'COMPLETE'
    assert (lent.cloud.by('update'), lent.cloud.by('delete'), lent.kept) == ([ANN], [ANN], 1)
    asked = len(lent.identity.requests)
    assert lent.removal.turn() == 0
    assert len(lent.identity.requests) == asked
    assert lent.delete(path)['stack_status'] == 'COMPLETE'
    assert lent.cloud.by('delete') == [ANN, ANN]
    assert lent.kept == 1
    assert lent.removal.turn() == 1
    assert lent.kept == 0


def test_no_request_of_a_type_waits_for_ever(lent):
    lent.delete(lent.create('s', {'a': cloud()}))
    assert lent.cloud.limits_s == {CredentialSettings().timeout_s} == {60.0}
    assert lent.removal.turn() == 1


def test_another_user_who_updates_a_stack_is_acted_for_from_then_on(lent):
    """F183"""
    path = lent.create('s', {'a': cloud()})
    first = {*lent.identity.trusts, *lent.identity.application_credentials}
    lent.update(path, {'a': cloud('changed')}, 'ben')
    assert lent.cloud.by('update') == [BEN]
    assert lent.removal.turn() == 1
    assert lent.kept == 1
    assert not first & {*lent.identity.trusts, *lent.identity.application_credentials}
    lent.delete(path, 'ann')
    assert lent.cloud.by('delete') == [BEN]
    assert lent.removal.turn() == 1


def test_what_is_nested_acts_with_the_credentials_of_the_root_also_when_nobody_asks(lent):
    """F151."""
    inner = {'heat_template_version': '2018-08-31', 'resources': {'it': cloud()}}
    group = {
        'type': 'OS::Heat::AutoScalingGroup',
        'properties': {'min_size': 1, 'max_size': 3, 'resource': {'type': 'inner.yaml'}},
    }
    adjustment = {'adjustment_type': 'change_in_capacity', 'scaling_adjustment': 1}
    policy = {
        'type': 'OS::Heat::ScalingPolicy',
        'properties': {'auto_scaling_group_id': {'get_resource': 'web'}, **adjustment},
    }
    outputs = {
        'up': {'value': {'get_attr': ['up', 'alarm_url']}},
        'size': {'value': {'get_attr': ['web', 'current_size']}},
    }
    body = {'stack_name': 's', 'template': {**template({'web': group, 'up': policy}), 'outputs': outputs}}
    made = lent.ask('POST', 'stacks', json={**body, 'files': {'inner.yaml': json.dumps(inner)}})
    path = f'stacks/s/{made.json["stack"]["id"]}'
    told = {each['output_key']: each['output_value'] for each in lent.wait(path)['outputs']}
    assert (lent.cloud.by('create'), lent.kept) == ([ANN], 1)
    at = urlsplit(told['up'])
    answer = lent.client.simulate_post(at.path, query_string=at.query)
    assert answer.status_code < 300, answer.text
    lent.until(lambda: lent.cloud.by('create') == [ANN, ANN])
    assert lent.kept == 1
    lent.delete(path)
    assert lent.cloud.by('delete') == [ANN, ANN]
    assert lent.removal.turn() == 1


def test_a_nested_stack_that_somebody_updates_by_hand_acts_for_him_until_its_parent_is_updated(lent):
    def outer(value):
        inner = json.dumps(template({'it': cloud(value)}))
        return {'n': {'type': 'OS::Heat::Stack', 'properties': {'template': inner}}}

    path = lent.create('s', outer('1'))
    nested = lent.ask('GET', f'{path}/resources/n').json['resource']['physical_resource_id']
    named = next(each for each in lent.ask('GET', 'stacks?show_nested=1').json['stacks'] if each['id'] == nested)
    lent.update(f'stacks/{named["stack_name"]}/{nested}', {'it': cloud('2')}, 'ben')
    assert (lent.cloud.by('update'), lent.kept) == ([BEN], 2)
    assert lent.removal.turn() == 0
    lent.update(path, outer('3'))
    assert lent.cloud.by('update') == [BEN, ANN]
    assert lent.removal.turn() == 1
    lent.delete(path)
    assert (lent.removal.turn(), lent.kept) == (1, 0)


def test_a_role_that_is_taken_away_is_told_and_somebody_who_has_it_repairs_the_stack(lent):
    """F184"""
    path = lent.create('s', {'a': cloud()})
    lent.identity.roles['ann'] = ['reader']
    lent.identity.revoke_tokens()
    lent.tokens.clear()
    broken = lent.wait(lent.acted(path, 'check', 'ben'))
    assert broken['stack_status'] == 'FAILED'
    assert 'may have lost a role in the project' in broken['stack_status_reason']
    deleted = lent.delete(path, 'ben')
    assert deleted['stack_status'] == 'COMPLETE'
    assert lent.cloud.by('delete') == [BEN]
    # Nobody can act for ann any more, not to remove her trust either: that takes an administrator.
    lent.removal.turn()
    left = [*lent.identity.trusts]
    assert lent.kept == len(left) == (lent.issuer.method is Method.TRUSTS)
    lent.identity.roles['service'].append('admin')
    lent.identity.revoke_tokens()
    assert lent.removal.turn() == len(left)
    assert lent.kept == 0


def test_tokens_that_have_run_out_are_got_anew_and_an_absent_keystone_is_waited_for(lent):
    """F182, F089"""
    path = lent.create('s', {'a': cloud()})
    lent.identity.revoke_tokens()
    lent.tokens.clear()
    assert lent.update(path, {'a': cloud('1')})['stack_status'] == 'COMPLETE'
    lent.identity.lasts_s = 10.0  # too short to begin anything with it
    lent.identity.revoke_tokens()
    lent.tokens.clear()
    lent.identity.requests.clear()
    assert lent.update(path, {'a': cloud('2')})['stack_status'] == 'COMPLETE'
    assert lent.identity.requests.count('POST /v3/auth/tokens') > 2
    lent.identity.lasts_s = None
    lent.delete(path)
    lent.identity.is_broken = True
    assert lent.removal.turn() == 0
    assert lent.kept == 1
    lent.identity.is_broken = False
    assert lent.removal.turn() == 1


def test_a_keystone_that_is_away_refuses_what_needs_new_credentials_and_no_delete(lent, monkeypatch):
    def away(*arguments):
        raise KeystoneUnavailable('Keystone does not answer')

    path = lent.create('s', {'a': cloud()})
    kept = CredentialRows(lent.embedded.parts.store)
    kept.refused(kept.of_stack(path.rpartition('/')[2]), 'Keystone has refused it once')
    with monkeypatch.context() as patch:
        patch.setattr(lent.issuer.keystone, 'make', away)
        refused = lent.ask('POST', 'stacks', json={'stack_name': 't', 'template': template({})})
        assert (refused.status_code, refused.headers['Retry-After']) == (503, '5')
        assert [each['stack_name'] for each in lent.ask('GET', 'stacks').json['stacks']] == ['s']
        assert lent.delete(path, 'ben')['stack_status'] == 'COMPLETE'
    assert lent.cloud.by('delete') == [ANN]
    kept.drop_unwanted(-1.0, 10)
    assert lent.removal.turn() == 3
    assert lent.kept == 0


def test_credentials_of_a_request_that_is_refused_go_at_once(lent):
    lent.create('s', {'a': cloud()})
    again = lent.ask('POST', 'stacks', json={'stack_name': 's', 'template': template({})})
    assert again.status_code == 409
    assert lent.kept == 2
    assert lent.removal.turn() == 1
    assert lent.kept == 1
    lent.delete(f'stacks/s/{lent.ask("GET", "stacks").json["stacks"][0]["id"]}')
    assert lent.removal.turn() == 1


def test_what_was_made_for_a_request_that_never_came_to_its_end_is_found_and_removed(lent):
    context = CallerContext(user_id='ann', project_id='d' * 32, roles=['member'], overwrite=False)
    issuer = lent.issuer
    draft = issuer.draft(['member'])
    planned = lent.embedded.client.plan_credentials(
        context, draft.method.value, list(draft.roles), issuer.sealed(draft)
    )
    user = {'user_id': 'ann', 'project_id': 'd' * 32, 'token': lent.identity.token('ann')}
    issuer.make(draft, planned['id'], user)
    assert lent.kept == 1
    assert lent.removal.turn() == 0
    assert CredentialRows(lent.embedded.parts.store).drop_unwanted(-1.0, 10) == 1
    assert lent.removal.turn() == 1
    assert lent.kept == 0


def test_nothing_of_it_is_told_to_anybody_or_stored_as_it_is(lent, caplog):
    caplog.set_level(logging.DEBUG)
    path = lent.create('s', {'a': cloud()})
    hidden = [each['secret'] for each in lent.identity.application_credentials.values()] + [*lent.identity.tokens]
    shown = [lent.ask('GET', f'{path}{part}').text for part in ('', '/events', '/resources/a', '/export')]
    stored = b''.join(each.read_bytes() for each in lent.directory.glob('*.sqlite*')).decode(errors='replace')
    for text in (*shown, caplog.text, stored):
        assert not [each for each in hidden if each in text]
    lent.delete(path)
    assert lent.removal.turn() == 1


def test_without_keystone_there_are_none_and_a_type_is_told_so():
    with pytest.raises(FinalFailure, match='have no credentials in this deployment'):
        CredentialsOfStacks(NO_CREDENTIALS, None, '', 'public')('any stack')
