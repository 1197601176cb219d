"""``AWS::AutoScaling::LaunchConfiguration``: what the servers of a group are."""

# ruff: noqa: RUF009 - prop() makes dataclass fields, like field()
from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

from typing_extensions import override

from convergence.core.model import Json
from convergence.resources.builtin.waiting import physical_name
from convergence.resources.constraints import Constraint, CustomConstraint
from convergence.resources.contract import Answer, Call, Done, ResourceType
from convergence.resources.schema import PropertySchema, prop
from convergence.resources.shapes import DeclaredProperties, FieldDeclaration
from convergence.resources.support import Status, SupportStatus
from convergence.template import UNKNOWN

_HIDDEN = SupportStatus(Status.HIDDEN)


def not_implemented(name: str, *constraints: Constraint) -> FieldDeclaration:
    """A property that the field has declared and never made anything of: it is not shown, and refused."""
    return prop(None, name=name, constraints=constraints, support=_HIDDEN)


def require_implemented(properties: DeclaredProperties) -> None:
    """Refuse properties that are `not_implemented`.

    :raises ValueError: one of them is given.
    """
    for name in _not_implemented(type(properties)):
        field = PropertySchema.of(type(properties)).properties[name].field
        if getattr(properties, field) is not None:
            raise ValueError(_refused(name))


def relied_on(declared: type[Any], properties: Mapping[str, Any]) -> Iterator[str]:
    """Yield the problems that `require_implemented` would raise, for properties of which some may be unknown."""
    return (_refused(name) for name in _not_implemented(declared) if properties.get(name) not in (None, UNKNOWN))


def _not_implemented(declared: type[Any]) -> list[str]:
    return [name for name, each in PropertySchema.of(declared).properties.items() if each.support is _HIDDEN]


def _refused(name: str) -> str:
    return f'Property {name} not implemented yet'


@dataclass(frozen=True)
class BlockStorage:
    """A volume of a server."""

    delete: bool = prop(True, name='DeleteOnTermination', description='Whether it goes with the server.')
    iops: float | None = not_implemented('Iops')
    snapshot: str | None = prop(
        None,
        name='SnapshotId',
        constraints=[CustomConstraint('cinder.snapshot')],
        description='The snapshot that it is made from.',
    )
    size: str | None = prop(None, name='VolumeSize', description='Its size in GB.')
    kind: str | None = not_implemented('VolumeType')

    def __post_init__(self) -> None:
        require_implemented(self)


@dataclass(frozen=True)
class BlockDevice:
    """A device of a server, and the volume behind it."""

    device: str = prop(name='DeviceName', description='The name of the device, for example vdb.')
    storage: BlockStorage | None = prop(None, name='Ebs', description='The volume.')
    none: dict[str, Json] | None = not_implemented('NoDevice')
    virtual: str | None = not_implemented('VirtualName')

    def __post_init__(self) -> None:
        require_implemented(self)


@dataclass(frozen=True)
class SchedulerHint:
    """A hint for the scheduler of the compute service."""

    key: str = prop(name='Key')
    value: str = prop(name='Value')


@dataclass(frozen=True)
class LaunchConfigurationProperties:
    """See the descriptions of the fields. A change of any makes another configuration."""

    image: str | None = prop(
        None, name='ImageId', constraints=[CustomConstraint('glance.image')], description='The image of the servers.'
    )
    flavor: str | None = prop(
        None, name='InstanceType', constraints=[CustomConstraint('nova.flavor')], description='Their flavor.'
    )
    instance: str | None = prop(
        None,
        name='InstanceId',
        constraints=[CustomConstraint('nova.server')],
        description='A server to take the properties of: refused, use ImageId and InstanceType.',
    )
    key: str | None = prop(
        None, name='KeyName', constraints=[CustomConstraint('nova.keypair')], description='The key pair of their user.'
    )
    user_data: str | None = prop(None, name='UserData', description='User data of the servers.')
    security_groups: list[Json] | None = prop(None, name='SecurityGroups', description='Their security groups.')
    kernel: str | None = not_implemented('KernelId')
    ramdisk: str | None = not_implemented('RamDiskId')
    devices: list[BlockDevice] | None = prop(None, name='BlockDeviceMappings', description='Their volumes.')
    hints: list[SchedulerHint] | None = prop(None, name='NovaSchedulerHints', description='Hints for the scheduler.')

    def __post_init__(self) -> None:
        require_implemented(self)
        for device in self.devices or ():
            if device.storage is None:
                raise ValueError('Ebs is missing, this is required when specifying BlockDeviceMappings.')
            if not device.storage.snapshot:
                raise ValueError('SnapshotId is missing, this is required when specifying BlockDeviceMappings.')
        if self.instance:
            raise ValueError('InstanceId is not supported; set ImageId and InstanceType')
        if not (self.image and self.flavor):
            raise ValueError('If without InstanceId, ImageId and InstanceType are required.')


class LaunchConfiguration(ResourceType[LaunchConfigurationProperties]):
    """Says what the servers of a group are. Nothing is made of it but a name."""

    Properties: ClassVar[type[Any]] = LaunchConfigurationProperties
    token_enforced = True  # Nothing real is made.
    create_ambiguity_s = 0.0

    @override
    def create(self, call: Call[LaunchConfigurationProperties]) -> Answer:
        """Nothing to do but to have a name."""
        return Done(physical_name(call))
