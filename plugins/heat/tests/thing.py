"""A resource of Heat's, as a worker has it."""

from __future__ import annotations

from typing import Any

from convergence.resources.contract import ResourceType
from tests.fake_cloud import thing
from tests.fake_cloud.thing import TOKEN

__all__ = ['TOKEN', 'Thing']


def imported(name: str) -> ResourceType[Any]:
    """A type, as a worker imports it."""
    from convergence_heat.library import load

    return load(name)


class Thing(thing.Thing):
    """The same, of this package."""

    load = staticmethod(imported)
