"""The resource types of OpenStack Heat. The imports of this module are cheap: Heat's classes are not loaded."""

from __future__ import annotations

from importlib import resources
from typing import Any

from convergence.resources.contract import ResourceType
from convergence.resources.manifest import Manifest
from convergence.resources.openstack.implied import AFTER
from convergence.resources.openstack.names import canonical
from convergence.resources.openstack.notified import NOTIFIED

FILE = 'types.json'
"""The manifest, beside this module. Written by `convergence_heat.writing`."""


def manifest() -> Manifest:
    """Return the manifest of Heat's types.

    :raises ValueError: the file belongs to another version of Convergence.
    :raises OSError: the file cannot be read.
    """
    file = resources.files(__name__) / FILE
    return Manifest.read(file, _load, implied=AFTER, canonical=canonical, notified=NOTIFIED)


def _load(name: str) -> ResourceType[Any]:
    from convergence_heat.library import load

    return load(name)
