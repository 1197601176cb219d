"""Templates that others have written for their clouds, named and not copied: repository, commit and path at GitHub."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

import requests

SOURCE = 'https://raw.githubusercontent.com'
FETCH_S = 20.0

IMAGE, FLAVOR, KEY = 'cirros', 'm1.tiny', 'stack_key'
PRIVATE, OUTSIDE = 'private', 'public'
"""Networks: of the user, and to the outside."""


@dataclass(frozen=True)
class Found:
    """A template of the field.

    :param parameters: what a user of this cloud gives it.
    :param more: files that it names, beside it.
    :param makes_networks: its servers are not on the one network of their project.
    :param told: what becomes of it, in part: a state with its reason, or which outputs have no value.
    """

    repository: str
    commit: str
    path: str
    parameters: Mapping[str, str] = field(default_factory=dict)
    more: tuple[str, ...] = ()
    makes_networks: bool = False
    told: str = 'CREATE_COMPLETE'

    @property
    def name(self) -> str:
        """Of its stack."""
        return Path(self.path).stem.replace('_', '-')

    def file(self, kept: Path) -> Path:
        """Where its text is, with the files that it names beside it; they are fetched once.

        :param kept: the directory for all templates.
        :raises requests.RequestException: they cannot be fetched.
        """
        directory = kept / self.repository / self.commit
        for path in (self.path, *(str(Path(self.path).parent / each) for each in self.more)):
            there = directory / path
            if not there.exists():
                answer = requests.get(f'{SOURCE}/{self.repository}/{self.commit}/{path}', timeout=FETCH_S)
                answer.raise_for_status()
                there.parent.mkdir(parents=True, exist_ok=True)
                there.write_bytes(answer.content)
        return directory / self.path


_HEAT = 'openstack/heat-templates'
_SERVER = {'key_name': KEY, 'image': IMAGE, 'flavor': FLAVOR}

TEMPLATES = (
    Found(
        _HEAT,
        '3754320f2bd1910f0e2470fdfdbca5f4113a46c4',
        'hot/servers_in_new_neutron_net.yaml',
        {
            **_SERVER,
            'public_net_id': '{public}',
            'private_net_name': 'new',
            'private_net_cidr': '10.30.0.0/24',
            'private_net_gateway': '10.30.0.1',
            'private_net_pool_start': '10.30.0.10',
            'private_net_pool_end': '10.30.0.99',
        },
        makes_networks=True,
    ),
    Found(
        _HEAT,
        '2b4bbfab351456710611dd4b0a936130a3d0ef9f',
        'hot/servers_in_existing_neutron_net.yaml',
        {
            **_SERVER,
            'public_net_id': '{public}',
            'private_net_id': '{private}',
            'private_subnet_id': '{subnet}',
        },
    ),
    Found(
        _HEAT,
        '7f5062c50e679a9d76306ec011d7069fcb278eed',
        'hot/servers_in_existing_neutron_network_no_floating_ips.yaml',
        {**_SERVER, 'net_id': '{private}', 'subnet_id': '{subnet}'},
    ),
    Found(
        _HEAT,
        '0224c1d24dbcd967475e3c556951fcf6f48338d4',
        'hot/resource_group/server_with_volumes.yaml',
        {'image_id': IMAGE, 'instance_type': FLAVOR},
        ('volume_with_attachment.yaml',),
    ),
    Found(
        _HEAT,
        '0224c1d24dbcd967475e3c556951fcf6f48338d4',
        'hot/resource_group/resource_group.yaml',
    ),
    Found(
        _HEAT,
        'c9c5e158c93e6cd91c18ec09ca911acf170be8c3',
        'hot/resource_group/resource_group_index_lookup.yaml',
        more=('random.yaml',),
    ),
    Found(
        _HEAT,
        '73f8bd3944060cb4c96a5c5bf3cd0c4e3567e864',
        'hot/asg_of_servers.yaml',
        {**_SERVER, 'network': PRIVATE},
    ),
    Found(_HEAT, '76b83b68f69e0df5255df78b451b962cf21cb527', 'hot/condition.yaml', told='no value of res_value'),
    Found(
        _HEAT, 'ac8502c45d900570e833830f6fba4262568c8ec3', 'hot/vm_with_cinder.yaml', {**_SERVER, 'network': PRIVATE}
    ),
    Found(
        _HEAT,
        '3f4edc53f5feda25d0b20066d42b9a5a386a9263',
        'hot/software-config/example-templates/example-cloud-init.yaml',
        _SERVER,
    ),
    Found(
        _HEAT,
        'cf5350c82b9a844b3370fba972784f54b8e46478',
        'hot/hello_world.yaml',
        {'KeyName': KEY, 'ImageId': IMAGE, 'InstanceType': FLAVOR},
    ),
    Found(
        _HEAT,
        'c24e130618bb6aa15baf2aaed0d9648c03ee85ed',
        'hot/instance_group.yaml',
        {'key_name': KEY, 'image_id': IMAGE, 'num_instances': '2'},
    ),
    Found(
        'ChameleonCloud/heat-templates',
        '27d09830e32dcb1d367e815d38276934b670b51a',
        'network-isolation/network-isolation.yaml',
        {'cidr_net': '10.31.0.0/24', 'dhcp_first': '10.31.0.3', 'dhcp_last': '10.31.0.254'},
        makes_networks=True,
    ),
    Found(
        'pluscloudopen/heat-templates',
        'dc59d44a56ddbc61ab7248bec6666877452a15f7',
        'just-one-instance/just-one-instance.yaml',
        {'key_name': KEY, 'public_network': OUTSIDE, 'private_network': PRIVATE},
    ),
    Found(
        'CloudVPS/heat-templates',
        '4a8cad96e4b94c8f45dd200bdc323e0faa426310',
        'Default_networking.yml',
        {'public_net': OUTSIDE},
        makes_networks=True,
        told='Duplicate Security Group Rule',  # as Heat says
    ),
    Found(
        'ntnusky/heat-templates',
        '416d46f9a110867c03ee9293d5b4b87cde3ef4e3',
        'security-groups/generic-security-group.yaml',
        {
            'ruleset_name': 'web',
            'ipv4_networks': '["192.0.2.0/24", "198.51.100.0/24"]',
            'ipv6_networks': '["2001:db8::/32"]',
            'tcp_ports': '80,443',
            'udp_ports': '53',
        },
    ),
)
