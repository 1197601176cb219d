"""``AWS::AutoScaling::LaunchConfiguration``: what the servers of a group are."""

# ruff: noqa: RUF009 - prop() makes dataclass fields, like field()
from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from typing_extensions import override

from convergence.core.model import Json
from convergence.resources.builtin.waiting import physical_name
from convergence.resources.contract import Answer, Call, Done, ResourceType
from convergence.resources.schema import prop

_UNUSED = 'Not used.'


@dataclass(frozen=True)
class BlockStorage:
    """A volume of a server."""

    delete: bool = prop(True, name='DeleteOnTermination', description='Whether it goes with the server.')
    iops: float | None = prop(None, name='Iops', description=_UNUSED)
    snapshot: str | None = prop(None, name='SnapshotId', description='The snapshot that it is made from.')
    size: str | None = prop(None, name='VolumeSize', description='Its size in GB.')
    kind: str | None = prop(None, name='VolumeType', description=_UNUSED)


@dataclass(frozen=True)
class BlockDevice:
    """A device of a server, and the volume behind it."""

    device: str = prop(name='DeviceName', description='The name of the device, for example vdb.')
    storage: BlockStorage | None = prop(None, name='Ebs', description='The volume.')
    none: dict[str, Json] | None = prop(None, name='NoDevice', description=_UNUSED)
    virtual: str | None = prop(None, name='VirtualName', description=_UNUSED)


@dataclass(frozen=True)
class SchedulerHint:
    """A hint for the scheduler of the compute service."""

    key: str = prop(name='Key')
    value: str = prop(name='Value')


@dataclass(frozen=True)
class LaunchConfigurationProperties:
    """See the descriptions of the fields. A change of any makes another configuration."""

    image: str | None = prop(None, name='ImageId', description='The image of the servers.')
    flavor: str | None = prop(None, name='InstanceType', description='Their flavor.')
    instance: str | None = prop(
        None, name='InstanceId', description='A server to take the properties of; needs a compute service.'
    )
    key: str | None = prop(None, name='KeyName', description='The key pair of their user.')
    user_data: str | None = prop(None, name='UserData', description='What they are told when they start.')
    security_groups: list[Json] | None = prop(None, name='SecurityGroups', description='Their security groups.')
    kernel: str | None = prop(None, name='KernelId', description=_UNUSED)
    ramdisk: str | None = prop(None, name='RamDiskId', description=_UNUSED)
    devices: list[BlockDevice] | None = prop(None, name='BlockDeviceMappings', description='Their volumes.')
    hints: list[SchedulerHint] | None = prop(None, name='NovaSchedulerHints', description='Hints for the scheduler.')

    def __post_init__(self) -> None:
        for device in self.devices or ():
            if device.storage is None:
                raise ValueError('Ebs is missing, this is required when specifying BlockDeviceMappings.')
            if not device.storage.snapshot:
                raise ValueError('SnapshotId is missing, this is required when specifying BlockDeviceMappings.')
        if not self.instance and not (self.image and self.flavor):
            raise ValueError('If without InstanceId, ImageId and InstanceType are required.')


class LaunchConfiguration(ResourceType[LaunchConfigurationProperties]):
    """Says what the servers of a group are. Nothing is made of it but a name."""

    Properties: ClassVar[type[Any]] = LaunchConfigurationProperties
    token_enforced = True  # Nothing real is made.
    create_settles_s = 0.0

    @override
    def create(self, call: Call[LaunchConfigurationProperties]) -> Answer:
        """Nothing to do but to have a name."""
        return Done(physical_name(call))
