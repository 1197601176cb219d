"""Signal addresses: whoever knows one can signal one resource, and nothing else, until it is revoked or gone."""

from __future__ import annotations

import json
from dataclasses import replace
from urllib.parse import parse_qs, urlsplit

import pytest

from convergence import errors, signing
from convergence.db.schema.models import RESOURCE
from convergence.engine.reads.resources import ResourceReads
from convergence.engine.signals.addresses import MOST_SIGNALS, REFUSED
from convergence.resources.builtin.addressed import addressed_types
from convergence.worker.attempts.attempt import PollPolicy
from tests.harness import API, Context, Harness

HANDLE = {'type': 'OS::Heat::WaitConditionHandle', 'properties': {'signal_transport': 'CFN_SIGNAL'}}
WAIT = {
    'type': 'OS::Heat::WaitCondition',
    'properties': {'handle': {'get_resource': 'handle'}, 'timeout': 600, 'count': 1},
}
OUTPUTS = {name: {'value': {'get_attr': ['handle', name]}} for name in ('endpoint', 'token', 'curl_cli', 'signal')}


@pytest.fixture
def harness(engine):
    """A parked action is looked at again when something happens, not because time goes by."""
    return Harness(engine, pace=PollPolicy(0.0, 1e6, -1.0, 1))


def create(harness, *, handle=HANDLE, name='stack', outputs=OUTPUTS, **more):
    """A stack that waits for a signal; its id."""
    resources = {'handle': handle, 'ready': WAIT, **more}
    whole = {'heat_template_version': '2018-08-31', 'resources': resources, 'outputs': outputs}
    made = harness.stacks.create_stack(harness.context, name, whole, None, None, {})
    harness.run()
    return made['stack_id']


def told(harness, stack, attribute='endpoint'):
    """What the handle of a stack says."""
    return harness.row(stack, 'handle').output.attributes[attribute]


def taken(address):
    """What the API makes of an address: the context's project, and the arguments of the operation."""
    parts = urlsplit(address)
    _, _, project, _, resource_id = parts.path.split('/')
    query = {name: values[-1] for name, values in parse_qs(parts.query).items()}
    proof = signing.proof_of(query.get('Signature', ''))
    return project, {'resource_id': resource_id, 'proof': proof, 'expires': query.get('Expires')}


def send(harness, address, details=None, **changed):
    """Send a signal to an address, as the API does."""
    project, arguments = taken(address)
    project = changed.pop('project', project)
    harness.addresses.resource_signal_by_address(
        Context(project_id=project), **{**arguments, **changed}, details=details
    )


def refused(harness, address, details=None, **changed):
    """An address is refused as all are that are no good."""
    with pytest.raises(errors.Forbidden) as caught:
        send(harness, address, details, **changed)
    assert str(caught.value) == REFUSED


def made(harness, stack, **how):
    return harness.addresses.resource_signal_address(harness.context, {'stack_id': stack}, 'handle', **how)


def test_the_reference_of_a_handle_of_cloudformation_is_its_address(harness):
    template = {
        'AWSTemplateFormatVersion': '2010-09-09',
        'Resources': {
            'Handle': {'Type': 'AWS::CloudFormation::WaitConditionHandle'},
            'Ready': {
                'Type': 'AWS::CloudFormation::WaitCondition',
                'Properties': {'Handle': {'Ref': 'Handle'}, 'Timeout': '600', 'Count': 2},
            },
        },
        'Outputs': {'Url': {'Value': {'Ref': 'Handle'}}, 'Said': {'Value': {'Fn::GetAtt': ['Ready', 'Data']}}},
    }
    stack = harness.stacks.create_stack(harness.context, 'stack', template, None, None, {})['stack_id']
    harness.run()
    address = harness.row(stack, 'Handle').output.reference
    with pytest.raises(errors.Invalid, match='Metadata format invalid'):
        send(harness, address, {'Status': 'SUCCESS', 'UniqueId': '1'})
    for number in ('1', '2'):
        send(harness, address, {'Status': 'SUCCESS', 'Reason': 'up', 'Data': f'd{number}', 'UniqueId': number})
        harness.run()
    assert harness.state(stack) == 'CREATE_COMPLETE'
    assert json.loads(harness.row(stack, 'Ready').output.attributes['Data']) == {'1': 'd1', '2': 'd2'}
    shown = ResourceReads(harness.reader, harness.compiler)
    assert shown.describe_stack_resource(harness.context, {'stack_id': stack}, 'Handle')['metadata'] == {
        '1': {'Status': 'SUCCESS', 'Reason': 'up', 'Data': 'd1'},
        '2': {'Status': 'SUCCESS', 'Reason': 'up', 'Data': 'd2'},
    }


# --- what an address is good for ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    'body',
    [
        None,
        {'status': 'SUCCESS', 'id': 'x', 'data': 'd', 'reason': 'r'},
        {'Status': 'SUCCESS', 'UniqueId': 'x', 'Data': 'd', 'Reason': 'r'},
    ],
)
def test_who_knows_the_address_completes_the_condition(harness, body):
    stack = create(harness)
    assert harness.state(stack) == 'CREATE_IN_PROGRESS'
    send(harness, told(harness, stack), body)
    harness.run()
    assert harness.state(stack) == 'CREATE_COMPLETE'
    if body is not None:
        reads = ResourceReads(harness.reader, harness.compiler)
        shown = reads.describe_stack_resource(harness.context, {'stack_id': stack}, 'handle')['metadata']
        assert shown == {'x': {'status': 'SUCCESS', 'reason': 'r', 'data': 'd'}}


def test_a_failure_that_a_program_of_cloudformation_reports_fails_the_condition(harness):
    stack = create(harness)
    send(harness, told(harness, stack), {'Status': 'FAILURE', 'Reason': 'no disk', 'UniqueId': 'a', 'Data': ''})
    harness.run()
    assert harness.state(stack) == 'CREATE_FAILED'
    assert 'WaitConditionFailure: resources.ready: no disk' in harness.stack(stack).status_reason


def test_an_address_clears_no_hook_and_gets_nothing_but_signals_through(harness):
    stack = create(harness)
    with pytest.raises(errors.Invalid, match='unset_hook is not known'):
        send(harness, told(harness, stack), {'unset_hook': 'pre-create'})


@pytest.mark.parametrize('transport', ['TOKEN_SIGNAL', 'CFN_SIGNAL', 'TEMP_URL_SIGNAL'])
def test_every_transport_says_how_to_send_what_it_takes(harness, transport):
    handle = {**HANDLE, 'properties': {'signal_transport': transport}}
    stack = create(harness, handle=handle)
    row = harness.row(stack, 'handle')
    signature = signing.Grant('p', row.id).signature(row.data['signal_key'])
    endpoint, token, command = (told(harness, stack, name) for name in ('endpoint', 'token', 'curl_cli'))
    signal = json.loads(told(harness, stack, 'signal'))
    assert endpoint.startswith(f'{API}/p/signals/{row.id}')
    assert signature in command
    assert endpoint in command
    if transport == 'TOKEN_SIGNAL':
        assert (token, signal['method']) == (signature, 'POST')
        assert signature not in endpoint
        assert f'-H "X-Auth-Token: {signature}"' in command
    else:
        assert (token, signal['method']) == (None, 'PUT')
        assert signal['alarm_url'] == endpoint
    send(harness, signal['alarm_url'])
    harness.run()
    assert harness.state(stack) == 'CREATE_COMPLETE'


def test_the_reference_of_a_handle_for_each_update_is_its_address(harness):
    stack = create(harness, handle={'type': 'OS::Heat::UpdateWaitConditionHandle'}, outputs={})
    address = harness.row(stack, 'handle').output.reference
    ready = {'Status': 'SUCCESS', 'Reason': 'up', 'Data': '', 'UniqueId': '1'}
    send(harness, address, ready)
    harness.run()
    assert harness.state(stack) == 'CREATE_COMPLETE'
    whole = {
        'heat_template_version': '2018-08-31',
        'resources': {'handle': {'type': 'OS::Heat::UpdateWaitConditionHandle'}, 'ready': WAIT},
    }
    harness.stacks.update_stack(harness.context, {'stack_id': stack}, whole, None, None, {})
    harness.run()
    assert harness.state(stack) == 'UPDATE_IN_PROGRESS'
    (new,) = [row for row in harness.reader.resources(stack) if row.name == 'handle' and row.replaced_by is None]
    assert new.output.reference != address
    send(harness, new.output.reference, ready)
    harness.run()
    assert harness.state(stack) == 'UPDATE_COMPLETE'
    refused(harness, address)


@pytest.mark.parametrize('transport', ['HEAT_SIGNAL', 'NO_SIGNAL'])
def test_a_handle_for_members_has_no_key(harness, transport):
    stack = create(harness, handle={**HANDLE, 'properties': {'signal_transport': transport}})
    row = harness.row(stack, 'handle')
    assert 'signal_key' not in row.data
    refused(harness, signing.Grant('p', row.id).address(API, ''))
    with pytest.raises(errors.ResourceActionNotSupported, match='no signal addresses'):
        made(harness, stack)


# --- attempts -----------------------------------------------------------------------------------------------------


def test_an_address_is_good_for_its_own_resource_only(harness):
    one, other = create(harness), create(harness, name='other')
    address = told(harness, one)
    refused(harness, address, resource_id=harness.row(other, 'handle').id)
    refused(harness, address, resource_id=harness.row(one, 'ready').id)
    refused(harness, address, resource_id='no-such-row')
    refused(harness, address, project='q')
    harness.run()
    assert harness.state(one) == harness.state(other) == 'CREATE_IN_PROGRESS'


@pytest.mark.parametrize('proof', ['', 'x', 'é', '0' * 64, None])
def test_a_wrong_signature_is_refused(harness, proof):
    stack = create(harness)
    refused(harness, told(harness, stack), proof=proof)


def test_the_signature_itself_is_no_proof(harness):
    """What travels through the broker cannot be turned into an address, nor the other way round."""
    stack = create(harness)
    row = harness.row(stack, 'handle')
    refused(harness, told(harness, stack), proof=signing.Grant('p', row.id).signature(row.data['signal_key']))


def test_the_end_of_an_address_holds_and_cannot_be_moved(harness):
    stack = create(harness)
    address = made(harness, stack, expires_in_s=3600)
    assert address['expires_at'] > harness.reader.now() + 3000
    for moved in (None, str(address['expires_at'] + 1), 'never', '-1', '9' * 40):
        refused(harness, address['signal_url'], expires=moved)
    row = harness.row(stack, 'handle')
    over = signing.Grant('p', row.id, '', int(harness.reader.now()) - 1).address(API, row.data['signal_key'])
    refused(harness, over)
    refused(harness, told(harness, stack), expires='99999999999')
    send(harness, address['signal_url'])
    harness.run()
    assert harness.state(stack) == 'CREATE_COMPLETE'


@pytest.mark.parametrize('wrong', [0, -1, True, 'soon', float('inf'), float('nan'), 1e12])
def test_a_time_that_makes_no_sense_is_refused(harness, wrong):
    stack = create(harness)
    with pytest.raises(errors.Invalid, match='expires_in_s'):
        made(harness, stack, expires_in_s=wrong)


def test_to_revoke_makes_every_address_void_but_the_one_that_is_answered(harness):
    stack = create(harness)
    old, timed = told(harness, stack), made(harness, stack, expires_in_s=3600)['signal_url']
    new = made(harness, stack, revoke=True)
    assert new['revoked'] is True
    refused(harness, old)
    refused(harness, timed)
    assert harness.reader.events(stack)[-1].reason == 'All signal addresses are revoked'
    send(harness, new['signal_url'])
    harness.run()
    assert harness.state(stack) == 'CREATE_COMPLETE'


def test_to_revoke_disturbs_nobody_who_holds_the_row(harness):
    stack = create(harness)
    before = harness.row(stack, 'handle')
    with harness.store.writing() as connection:
        connection.execute(RESOURCE.update().where(RESOURCE.c.id == before.id).values(owner='somebody'))
        connection.commit()
    made(harness, stack, revoke=True)
    after = harness.row(stack, 'handle')
    assert after.revocation
    assert after == replace(before, owner='somebody', revocation=after.revocation)


def test_who_has_seen_the_key_makes_no_address_after_the_next_revocation(harness):
    stack = create(harness)
    row = harness.row(stack, 'handle')
    made(harness, stack, revoke=True)
    for guess in ('', '1', '2', row.revocation):
        refused(harness, signing.Grant('p', row.id, guess).address(API, row.data['signal_key']))
    first = harness.row(stack, 'handle').revocation
    made(harness, stack, revoke=True)
    assert harness.row(stack, 'handle').revocation not in ('', first)


@pytest.mark.parametrize('way', ['export_stack', 'abandon_stack'])
def test_no_key_is_handed_out_with_a_stack_and_an_adoption_makes_a_new_one(harness, way):
    stack = create(harness)
    send(harness, told(harness, stack))
    harness.run()
    row = harness.row(stack, 'handle')
    data = getattr(harness.abandonment, way)(harness.context, {'stack_id': stack})
    harness.run()
    assert row.data['signal_key'] not in json.dumps(data)
    adopted = harness.stacks.create_stack(
        harness.context, 'again', None, None, args={'adopt_stack_data': json.dumps(data)}
    )['stack_id']
    harness.run()
    new = harness.row(adopted, 'handle')
    assert new.data['signal_key'] not in (row.data['signal_key'], '******')
    refused(harness, signing.Grant('p', new.id).address(API, '******'))
    send(harness, told(harness, adopted))
    assert harness.reader.count_signals(new.id) == 1


def test_a_key_in_the_data_of_an_adoption_is_not_used(harness):
    known = {'resource_id': 'x', 'resource_data': {'signal_key': 'known', 'more': 1}}
    whole = {'heat_template_version': '2018-08-31', 'resources': {'handle': HANDLE}}
    data = {'template': whole, 'resources': {'handle': known}}
    stack = harness.stacks.create_stack(harness.context, 's', None, None, args={'adopt_stack_data': data})['stack_id']
    harness.run()
    row = harness.row(stack, 'handle')
    assert (row.data['more'], row.data['signal_key'] == 'known') == (1, False)
    refused(harness, signing.Grant('p', row.id).address(API, 'known'))


def test_what_all_signals_of_a_resource_say_has_a_limit_whoever_sends_them(harness):
    stack = create(harness, ready={**WAIT, 'properties': {**WAIT['properties'], 'count': 99}})
    harness.signals._most_bytes = 10_000
    address, details = told(harness, stack), {'data': 'x' * 4000}
    send(harness, address, details)
    send(harness, address, details)
    with pytest.raises(errors.Invalid, match=r'\[limits\] max_signal_bytes is 10000'):
        send(harness, address, details)
    with pytest.raises(errors.Invalid, match='max_signal_bytes'):
        harness.signals.resource_signal(harness.context, {'stack_id': stack}, 'handle', details)
    send(harness, address, {'data': 'little'})
    assert harness.reader.count_signals(harness.row(stack, 'handle').id) == 3


def test_a_signal_reads_none_of_those_before_it(harness, monkeypatch):
    stack = create(harness, ready={**WAIT, 'properties': {**WAIT['properties'], 'count': 99}})
    address = told(harness, stack)
    send(harness, address)

    def read(resource_ids):
        raise AssertionError('all signals were read')

    monkeypatch.setattr(type(harness.reader), 'signals', lambda self, resource_ids: read(resource_ids))
    send(harness, address, {'id': 'x', 'status': 'SUCCESS'})
    assert harness.reader.events(stack)[-1].reason == 'Signal: status:SUCCESS reason:Signal 2 received'


def test_a_signal_that_is_being_let_in_when_the_addresses_are_revoked_is_not_stored(harness, monkeypatch):
    stack = create(harness)
    address, observed_at = told(harness, stack), harness.signals._looked_at

    def meanwhile(*arguments):
        made(harness, stack, revoke=True)
        return observed_at(*arguments)

    monkeypatch.setattr(harness.signals, '_looked_at', meanwhile)
    refused(harness, address)
    assert harness.reader.count_signals(harness.row(stack, 'handle').id) == 0


def test_the_address_goes_with_the_resource(harness):
    stack = create(harness)
    address = told(harness, stack)
    harness.stacks.delete_stack(harness.context, {'stack_id': stack})
    harness.run()
    refused(harness, address)


def test_a_resource_takes_so_many_signals_and_no_more(harness, monkeypatch):
    stack = create(harness)
    monkeypatch.setattr(harness.reader, 'count_signals', lambda resource_id: MOST_SIGNALS)
    with pytest.raises(errors.Invalid, match='takes no more'):
        send(harness, told(harness, stack))


def test_addresses_are_made_for_the_stacks_of_the_caller_only(harness):
    stack = create(harness)
    with pytest.raises(errors.EntityNotFound):
        harness.addresses.resource_signal_address(Context(project_id='q'), {'stack_id': stack}, 'handle')
    with pytest.raises(errors.ResourceNotFound):
        harness.addresses.resource_signal_address(harness.context, {'stack_id': stack}, 'nothing')
    with pytest.raises(errors.ResourceActionNotSupported):
        harness.addresses.resource_signal_address(harness.context, {'stack_id': stack}, 'ready')


# --- what is shown ------------------------------------------------------------------------------------------------


def test_a_resource_shows_nothing_that_opens_it(harness):
    thing = {'type': 'Test::Thing', 'properties': {'value': {'get_attr': ['handle', 'endpoint']}}}
    stack = create(harness, user=thing)
    row = harness.row(stack, 'handle')
    reads = ResourceReads(harness.reader, harness.compiler)
    asked = ['endpoint', 'token', 'curl_cli', 'signal']
    for name in ('handle', 'user', 'ready'):
        shown = json.dumps(reads.describe_stack_resource(harness.context, {'stack_id': stack}, name, asked))
        assert 'cvsig_' not in shown
        assert row.data['signal_key'] not in shown
    assert all('cvsig_' not in event.reason for event in harness.reader.events(stack))


def test_without_an_address_of_the_api_it_is_said_what_is_missing(harness):
    harness.registry._types.update(addressed_types())
    stack = create(harness)
    error = harness.row(stack, 'handle').output.errors['endpoint']
    assert '[api] public_url' in error
