"""The metadata of a resource as it is shown: from its template, with the additions of signals."""

from __future__ import annotations

import logging

from convergence import logs
from convergence.core.model import Json
from convergence.core.rows import Resource, Stack
from convergence.core.software import SoftwareRowsPort
from convergence.db.ports import ReaderPort
from convergence.resources.invocation import Subject, build_call, heard_by
from convergence.resources.reading import Strictness
from convergence.resources.registry import Registry
from convergence.resources.secrets import known_secrets
from convergence.resources.software import ProjectSoftware
from convergence.values import replace

LOG = logging.getLogger(__name__)


def with_signals(
    stack: Stack,
    row: Resource,
    metadata: Json,
    reader: ReaderPort,
    types: Registry,
    software: SoftwareRowsPort | None = None,
) -> Json:
    """The metadata as the resource's type shows it: from the template, with additions of signals and others.

    :param software: stores software configurations and deployments.
    """
    if row.type not in types or not types.get(row.type).implements('metadata'):
        return metadata
    kind = types.get(row.type)
    logs.mask_also(known_secrets(row, types))
    try:
        call = build_call(
            kind,
            replace(Subject.of(stack, row), metadata=metadata),
            row.properties,
            strictness=Strictness.LENIENT,
            signals=lambda: heard_by(row, row.pending, reader.signals),
        )
        return kind.metadata(replace(call, software=ProjectSoftware(software, stack.project_id)))
    except Exception:
        LOG.warning(
            'Type of resource %s failed to add signals to the metadata; showing the metadata without them',
            row.name,
            exc_info=True,
        )
        return metadata
