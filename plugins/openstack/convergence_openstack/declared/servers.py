"""Servers and key pairs."""

from __future__ import annotations

from dataclasses import dataclass

from convergence.core.model import Json
from convergence.resources.attributes import attr
from convergence.resources.constraints import AllowedValues, Length, Range, custom
from convergence.resources.schema import prop
from convergence.resources.translation import Rename
from convergence_openstack.declared.ports import PortExtraProperties
from convergence_openstack.declaring import DEPRECATED, HIDDEN, by_service


@dataclass(frozen=True)
class KeyPairProperties:
    """The properties of a key pair."""

    name: str = prop(
        description='Name. Default: derived from the names of the stack and the resource.',
        constraints=[Length(1, 255)],
    )
    save_private_key: bool | None = prop(
        False, description='Whether the private key is kept and can be read as an attribute.'
    )
    public_key: str | None = prop(None, description='Public key; unless given, the service makes a pair.')
    type: str | None = prop(None, description='Sort of the keys.', constraints=[AllowedValues(('ssh', 'x509'))])
    user: str | None = prop(
        None,
        description='User to whom it belongs; only administrators may name another one.',
        constraints=[by_service('keystone.user')],
    )


@dataclass(frozen=True)
class KeyPairAttributes:
    """The attributes of a key pair."""

    show: dict[str, Json] = attr('The object as its service describes it.', of=('show',), dear=True, live=True)
    public_key: str = attr('Public key; unless given, the service makes a pair.', of=('public_key',))
    private_key: str = attr(
        'Private key, if the service has made it and it was to be kept.', of=('private_key',), dear=True, live=True
    )


@dataclass(frozen=True)
class ServerBlockDeviceMapping:
    """The items of ``block_device_mapping``."""

    device_name: str = prop(description='Name of the device.')
    volume_id: str | None = prop(None, description='Volume, by name or id.', constraints=[by_service('cinder.volume')])
    snapshot_id: str | None = prop(
        None, description='Snapshot that it is made from.', constraints=[by_service('cinder.snapshot')]
    )
    volume_size: int | None = prop(None, description='Size in GiB.')
    delete_on_termination: bool | None = prop(None, description='Whether it goes with the server.')


@dataclass(frozen=True)
class ServerBlockDeviceMappingV2:
    """The items of ``block_device_mapping_v2``."""

    device_name: str | None = prop(None, description='Name of the device.')
    volume_id: str | None = prop(None, description='Volume, by name or id.', constraints=[by_service('cinder.volume')])
    image_id: str | None = prop(
        None, description='An older name of image.', constraints=[by_service('glance.image')], support=HIDDEN
    )
    image: str | None = prop(None, description='Image, by name or id.', constraints=[by_service('glance.image')])
    snapshot_id: str | None = prop(
        None, description='Snapshot that it is made from.', constraints=[by_service('cinder.snapshot')]
    )
    swap_size: int | None = prop(None, description='Size of the swap disk in MiB.')
    ephemeral_size: int | None = prop(
        None, description='Size of the ephemeral disk in GiB.', constraints=[Range(1, None)]
    )
    ephemeral_format: str | None = prop(
        None,
        description='File system of the ephemeral disk.',
        constraints=[AllowedValues(('ext2', 'ext3', 'ext4', 'xfs', 'ntfs'))],
    )
    device_type: str | None = prop(
        None, description='Sort of the device.', constraints=[AllowedValues(('cdrom', 'disk'))]
    )
    disk_bus: str | None = prop(
        None,
        description='Bus of the device.',
        constraints=[AllowedValues(('ide', 'lame_bus', 'sata', 'scsi', 'usb', 'virtio'))],
    )
    boot_index: int | None = prop(None, description='Place in the order of booting; below zero for none.')
    volume_size: int | None = prop(None, description='Size in GiB.')
    delete_on_termination: bool | None = prop(None, description='Whether it goes with the server.')
    volume_type: str | None = prop(None, description='Type of the volume.', constraints=[by_service('cinder.vtype')])


@dataclass(frozen=True)
class ServerNetworks:
    """The items of ``networks``."""

    uuid: str | None = prop(
        None, description='An older name of network.', constraints=[by_service('neutron.network')], support=HIDDEN
    )
    network: str | None = prop(None, description='Network, by name or id.', constraints=[by_service('neutron.network')])
    allocate_network: str | None = prop(
        None,
        description='Whether the service finds a network by itself, or there is none.',
        update_allowed=True,
        constraints=[AllowedValues(('none', 'auto'))],
    )
    fixed_ip: str | None = prop(None, description='Requested address.', constraints=[custom('ip_addr')])
    port: str | None = prop(None, description='Port, by name or id.', constraints=[by_service('neutron.port')])
    port_extra_properties: PortExtraProperties | None = prop(
        None, description='Properties of the port that is made for it.', update_allowed=True
    )
    subnet: str | None = prop(None, description='Subnet, by name or id.')
    floating_ip: str | None = prop(None, description='Floating IP that leads there.')
    tag: str | None = prop(None, description='Tag of the device.')


@dataclass(frozen=True)
class ServerDeploymentSwiftData:
    """The contents of ``deployment_swift_data``."""

    container: str | None = prop(None, description='Name of the container.', constraints=[Length(1, None)])
    object: str | None = prop(None, description='Name of the object.', constraints=[Length(1, None)])


@dataclass(frozen=True)
class ServerProperties:
    """The properties of a server."""

    TRANSLATIONS = (Rename(('networks', 'uuid'), 'network'), Rename(('block_device_mapping_v2', 'image_id'), 'image'))
    name: str | None = prop(
        None,
        description='Name. Default: derived from the names of the stack and the resource.',
        update_allowed=True,
    )
    image: str | None = prop(
        None, description='Image, by name or id.', update_allowed=True, constraints=[by_service('glance.image')]
    )
    block_device_mapping: list[ServerBlockDeviceMapping | None] | None = prop(
        None, description='Disks, in the older form.'
    )
    block_device_mapping_v2: list[ServerBlockDeviceMappingV2 | None] | None = prop(None, description='Disks.')
    flavor: str = prop(
        description='Flavor, by name or id.', update_allowed=True, constraints=[by_service('nova.flavor')]
    )
    flavor_update_policy: str | None = prop(
        'RESIZE',
        description='What becomes of the server when the flavor changes.',
        update_allowed=True,
        constraints=[AllowedValues(('RESIZE', 'REPLACE'))],
    )
    image_update_policy: str | None = prop(
        'REBUILD',
        description='What becomes of the server when the image changes.',
        update_allowed=True,
        constraints=[AllowedValues(('REBUILD', 'REPLACE', 'REBUILD_PRESERVE_EPHEMERAL'))],
    )
    key_name: str | None = prop(None, description='Key pair.', constraints=[by_service('nova.keypair')])
    admin_user: str | None = prop(None, description='Of no effect.', support=HIDDEN)
    availability_zone: str | None = prop(None, description='Availability zone.')
    security_groups: list[Json] | None = prop([], description='Security groups, by name or id.')
    networks: list[ServerNetworks | None] | None = prop(
        None, description='Networks that it is on.', update_allowed=True
    )
    scheduler_hints: dict[str, Json] | None = prop(None, description='Hints for the scheduler.')
    metadata: dict[str, Json] | None = prop(
        {}, description='Keys and texts that are kept with it.', update_allowed=True
    )
    user_data_format: str | None = prop(
        'HEAT_CFNTOOLS',
        description='How user data are handed over.',
        constraints=[AllowedValues(('HEAT_CFNTOOLS', 'RAW', 'SOFTWARE_CONFIG'))],
    )
    software_config_transport: str | None = prop(
        'POLL_SERVER_CFN',
        description='Transport of configurations to agents.',
        update_allowed=True,
        constraints=[AllowedValues(('POLL_SERVER_CFN', 'POLL_SERVER_HEAT', 'POLL_TEMP_URL', 'ZAQAR_MESSAGE'))],
    )
    user_data_update_policy: str | None = prop(
        'REPLACE',
        description='What becomes of the server when the user data change.',
        update_allowed=True,
        constraints=[AllowedValues(('REPLACE', 'IGNORE', 'REBUILD'))],
    )
    user_data: str | None = prop('', description='What the server reads when it boots.', update_allowed=True)
    reservation_id: str | None = prop(None, description='Reservation that it belongs to.')
    config_drive: bool | None = prop(None, description='Whether it gets user data and metadata on a drive.')
    diskConfig: str | None = prop(
        None,
        description='Whether its disk is partitioned when it boots.',
        constraints=[AllowedValues(('AUTO', 'MANUAL'))],
    )
    personality: dict[str, Json] | None = prop(
        {}, description='Files that are put into it, by path; older APIs only.', support=DEPRECATED
    )
    admin_pass: str | None = prop(None, description='Password of the administrator.', update_allowed=True)
    tags: list[str | None] | None = prop(None, description='Tags.', update_allowed=True)
    deployment_swift_data: ServerDeploymentSwiftData | None = prop(
        {}, description='Where agents find configurations, for transports that need it.', update_allowed=True
    )


@dataclass(frozen=True)
class ServerAttributes:
    """The attributes of a server."""

    show: dict[str, Json] = attr('The object as its service describes it.', of=('show',), dear=True, live=True)
    name: str = attr('Name. Default: derived from the names of the stack and the resource.', of=('name',))
    addresses: dict[str, Json] = attr(
        'Addresses by network, with port, subnets and floating IP of each.', of=('addresses',), dear=True
    )
    networks: dict[str, Json] = attr('Networks that it is on.', of=('networks',))
    first_address: Json = attr('First address.', of=('first_address',))
    instance_name: str = attr('Name of the machine at the hypervisor.', of=('instance_name',))
    accessIPv4: str = attr('Address from which it is reached, IPv4.', of=('accessIPv4',))
    accessIPv6: str = attr('Address from which it is reached, IPv6.', of=('accessIPv6',))
    console_urls: dict[str, Json] = attr('Addresses of its consoles, by type.', of=('console_urls',), dear=True)
    tags: list[Json] = attr('Tags.', of=('tags',), dear=True)
    os_collect_config: dict[str, Json] = attr(
        'Configuration of its agents.', of=('os_collect_config',), dear=True, live=True
    )
