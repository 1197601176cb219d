"""What Heat's classes and their clients do at services, and what becomes of what services answer."""

from __future__ import annotations

import contextlib
import importlib.util
import json
import os
import subprocess
import sys
from dataclasses import replace
from typing import Any

import convergence_heat
import pytest

from convergence.core.model import Action
from convergence.resources.comparison import changed_properties
from convergence.resources.contract import (
    Change,
    Done,
    FinalFailure,
    InProgress,
    OutcomeUnknown,
    ReplacementNeeded,
    TransientFailure,
)
from plugins.heat.tests.thing import TOKEN, Thing
from tests.fake_cloud.cloud import IMAGE, USER, Cloud

if importlib.util.find_spec('heat') is None:
    pytest.skip('openstack-heat is not installed: make heat', allow_module_level=True)

from convergence_heat.library import classes, load


def test_every_class_makes_a_type():
    for name in classes():
        assert load(name).Properties is not None


def test_the_request_that_makes_an_object_carries_the_token(cloud):
    Thing('OS::Neutron::Net').do(Action.CREATE)
    Thing('OS::Cinder::Volume', size=1, metadata={'of': 'mine'}).do(Action.CREATE)
    (network,) = [each for key, each in cloud.things['networks'].items() if 'kept' not in key]
    (volume,) = [each for key, each in cloud.things['volumes'].items() if 'kept' not in key]
    assert network['description'] == f'convergence:{TOKEN}'
    assert volume['metadata'] == {'of': 'mine', 'convergence': TOKEN}


def test_a_user_does_not_see_the_token_in_what_he_has_written(cloud):
    sent = []
    handle = cloud.handle

    def seen(request: Any) -> Any:
        sent.append((request.method, request.body))
        return handle(request)

    cloud.handle = seen
    try:
        thing = Thing('OS::Neutron::SecurityGroup', description='Doors.', rules=[]).do(Action.CREATE)
    finally:
        del cloud.handle
    assert any(method == 'POST' and TOKEN in str(body) and 'Doors.' in str(body) for method, body in sent)
    assert cloud.things['security-groups'][thing.call.physical_id]['description'] == 'Doors.'
    assert thing.recorded == [thing.call.physical_id], 'the id is stored before the token is taken off'


def test_what_exists_and_was_not_made_here_is_not_taken_over(cloud):
    cloud.things['os-keypairs']['mine'] = {'name': 'mine', 'public_key': 'ssh-rsa mine'}
    thing = Thing('OS::Nova::KeyPair', name='mine', public_key='ssh-rsa mine')
    with pytest.raises(FinalFailure, match='mine exists already, and was not made for this resource'):
        thing.do(Action.CREATE)
    assert thing.kind.find(thing.call) is None


@pytest.mark.parametrize(
    ('name', 'properties'),
    [
        ('OS::Neutron::RouterInterface', {'router': 'kept-routers', 'subnet': 'kept-subnets'}),
        ('OS::Cinder::VolumeAttachment', {'instance_uuid': 'kept-servers', 'volume_id': 'kept-volumes'}),
    ],
)
def test_what_has_only_a_key_is_made_by_the_row_that_was_about_to_make_it(cloud, name, properties):
    """Another row would make the same object, and this one would find and remove it."""
    thing = Thing(name, **properties)

    def handle(request: Any) -> Any:
        if request.method in ('POST', 'PUT') and 'tokens' not in request.url:
            raise KeyboardInterrupt
        return Cloud.handle(cloud, request)

    cloud.handle = handle
    try:
        with pytest.raises(KeyboardInterrupt):
            thing.kind.create(thing.call)
    finally:
        del cloud.handle
    gone = replace(thing.call)
    answer = thing.take(thing.kind.find(thing.call))
    assert isinstance(answer, InProgress) and answer.physical_id is None
    while isinstance(answer, InProgress):
        answer = thing.take(thing.kind.poll(thing.call, Action.CREATE, answer.progress))
    assert thing.call.physical_id is not None and len(cloud.made()) == 1
    thing.call = gone  # the last worker died, too, and the stack is deleted
    thing.do(Action.DELETE)
    assert cloud.made() == []
    thing.do(Action.DELETE)


def test_what_was_refused_finds_nothing_of_others(cloud):
    thing = Thing('OS::Neutron::RouterInterface', router='kept-routers', subnet='kept-subnets')
    refused = Cloud.handle
    cloud.handle = lambda request: (
        (403, {}, {'NeutronError': {'type': 'No', 'message': 'no', 'detail': ''}})
        if 'add_router' in request.url
        else refused(cloud, request)
    )
    try:
        with pytest.raises(FinalFailure):
            thing.kind.create(thing.call)
    finally:
        del cloud.handle
    Thing('OS::Neutron::RouterInterface', router='kept-routers', subnet='kept-subnets').do(Action.CREATE)
    assert thing.kind.find(thing.call) is None
    thing.do(Action.DELETE)
    assert len(cloud.made()) == 1


def test_a_key_whose_private_half_was_lost_is_made_anew(cloud):
    thing = Thing('OS::Nova::KeyPair', name='k', save_private_key=True)
    thing.kind.create(thing.call)  # and the worker dies: only what was recorded is stored
    assert thing.call.physical_id is None and cloud.things['os-keypairs']
    answer = thing.take(thing.kind.find(thing.call))
    answer = thing.take(thing.kind.poll(thing.call, Action.CREATE, answer.progress))
    assert isinstance(answer, Done) and thing.kind.attribute(thing.call, 'private_key') == 'secret key'


def test_a_group_that_may_lack_rules_is_replaced(cloud):
    """To make it anew in its place was not safe: who died at that left a second group with the same token."""
    thing = Thing('OS::Neutron::SecurityGroup', rules=[{'protocol': 'tcp'}])
    thing.call = replace(thing.call, record=lambda *told: None)
    cloud.things['security-groups']['half'] = {
        'id': 'half', 'name': '', 'description': f'convergence:{TOKEN}', 'security_group_rules': [],
    }  # fmt: skip
    with pytest.raises(ReplacementNeeded) as raised:
        thing.kind.find(thing.call)
    assert raised.value.physical_id == 'half'


def test_a_user_who_may_lack_roles_is_made_anew_in_his_place(cloud):
    """Keystone would refuse another one of his name, and sees to it that there are never two."""
    thing = Thing('OS::Keystone::User', name='u', roles=[{'role': 'member', 'project': 'p'}])
    cloud.things['users']['half'] = {'id': 'half', 'name': 'u', 'description': f'convergence:{TOKEN}'}
    found = thing.kind.find(thing.call)
    assert found.physical_id == 'half' and found.progress == {'step': 'remake'}


@pytest.mark.parametrize('status', [429, 413])
def test_a_service_that_says_when_is_asked_again_then(cloud, status):
    cloud.refuses.append((status, {'Retry-After': '7'}, 'slow down'))
    thing = Thing('OS::Cinder::Volume', size=1)
    answer = thing.kind.create(thing.call)
    assert isinstance(answer, InProgress) and answer.poll_after_s == 7.0 and answer.physical_id is None
    assert thing.kind.poll(thing.call, Action.CREATE, answer.progress).physical_id is not None


def test_a_service_that_says_at_once_is_left_alone_for_a_while_and_the_user_is_told(cloud):
    cloud.refuses.append((413, {'Retry-After': '0'}, 'VolumeLimitExceeded: quota'))
    thing = Thing('OS::Cinder::Volume', size=1)
    with pytest.raises(TransientFailure):
        thing.kind.create(thing.call)


@pytest.mark.parametrize(
    ('name', 'properties', 'status', 'text'),
    [
        ('OS::Cinder::Volume', {'size': 1}, 413, 'VolumeLimitExceeded: quota'),
        ('OS::Neutron::Net', {}, 409, 'Quota exceeded for resources: network'),
        ('OS::Nova::KeyPair', {'name': 'k'}, 403, 'Quota exceeded, too many key pairs'),
        ('OS::Neutron::Net', {}, 429, 'too many requests'),
    ],
)
def test_a_quota_that_is_used_up_may_be_free_later(cloud, name, properties, status, text):
    cloud.refuses.append((status, {}, text))
    thing = Thing(name, **properties)
    with pytest.raises(TransientFailure):
        thing.kind.create(thing.call)
    assert cloud.made() == []


@pytest.mark.parametrize(('status', 'kind'), [(400, FinalFailure), (403, FinalFailure), (500, OutcomeUnknown)])
def test_whether_something_was_made_is_told(cloud, status, kind):
    cloud.refuses.append((status, {}, 'no'))
    thing = Thing('OS::Neutron::Net')
    with pytest.raises(kind) as caught:
        thing.kind.create(thing.call)
    assert caught.value.physical_id is None


def test_what_is_in_use_is_deleted_later(cloud):
    thing = Thing('OS::Neutron::Net').do(Action.CREATE)
    cloud.things['ports']['p'] = {'id': 'p', 'network_id': thing.call.physical_id}
    with pytest.raises(TransientFailure, match='in use'):
        thing.kind.delete(thing.call)
    del cloud.things['ports']['p']
    thing.do(Action.DELETE)
    assert cloud.made() == []


def test_a_finder_that_gets_no_answer_says_so(cloud):
    thing = Thing('OS::Neutron::Net')
    cloud.handle = lambda request: (503, {}, None) if 'networks' in request.url else Cloud.handle(cloud, request)
    try:
        with pytest.raises(TransientFailure):
            thing.kind.find(thing.call)
    finally:
        del cloud.handle


def test_a_change_that_heat_cannot_make_in_place_needs_a_new_object(cloud):
    thing = Thing('OS::Cinder::Volume', size=2).do(Action.CREATE)
    with pytest.raises(ReplacementNeeded):
        thing.update(size=2, availability_zone='elsewhere')


@pytest.mark.parametrize(
    ('properties', 'change'),
    [
        ({}, Change.NONE),
        ({'image': IMAGE}, Change.NONE),
        ({'flavor': 'm1.small'}, Change.IN_PLACE),
        ({'flavor': 'm1.small', 'flavor_update_policy': 'REPLACE'}, Change.REPLACE),
    ],
)
def test_what_an_update_will_do_is_told_before(cloud, properties, change):
    before = {'image': 'cirros', 'flavor': 'm1.tiny', 'user_data_format': 'RAW', 'networks': [{'port': 'kept-ports'}]}
    thing = Thing('OS::Nova::Server', **before).do(Action.CREATE)
    cloud.requests.clear()
    call = replace(thing.call, previous=thing.call.properties, properties=thing.read({**before, **properties}))
    assert thing.kind.plan(call) is change
    assert {method for method, _ in cloud.requests} <= {'GET'}


def test_to_write_an_id_in_place_of_its_name_is_no_change(cloud):
    network = Thing('OS::Neutron::Net', name='private').of('network').do(Action.CREATE).call.physical_id
    before = {'image': 'cirros', 'flavor': 'm1.tiny', 'user_data_format': 'RAW', 'networks': [{'network': 'private'}]}
    after = {**before, 'image': IMAGE, 'networks': [{'network': network}]}
    thing = Thing('OS::Nova::Server', **before).do(Action.CREATE)
    known = convergence_heat.manifest().types()['OS::Nova::Server']
    for kind in (known, thing.kind):
        assert changed_properties(kind, before, after, thing.call.data) == set()
        assert changed_properties(kind, before, {**after, 'image': 'other'}, thing.call.data) == {'image'}
    thing.update(**{**before, 'image': IMAGE})
    assert changed_properties(known, {**before, 'image': IMAGE}, before, thing.call.data) == {'image'}


def test_a_token_that_has_run_out_is_renewed_once(cloud):
    thing = Thing('OS::Neutron::Net')
    auth = USER.session().auth
    auth.get_access(USER.session())._auth_token = 'old'
    tokens = cloud.tokens
    thing.do(Action.CREATE)
    assert cloud.tokens == tokens + 1 and len(cloud.made()) == 1


def test_a_name_that_cannot_be_looked_up_now_is_not_wrong(cloud):
    def handle(request: Any) -> Any:
        if '/networks' in request.url:
            raise ConnectionRefusedError('nobody listens')
        return Cloud.handle(cloud, request)

    cloud.handle = handle
    try:
        thing = Thing('OS::Neutron::Router', external_gateway_info={'network': 'outside'})
        with pytest.raises(TransientFailure, match='nobody listens'):
            thing.kind.create(thing.call)
    finally:
        del cloud.handle


def test_what_is_called_wrong_after_a_request_in_vain_may_be_right(cloud):
    def handle(request: Any) -> Any:
        if '/flavors' in request.url:
            raise ConnectionRefusedError('nobody listens')
        return Cloud.handle(cloud, request)

    cloud.handle = handle
    try:
        thing = Thing('OS::Nova::Server', image=IMAGE, flavor='m1.tiny')
        with pytest.raises(TransientFailure), thing.kind._at_work(thing.call, Action.CREATE) as at_work:
            with contextlib.suppress(Exception):
                at_work.one.client().flavors.get('m1.tiny')
            assert at_work.one.client().servers.list() is not None
            raise ValueError('no such flavor')
    finally:
        del cloud.handle


def test_a_token_that_another_call_is_about_to_renew_is_renewed(cloud):
    thing, refused = Thing('OS::Neutron::Net'), []

    def handle(request: Any) -> Any:
        if request.method == 'POST' and 'networks' in request.url and not refused:
            refused.append(request)
            USER.renew()  # the other call has seen it first
            return 401, {}, {'error': {'code': 401, 'message': 'expired'}}
        return Cloud.handle(cloud, request)

    cloud.handle = handle
    try:
        thing.do(Action.CREATE)
    finally:
        del cloud.handle
    assert refused and len(cloud.made()) == 1


def test_a_call_that_is_not_wanted_any_more_asks_for_nothing(cloud):
    thing = Thing('OS::Neutron::Net')
    thing.call = replace(thing.call, cancelled=lambda: True)
    with pytest.raises(TransientFailure, match='was cancelled'):
        thing.kind.create(thing.call)
    assert cloud.requests == []


def test_a_server_takes_few_requests(cloud):
    server = {
        'image': 'cirros', 'flavor': 'm1.tiny', 'user_data_format': 'RAW', 'networks': [{'network': 'kept-networks'}],
    }  # fmt: skip
    thing = Thing('OS::Nova::Server', **server).do(Action.CREATE)
    cloud.requests.clear()
    second = Thing('OS::Nova::Server', **server).do(Action.CREATE)
    for name in ('name', 'first_address', 'networks', 'addresses', 'accessIPv4', 'show'):
        second.kind.attribute(second.call, name)
    # The look-ups of the first one serve the second one of its stack; attributes are read from the last answer.
    # That no flavor has the name as its id is not kept: it is asked before the creation, and by it. To tell all addresses
    # Heat asks for the ports, their networks and subnets, and floating IPs.
    assert len(cloud.requests) <= 13, cloud.counted()
    assert thing.call.physical_id != second.call.physical_id


def test_a_server_for_which_nothing_is_said_is_on_any_network_of_its_project(cloud):
    sent = []

    def handle(request: Any) -> Any:
        if request.method == 'POST' and request.url.endswith('/servers'):
            sent.append(json.loads(request.body)['server']['networks'])
        return Cloud.handle(cloud, request)

    cloud.handle = handle
    server = {'image': 'cirros', 'flavor': 'm1.tiny', 'user_data_format': 'RAW'}
    try:
        Thing('OS::Nova::Server', **server).do(Action.CREATE)
        Thing('OS::Nova::Server', **server, networks=[{'allocate_network': 'none'}]).do(Action.CREATE)
        instance = Thing('AWS::EC2::Instance', ImageId='cirros', InstanceType='m1.tiny')
        instance.kind.create(instance.call)
    finally:
        del cloud.handle
    assert sent == ['auto', 'none', 'auto']


def test_a_worker_that_runs_imports_the_classes():
    program = (
        'from oslo_config import cfg\n'
        'from convergence.config import loading\n'
        'loading.register(cfg.CONF)\n'
        'cfg.CONF([], project="convergence", default_config_files=[])\n'
        'from convergence_heat.library import load\n'
        'assert load("OS::Nova::Server").implements("find")\n'
    )
    done = subprocess.run(
        [sys.executable, '-W', 'ignore', '-c', program],
        env=os.environ | {'PYTHONPATH': os.pathsep.join(sys.path)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-2000:]
