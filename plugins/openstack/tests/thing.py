"""A resource of this package, as a worker has it."""

from __future__ import annotations

from convergence_openstack.library import load

from tests.fake_cloud import thing
from tests.fake_cloud.thing import TOKEN

__all__ = ['TOKEN', 'Thing']


class Thing(thing.Thing):
    """The same, of this package."""

    load = staticmethod(load)
