"""What the types do at services, and what becomes of what services answer."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

pytest.importorskip('openstack', reason='openstacksdk is not installed')

from convergence.core.model import Action
from convergence.core.software import SoftwareConfig
from convergence.resources.contract import (
    Change,
    Done,
    FinalFailure,
    InProgress,
    ObjectNotFound,
    OutcomeUnknown,
    ReplacementNeeded,
    TransientFailure,
)
from plugins.openstack.tests.thing import TOKEN, Thing
from tests.fake_cloud.cloud import IMAGE, USER, Cloud

SERVER = {'image': 'cirros', 'flavor': 'm1.tiny', 'networks': [{'network': 'kept-networks'}]}


@pytest.fixture
def sent(cloud, monkeypatch):
    """The bodies of requests that make or change something, by their paths."""
    bodies = []

    def seen(request):
        if request.body and 'tokens' not in request.url:
            bodies.append((request.method, request.path_url, json.loads(request.body)))
        return Cloud.handle(cloud, request)

    monkeypatch.setattr(cloud, 'handle', seen)
    return bodies


def answering(cloud, monkeypatch, status, method='POST', **headers):
    """Have the services refuse all requests of a method."""
    handle = cloud.handle

    def refuse(request):
        if request.method != method or 'tokens' in request.url:
            return handle(request)
        return status, headers, {'NeutronError': {'type': 'No', 'message': 'not now', 'detail': ''}}

    monkeypatch.setattr(cloud, 'handle', refuse)


def test_the_request_that_makes_an_object_carries_the_token_and_nobody_is_shown_it(cloud, sent):
    network = Thing('OS::Neutron::Net').do(Action.CREATE)
    volume = Thing('OS::Cinder::Volume', size=1, metadata={'of': 'mine'}).do(Action.CREATE)
    assert sent[0][2]['network']['description'] == f'convergence:{TOKEN}'
    assert sent[1][2]['volume']['metadata'] == {'of': 'mine', 'convergence': TOKEN}
    assert network.kind.attribute(network.call, 'show')['description'] == ''
    assert volume.kind.attribute(volume.call, 'metadata_values') == {'of': 'mine'}
    assert volume.kind.attribute(volume.call, 'show')['metadata'] == {'of': 'mine'}


def test_a_user_does_not_see_the_token_in_what_he_has_written(cloud, sent):
    thing = Thing('OS::Neutron::SecurityGroup', description='Doors.').do(Action.CREATE)
    (_, _, made), (_, _, after) = sent
    assert TOKEN in made['security_group']['description'] and after == {'security_group': {'description': 'Doors.'}}
    assert cloud.things['security-groups'][thing.call.physical_id]['description'] == 'Doors.'


@pytest.mark.parametrize('status', [429, 413, 503])
def test_a_service_without_time_is_asked_again_when_it_is_known_that_it_has_made_nothing(cloud, monkeypatch, status):
    answering(cloud, monkeypatch, status)
    thing = Thing('OS::Neutron::Net')
    with pytest.raises(TransientFailure, match='thing: not now'):
        thing.kind.create(thing.call)


def test_what_a_proxy_says_after_the_network_was_made_is_not_believed(cloud, monkeypatch):
    handle = cloud.handle

    def lost(request):
        answer = handle(request)
        return answer if request.method != 'POST' or 'tokens' in request.url else (503, {}, None)

    monkeypatch.setattr(cloud, 'handle', lost)
    thing = Thing('OS::Neutron::Net')
    answer = thing.kind.create(thing.call)
    assert isinstance(answer, InProgress) and len(cloud.made()) == 1 and answer.physical_id in cloud.made()[0]


@pytest.mark.parametrize('status', [500, 502, 504])
def test_whether_something_was_made_is_not_known_behind_other_errors(cloud, monkeypatch, status):
    answering(cloud, monkeypatch, status)
    thing = Thing('OS::Neutron::Net')
    with pytest.raises(OutcomeUnknown):
        thing.kind.create(thing.call)


def test_a_quota_is_waited_for_and_the_text_says_what_to_do(cloud):
    cloud.refuses.append((409, {}, 'Quota exceeded for resources: network'))
    thing = Thing('OS::Neutron::Net')
    with pytest.raises(TransientFailure, match=r'Quota exceeded .* \(raise the quota, or delete unused objects\)'):
        thing.kind.create(thing.call)


def test_who_may_not_is_told_which_roles_matter(cloud):
    cloud.refuses.append((403, {}, 'not allowed'))
    thing = Thing('OS::Neutron::Net')
    with pytest.raises(FinalFailure, match=r'OS::Neutron::Net thing: not allowed \(HTTP 403\) \(the roles of the user'):
        thing.kind.create(thing.call)


def test_what_is_in_use_is_removed_later_and_what_is_gone_is_removed(cloud):
    network = Thing('OS::Neutron::Net').do(Action.CREATE)
    port = Thing('OS::Neutron::Port', network=network.call.physical_id).of('port').do(Action.CREATE)
    with pytest.raises(TransientFailure, match='There are ports in use'):
        network.kind.delete(network.call)
    port.do(Action.DELETE)
    network.do(Action.DELETE)
    assert cloud.made() == []
    assert isinstance(network.kind.delete(network.call), Done)
    with pytest.raises(ObjectNotFound):
        network.kind.observe(network.call)


def test_a_name_is_looked_up_once_and_an_id_in_its_place_is_no_change(cloud):
    thing = Thing('OS::Nova::Server', **SERVER).do(Action.CREATE)
    assert [path for _, path in cloud.requests].count('/v2/images') == 1
    by_id = {**SERVER, 'image': IMAGE, 'flavor': '1'}
    thing.call = replace(thing.call, previous=thing.call.properties, properties=thing.read(by_id))
    assert thing.kind.plan(thing.call) is Change.NONE
    assert thing.kind.canonical(by_id, thing.call.data) == thing.kind.canonical(SERVER, thing.call.data)


@pytest.mark.parametrize('flavor', ['no such', 'twice'])
def test_a_name_of_nothing_and_one_of_two_things_is_refused_before_anything_is_made(cloud, monkeypatch, flavor):
    monkeypatch.setitem(cloud.flavors, '8', {'id': '8', 'name': 'twice'})
    monkeypatch.setitem(cloud.flavors, '9', {'id': '9', 'name': 'twice'})
    thing = Thing('OS::Nova::Server', **{**SERVER, 'flavor': flavor})
    with pytest.raises(FinalFailure, match=f'OS::Nova::Server thing: flavor: there .* flavor {flavor}'):
        thing.kind.validate(thing.call)
    assert cloud.made() == []


def test_what_exists_and_was_not_made_here_is_not_taken_over(cloud):
    cloud.things['os-keypairs']['mine'] = {'name': 'mine', 'public_key': 'ssh-rsa mine'}
    thing = Thing('OS::Nova::KeyPair', name='mine', public_key='ssh-rsa mine')
    with pytest.raises(FinalFailure, match='mine exists already, and was not made for this resource'):
        thing.do(Action.CREATE)
    assert thing.kind.find(thing.call) is None


def test_a_key_whose_private_half_was_lost_is_made_anew(cloud):
    thing = Thing('OS::Nova::KeyPair', name='k', save_private_key=True)
    thing.kind.create(thing.call)  # and the worker dies: only what was recorded is stored
    assert thing.call.physical_id is None and cloud.things['os-keypairs']
    answer = thing.take(thing.kind.find(thing.call))
    answer = thing.take(thing.kind.poll(thing.call, Action.CREATE, answer.progress))
    assert isinstance(answer, Done) and thing.kind.attribute(thing.call, 'private_key') == 'secret key'


def test_what_was_refused_finds_nothing_of_others(cloud, monkeypatch):
    thing = Thing('OS::Neutron::RouterInterface', router='kept-routers', subnet='kept-subnets')
    with monkeypatch.context() as patched:
        answering(cloud, patched, 403, 'PUT')
        with pytest.raises(FinalFailure):
            thing.kind.create(thing.call)
    Thing('OS::Neutron::RouterInterface', router='kept-routers', subnet='kept-subnets').do(Action.CREATE)
    assert thing.kind.find(thing.call) is None
    thing.do(Action.DELETE)
    assert len(cloud.made()) == 1


def test_a_group_that_lacks_rules_gets_them(cloud):
    thing = Thing('OS::Neutron::SecurityGroup', rules=[{'protocol': 'tcp'}])
    thing.kind.create(thing.call)  # and the worker dies
    answer = thing.take(thing.kind.find(thing.call))
    while isinstance(answer, InProgress):
        answer = thing.take(thing.kind.poll(thing.call, Action.CREATE, answer.progress))
    (group,) = [each for key, each in cloud.things['security-groups'].items() if 'kept' not in key]
    said = sorted((each['direction'], each.get('protocol')) for each in group['security_group_rules'])
    assert said == [('egress', None), ('egress', None), ('ingress', 'tcp')]


def test_policies_of_the_template_decide_between_change_and_replacement(cloud):
    thing = Thing('OS::Nova::Server', **SERVER).do(Action.CREATE)
    with pytest.raises(ReplacementNeeded, match=r'thing: flavor.* can be had with a new object only'):
        thing.update(**{**SERVER, 'flavor': 'm1.small', 'flavor_update_policy': 'REPLACE'})
    volume = Thing('OS::Cinder::Volume', size=2).do(Action.CREATE)
    with pytest.raises(ReplacementNeeded):
        volume.update(size=1)


def test_a_server_is_put_to_rest_and_wakes_up(cloud):
    thing = Thing('OS::Nova::Server', **SERVER).do(Action.CREATE)
    server = cloud.things['servers'][thing.call.physical_id]
    for action, status in ((Action.SUSPEND, 'SUSPENDED'), (Action.SUSPEND, 'SUSPENDED'), (Action.RESUME, 'ACTIVE')):
        thing.do(action)
        assert server['status'] == status


def test_a_resize_whose_confirmation_takes_its_time_is_waited_for(cloud):
    """Nova shows the same state as before, and refuses to be told again; it was seen at a real one."""
    thing = Thing('OS::Nova::Server', **SERVER).do(Action.CREATE)
    cloud.takes_s['confirmations'] = 5.0
    thing.update(**{**SERVER, 'flavor': 'm1.small'})
    server = cloud.things['servers'][thing.call.physical_id]
    assert (server['status'], server['flavor']['id']) == ('ACTIVE', '2')
    assert sum(method == 'POST' and path.endswith('/action') for method, path in cloud.requests) > 2


def test_a_server_in_error_says_why(cloud):
    cloud.takes_s['servers'] = 5.0
    thing = Thing('OS::Nova::Server', **SERVER)
    answer = thing.take(thing.kind.create(thing.call))
    cloud.things['servers'][thing.call.physical_id].update(status='ERROR', fault={'message': 'No valid host'})
    cloud.clock_s += 10
    with pytest.raises(FinalFailure, match='No valid host; repair the cause and update the stack'):
        thing.kind.poll(thing.call, Action.CREATE, answer.progress)
    assert not thing.kind.observe(thing.call).healthy


def test_a_configuration_of_convergence_is_what_a_server_reads(cloud, sent):
    import base64

    config_id = '0e8f4c48-5d4c-4f9e-9d5b-0f0a8a9c0b11'

    class Software:
        def config(self, wanted):
            return (
                SoftwareConfig(wanted, 'project', 'c', 'script', {'config': '#!/bin/sh'})
                if wanted == config_id
                else None
            )

    thing = Thing('OS::Nova::Server', **SERVER, user_data=config_id, user_data_format='SOFTWARE_CONFIG')
    thing.call = replace(thing.call, software=Software())
    thing.do(Action.CREATE)
    (made,) = [body['server'] for _, path, body in sent if path.endswith('/servers')]
    assert base64.b64decode(made['user_data']) == b'#!/bin/sh'


def test_what_is_not_wanted_any_more_sends_nothing(cloud):
    thing = Thing('OS::Neutron::Net')
    thing.call = replace(thing.call, cancelled=lambda: True)
    with pytest.raises(TransientFailure, match='was cancelled'):
        thing.kind.create(thing.call)
    assert cloud.requests == []


def test_another_token_is_got_when_one_is_not_good_any_more(cloud, monkeypatch):
    handle, refused = cloud.handle, []

    def once(request):
        if 'tokens' not in request.url and not refused:
            refused.append(request)
            return 401, {}, {'error': {'code': 401, 'message': 'expired'}}
        return handle(request)

    monkeypatch.setattr(cloud, 'handle', once)
    USER.token()
    assert Thing('OS::Neutron::Net').do(Action.CREATE).call.physical_id


def test_rows_of_the_classes_of_heat_are_gone_on_with(cloud):
    """What they keep in rows at rest: ids of the services, what names stand for, private keys, ports of servers."""
    cloud.things['os-keypairs']['k'] = {'name': 'k', 'public_key': 'ssh-rsa k'}
    pair = Thing('OS::Nova::KeyPair', name='k', save_private_key=True)
    pair.call = replace(pair.call, physical_id='k', data={'private_key': 'kept by Heat'})
    assert pair.kind.attribute(pair.call, 'private_key') == 'kept by Heat'
    server = Thing('OS::Nova::Server', **SERVER).do(Action.CREATE)
    cloud.things['ports']['own'] = {
        'id': 'own', 'name': 'x', 'description': f'convergence:{TOKEN}', 'device_id': '', 'network_id': '', 'fixed_ips': []
    }  # fmt: skip
    names = {'$names': {'flavor': {'m1.tiny': '1'}, 'image': {'cirros': IMAGE}}}
    server.call = replace(server.call, data={**names, '$tried': [], 'internal_ports': '[{"id": "own"}]'})
    server.update(**{**SERVER, 'name': 'renamed'})
    server.do(Action.DELETE)
    assert 'own' not in cloud.things['ports']
