"""``openstack stack create`` of templates that others have written, as they are."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest
import requests

from tests.openstack.contents import connection
from tests.openstack.field import KEY, OUTSIDE, PRIVATE, TEMPLATES, Found
from tests.openstack.installation import Stack, eventually
from tests.openstack.layout import PASSWORD, REGION
from tests.openstack.templates import PUBLIC_KEY
from tests.preloaded import openstack

MORE_IMAGES, MORE_FLAVORS = ('Ubuntu 22.04',), ('SCS-2V:4:20',)
"""Names that templates insist on."""


@pytest.fixture(scope='module')
def cloud(installation):
    """A cloud in which the client finds Convergence in the catalog, and which has what templates insist on."""
    admin = connection(installation.layout)
    service = admin.identity.create_service(name='convergence', type='orchestration')
    url = installation.url('%(project_id)s')
    admin.identity.create_endpoint(service_id=service.id, interface='public', url=url, region_id=REGION)
    made = [
        admin.image.create_image(
            name=name,
            container_format='bare',
            disk_format='raw',
            visibility='public',
            data=b'pretended',
            validate_checksum=False,
        )
        for name in MORE_IMAGES
    ]
    flavors = [admin.compute.create_flavor(name=name, ram=64, vcpus=1, disk=1) for name in MORE_FLAVORS]
    yield admin
    for image in made:
        admin.image.delete_image(image)
    for flavor in flavors:
        admin.compute.delete_flavor(flavor)
    admin.identity.delete_service(service)


class Customer:
    """Somebody with a key pair, a network behind a router, and the command line."""

    def __init__(self, installation, outside: str, directory) -> None:
        self.user = installation.user()
        self.directory = directory
        cloud = self.user.cloud
        cloud.compute.create_keypair(name=KEY, public_key=PUBLIC_KEY)
        self.network = cloud.network.create_network(name=PRIVATE)
        self.subnet = cloud.network.create_subnet(
            name=PRIVATE, network_id=self.network.id, ip_version=4, cidr='10.20.0.0/24'
        )
        self.router = cloud.network.create_router(name=PRIVATE, external_gateway_info={'network_id': outside})
        cloud.network.add_interface_to_router(self.router, subnet_id=self.subnet.id)
        self.ids = {'public': outside, 'private': self.network.id, 'subnet': self.subnet.id}
        self.before = self.user.things()

    def create(self, template: Found, file: Path) -> Stack:
        """Ask for a stack."""
        given = {name: value.format(**self.ids) for name, value in template.parameters.items()}
        words = [word for name, value in given.items() for word in ('--parameter', f'{name}={value}')]
        made = self.run('stack', 'create', '-t', str(file), *words, template.name, '-f', 'json')
        return Stack(self.user, template.name, made['id'])

    def run(self, *words: str, code: int = 0):
        """``openstack …``."""
        environment = {name: value for name, value in os.environ.items() if not name.startswith('OS_')}
        environment |= {
            'OS_AUTH_URL': self.user.installation.layout.auth_url,
            'OS_USERNAME': self.user.name,
            'OS_PASSWORD': PASSWORD,
            'OS_PROJECT_NAME': self.user.name,
            'OS_USER_DOMAIN_ID': 'default',
            'OS_PROJECT_DOMAIN_ID': 'default',
            'OS_IDENTITY_API_VERSION': '3',
            'OS_REGION_NAME': REGION,
            'HOME': str(self.directory),
        }
        done = openstack().run(*words, directory=self.directory, environment=environment)
        assert done.returncode == code, done.stdout + done.stderr
        return json.loads(done.stdout) if 'json' in words else done.stdout + done.stderr


@pytest.fixture
def customers(installation, cloud, tmp_path_factory):
    """One for templates that make networks, and one with a single network, which servers are then put on."""
    outside = cloud.network.find_network(OUTSIDE).id
    return {
        makes_networks: Customer(installation, outside, tmp_path_factory.mktemp('customer'))
        for makes_networks in (False, True)
    }


@pytest.mark.timeout(3600)
def test_templates_of_the_field_become_what_is_known_of_them_and_go_again(customers, installation):
    kept = installation.layout.directory / 'field'
    try:
        files = [(template, template.file(kept)) for template in TEMPLATES]
    except requests.RequestException as error:
        pytest.skip(f'the templates cannot be fetched: {error}')
    stacks = [(template, customers[template.makes_networks].create(template, file)) for template, file in files]
    unexpected = {}
    for template, stack in stacks:
        told = _outcome(customers[template.makes_networks], stack)
        print(f'{template.path}: {told}', flush=True)
        if template.told not in told:
            unexpected[template.path] = told
    assert unexpected == {}
    for customer in customers.values():
        names = [stack.name for _, stack in stacks if stack.user is customer.user]
        customer.run('stack', 'delete', '--yes', '--wait', *names)
        assert customer.user.things() == customer.before


def _outcome(customer, stack: Stack) -> str:
    """What a stack has come to, and which of its outputs have no value."""
    eventually(lambda: not stack.show()['stack_status'].endswith('IN_PROGRESS'), f'{stack.name} is at rest')
    shown = customer.run('stack', 'show', stack.name, '-f', 'json')
    if shown['stack_status'] != 'CREATE_COMPLETE':
        return f'{shown["stack_status"]} {shown["stack_status_reason"]}'
    missing = [each['output_key'] for each in shown['outputs'] if each['output_value'] is None]
    return f'no value of {", ".join(missing)}' if missing else 'CREATE_COMPLETE'
