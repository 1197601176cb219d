"""What goes wrong at real services while stacks are at work."""

from __future__ import annotations

import shutil
import subprocess
import time

import pytest

from tests.openstack.contents import connection
from tests.openstack.installation import eventually
from tests.openstack.templates import eight, network, ref, resource, template

pytestmark = pytest.mark.timeout(1800)
OUTAGE_S = 60.0
"""How long a service is away: what an operator needs to restart it."""

BELIEVED_S = 6.0
"""What services have verified they believe for five seconds (`tests.openstack.configuration`)."""


@pytest.fixture
def admin(installation):
    """Who may do everything."""
    return connection(installation.layout)


def test_a_quota_that_is_used_up_is_waited_for(user, admin):
    admin.block_storage.update_quota_set(user.project_id, volumes=1)
    goal = {name: resource('Cinder::Volume', size=1) for name in ('first', 'second')}
    stack = user.create('s', template(**goal))
    eventually(lambda: 'uota' in _reasons(stack) or 'imit' in _reasons(stack), 'the quota is told')
    admin.block_storage.update_quota_set(user.project_id, volumes=2)
    stack.ended('CREATE_COMPLETE')
    assert user.things() == {'volumes': 2}
    stack.delete()


@pytest.mark.parametrize('name', ['neutron', 'cinder', 'keystone'])
def test_a_service_may_be_away_for_a_minute(user, control_plane, name):
    stack = user.create('s', eight('s')).ended('CREATE_COMPLETE')
    before = stack.ids()
    stack.update(eight('s', network={'name': 'renamed'}, volume={'name': 'renamed'}, router={'name': 'renamed'}))
    control_plane.processes.stop(name)
    time.sleep(OUTAGE_S)
    control_plane.restart(name)
    stack.ended('UPDATE_COMPLETE')
    assert stack.ids() == before
    stack.delete()


def test_a_service_that_is_away_loses_nothing_of_a_creation_or_a_delete(user, control_plane):
    control_plane.processes.stop('cinder')
    stack = user.create('s', template(**network(), volume=resource('Cinder::Volume', size=1)))
    eventually(lambda: 'repeated' in _reasons(stack), 'the service is missed')
    control_plane.restart('cinder')
    stack.ended('CREATE_COMPLETE')
    assert user.things()['volumes'] == 1
    control_plane.processes.stop('cinder')
    user.ask('DELETE', stack.path)
    eventually(lambda: 'repeated' in _reasons(stack), 'the service is missed')
    control_plane.restart('cinder')
    stack.ended('DELETE_COMPLETE')


def test_what_is_in_use_is_removed_when_it_is_not_any_more(user):
    stack = user.create('s', template(**network())).ended('CREATE_COMPLETE')
    port = user.cloud.network.create_port(network_id=stack.ids()['network'])
    user.ask('DELETE', stack.path)
    eventually(lambda: 'repeated' in _reasons(stack), 'the conflict is told')
    user.cloud.network.delete_port(port)
    stack.ended('DELETE_COMPLETE')


def test_tokens_that_are_not_good_any_more_are_renewed(user, control_plane):
    stack = user.create('s', eight('s')).ended('CREATE_COMPLETE')
    before = stack.ids()
    layout = control_plane.layout
    control_plane.processes.stop('keystone')
    shutil.rmtree(layout.state / 'fernet')
    (layout.state / 'fernet').mkdir()
    subprocess.run(
        [
            layout.program('keystone-manage'), '--config-file', str(layout.configuration / 'keystone.conf'), 'fernet_setup',
            '--keystone-user', 'root', '--keystone-group', 'root',
        ],
        check=True, capture_output=True,
    )  # fmt: skip
    control_plane.restart('keystone')
    time.sleep(BELIEVED_S)
    stack.update(eight('s', network={'name': 'n'}, server={'name': 'n'}, volume={'name': 'n'})).ended('UPDATE_COMPLETE')
    assert stack.ids() == before
    stack.delete()


def test_who_has_lost_his_role_cannot_go_on_and_then_can(user, installation, admin):
    goal = template(**network(), volume=resource('Cinder::Volume', size=1))
    stack = user.create('s', goal).ended('CREATE_COMPLETE')
    other = installation.colleague(user)
    role = admin.identity.find_role('member')
    stack.act('check').ended('CHECK_COMPLETE')
    admin.identity.unassign_project_role_from_user(user.project_id, user.id, role)
    try:
        time.sleep(BELIEVED_S)
        other.has(stack).act('check').ended('CHECK_FAILED')
    finally:
        admin.identity.assign_project_role_to_user(user.project_id, user.id, role)
    user.cloud.session.invalidate()
    stack.update(goal).ended('UPDATE_COMPLETE')
    stack.delete()


def test_who_is_removed_leaves_a_stack_that_goes_on_for_somebody_else(installation, admin):
    user = installation.user()
    goal = template(**network(), volume=resource('Cinder::Volume', size=1))
    stack = user.create('s', goal).ended('CREATE_COMPLETE')
    before = stack.ids()
    other = installation.colleague(user)
    admin.identity.delete_user(user.id)
    time.sleep(BELIEVED_S)
    stack = other.has(stack).act('check').ended('CHECK_FAILED')
    stack.update(goal).ended('UPDATE_COMPLETE')
    assert stack.ids() == before
    stack.delete()
    assert other.things() == {}
    eventually(lambda: user.trusts() == other.trusts() == [], 'the trusts are removed')


def test_what_a_user_removes_himself_does_not_hold_up_a_delete(user):
    stack = user.create('s', template(**network(), port=resource('Neutron::Port', network=ref('network'))))
    stack.ended('CREATE_COMPLETE')
    user.cloud.network.delete_port(stack.ids()['port'])
    stack.delete()


def _reasons(stack) -> str:
    listed = stack.user.ask('GET', f'{stack.path}/resources')['resources']
    return ' '.join(each['resource_status_reason'] or '' for each in listed)
