"""Volumes and their attachments."""

from __future__ import annotations

from dataclasses import dataclass

from convergence.core.model import Json
from convergence.resources.attributes import attr
from convergence.resources.constraints import Range
from convergence.resources.schema import prop
from convergence.resources.translation import Rename
from convergence_openstack.declaring import HIDDEN, by_service


@dataclass(frozen=True)
class VolumeProperties:
    """The properties of a volume."""

    TRANSLATIONS = (Rename(('imageRef',), 'image'),)
    availability_zone: str | None = prop(None, description='Availability zone.')
    size: int | None = prop(None, description='Size in GiB.', update_allowed=True, constraints=[Range(1, None)])
    snapshot_id: str | None = prop(
        None, description='Snapshot that it is made from.', constraints=[by_service('cinder.snapshot')]
    )
    backup_id: str | None = prop(
        None,
        description='Backup that it is restored from.',
        update_allowed=True,
        constraints=[by_service('cinder.backup')],
    )
    name: str | None = prop(
        None,
        description='Name. Default: derived from the names of the stack and the resource.',
        update_allowed=True,
    )
    description: str | None = prop(None, description='Description.', update_allowed=True)
    volume_type: str | None = prop(
        None, description='Type of the volume.', update_allowed=True, constraints=[by_service('cinder.vtype')]
    )
    metadata: dict[str, Json] | None = prop(
        {}, description='Keys and texts that are kept with it.', update_allowed=True
    )
    imageRef: str | None = prop(None, description='An older name of image.', support=HIDDEN)
    image: str | None = prop(None, description='Image, by name or id.', constraints=[by_service('glance.image')])
    source_volid: str | None = prop(
        None, description='Volume that it is a copy of.', constraints=[by_service('cinder.volume')]
    )
    scheduler_hints: dict[str, Json] | None = prop(None, description='Hints for the scheduler.')
    read_only: bool | None = prop(None, description='Whether it can be written to.', update_allowed=True)
    multiattach: bool | None = prop(
        False, description='Whether several servers may have it at once; volume types say so nowadays.', support=HIDDEN
    )


@dataclass(frozen=True)
class VolumeAttributes:
    """The attributes of a volume."""

    show: dict[str, Json] = attr('The object as its service describes it.', of=('show',), dear=True, live=True)
    availability_zone: str = attr('Availability zone.', of=('availability_zone',))
    size: str = attr('Size in GiB.', of=('size',))
    snapshot_id: str = attr('Snapshot that it is made from.', of=('snapshot_id',))
    display_name: str = attr('Name.', of=('display_name',))
    display_description: str = attr('Description.', of=('display_description',))
    volume_type: str = attr('Type of the volume.', of=('volume_type',))
    metadata: str = attr('Keys and texts that are kept with it.', of=('metadata',))
    source_volid: str = attr('Volume that it is a copy of.', of=('source_volid',))
    status: str = attr('What the service says of its state.', of=('status',), dear=True, live=True)
    created_at: str = attr('When it was made.', of=('created_at',))
    bootable: str = attr('Whether a server can boot from it.', of=('bootable',))
    metadata_values: dict[str, Json] = attr('Metadata, as a map.', of=('metadata_values',))
    encrypted: str = attr('Whether it is encrypted.', of=('encrypted',))
    attachments: str = attr('Attachments, as text.', of=('attachments',), dear=True, live=True)
    attachments_list: list[Json] = attr('Attachments.', of=('attachments_list',), dear=True, live=True)
    multiattach: bool = attr(
        'Whether several servers may have it at once; volume types say so nowadays.', of=('multiattach',)
    )


@dataclass(frozen=True)
class VolumeAttachmentProperties:
    """The properties of an attachment."""

    instance_uuid: str = prop(description='Server.', update_allowed=True)
    volume_id: str = prop(
        description='Volume, by name or id.', update_allowed=True, constraints=[by_service('cinder.volume')]
    )
    mountpoint: str | None = prop(
        None, description='Requested device; most hypervisors choose it themselves.', update_allowed=True
    )


@dataclass(frozen=True)
class VolumeAttachmentAttributes:
    """The attributes of an attachment."""

    show: dict[str, Json] = attr('The object as its service describes it.', of=('show',), dear=True, live=True)
