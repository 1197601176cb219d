"""Images."""

from __future__ import annotations

from dataclasses import dataclass

from convergence.core.model import Json
from convergence.resources.attributes import attr
from convergence.resources.constraints import AllowedPattern, AllowedValues, Range
from convergence.resources.schema import prop
from convergence_openstack.declaring import UUID


@dataclass(frozen=True)
class WebImageProperties:
    """The properties of an image."""

    name: str | None = prop(None, description='Name. Default: derived from the names of the stack and the resource.')
    id: str | None = prop(None, description='Id. Default: derived from the token of the resource.')
    min_disk: int | None = prop(0, description='Least disk of a server in GiB.', constraints=[Range(0, None)])
    min_ram: int | None = prop(0, description='Least memory of a server in MiB.', constraints=[Range(0, None)])
    protected: bool | None = prop(False, description='Whether it cannot be removed.', update_allowed=True)
    disk_format: str = prop(
        description='Format of the disk.',
        constraints=[
            AllowedValues(('ami', 'ari', 'aki', 'vhd', 'vhdx', 'vmdk', 'raw', 'qcow2', 'vdi', 'iso', 'ploop'))
        ],
    )
    container_format: str = prop(
        description='Format of the container.',
        constraints=[AllowedValues(('ami', 'ari', 'aki', 'bare', 'ovf', 'ova', 'docker'))],
    )
    location: str = prop(description='Address from which the service fetches it.')
    tags: list[Json] | None = prop(None, description='Tags.', update_allowed=True)
    architecture: str | None = prop(
        None, description='Architecture of the machines that it is for.', update_allowed=True
    )
    kernel_id: str | None = prop(
        None, description='Image of the kernel.', update_allowed=True, constraints=[AllowedPattern(UUID)]
    )
    os_distro: str | None = prop(None, description='Distribution of the operating system.', update_allowed=True)
    os_version: str | None = prop(None, description='Version of the operating system.', update_allowed=True)
    owner: str | None = prop(None, description='Project that owns it.', update_allowed=True)
    extra_properties: dict[str, Json] | None = prop({}, description='Further properties.', update_allowed=True)
    visibility: str | None = prop(
        'private',
        description='Who sees it.',
        update_allowed=True,
        constraints=[AllowedValues(('public', 'private', 'community', 'shared'))],
    )
    ramdisk_id: str | None = prop(
        None, description='Image of the RAM disk.', update_allowed=True, constraints=[AllowedPattern(UUID)]
    )
    active: bool | None = prop(
        True, description='Whether it can be used; otherwise it is deactivated.', update_allowed=True
    )
    members: list[str | None] | None = prop(None, description='Projects with which it is shared.', update_allowed=True)


@dataclass(frozen=True)
class WebImageAttributes:
    """The attributes of an image."""

    show: dict[str, Json] = attr('The object as its service describes it.', of=('show',), dear=True, live=True)
