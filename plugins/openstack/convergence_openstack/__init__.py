"""Resource types of OpenStack over openstacksdk. The imports of this module are cheap."""

from __future__ import annotations

from importlib import resources
from typing import Any

from convergence.resources.contract import ResourceType
from convergence.resources.manifest import Manifest
from convergence.resources.openstack.implied import AFTER
from convergence.resources.openstack.names import canonical
from convergence.resources.openstack.notified import NOTIFIED

FILE = 'types.json'
"""The manifest, beside this module. Written by `convergence_openstack.writing`."""


def manifest() -> Manifest:
    """Return the manifest of the types.

    :raises ValueError: the file belongs to another version of Convergence.
    :raises OSError: the file cannot be read.
    """
    file = resources.files(__name__) / FILE
    return Manifest.read(file, _load, implied=AFTER, canonical=canonical, notified=NOTIFIED)


def _load(name: str) -> ResourceType[Any]:
    from convergence_openstack.library import load

    return load(name)
