"""Answers of services, cached for a short time: a name is resolved once, and ten attributes need one request."""

from __future__ import annotations

import re
import time
from collections import OrderedDict
from collections.abc import Callable, Hashable
from dataclasses import dataclass
from typing import Any

from convergence.concurrency import Lock

KEPT_S = 60.0
"""Seconds during which the id of a name is cached."""

JUST_S = 3.0
"""Seconds during which an object is cached: as long as a worker takes to read all its attributes."""

MOST_KEPT = 2000
"""Answers that a process keeps."""

_ID = re.compile(r'[0-9a-f]{8}(-?[0-9a-f]{4}){3}-?[0-9a-f]{12}', re.IGNORECASE)


class Recent:
    """Values that are believed for a while.

    :param believed_s: for how long.
    :param now: seconds of a clock that never goes back.
    """

    def __init__(self, believed_s: float, now: Callable[[], float] = time.monotonic) -> None:
        self._believed_s = believed_s
        self._now = now
        self._lock = Lock()
        self._kept: OrderedDict[Hashable, tuple[Any, float]] = OrderedDict()

    def get(self, key: Hashable) -> Any | None:
        """A value that is not too old; None: there is none."""
        with self._lock:
            value, at = self._kept.get(key, (None, 0.0))
        return value if value is not None and self._now() - at <= self._believed_s else None

    def put(self, key: Hashable, value: Any) -> None:
        """Keep a value."""
        with self._lock:
            self._kept[key] = value, self._now()
            self._kept.move_to_end(key)
            while len(self._kept) > MOST_KEPT:
                self._kept.popitem(last=False)

    def drop(self, key: Hashable) -> None:
        """Believe it no longer."""
        with self._lock:
            self._kept.pop(key, None)

    def clear(self) -> None:
        """Believe nothing."""
        with self._lock:
            self._kept.clear()


@dataclass(frozen=True, slots=True)
class Sort:
    """A kind of object that templates call by name.

    :param service: its type in the catalog of Keystone.
    :param path: of the list, behind the endpoint; `plural` is the key of the list in the answer.
    :param filters: True if the service can filter by name; otherwise the whole list is read.
    :param ids: further values that are ids, though they have another form.
    """

    noun: str
    service: str
    path: str
    plural: str
    filters: bool = True
    ids: frozenset[str] = frozenset()

    def is_id(self, value: str) -> bool:
        """Return True if a value counts as an id, which needs no request."""
        return value in self.ids or _ID.fullmatch(value) is not None


NETWORK = Sort('network', 'network', '/networks', 'networks')
SUBNET = Sort('subnet', 'network', '/subnets', 'subnets')
PORT = Sort('port', 'network', '/ports', 'ports')
ROUTER = Sort('router', 'network', '/routers', 'routers')
FLOATING_IP = Sort('floating IP', 'network', '/floatingips', 'floatingips')
SECURITY_GROUP = Sort('security group', 'network', '/security-groups', 'security_groups')
SUBNET_POOL = Sort('subnet pool', 'network', '/subnetpools', 'subnetpools')
SEGMENT = Sort('segment', 'network', '/segments', 'segments')
QOS_POLICY = Sort('QoS policy', 'network', '/qos/policies', 'policies')
FLAVOR = Sort('flavor', 'compute', '/flavors', 'flavors', filters=False)
IMAGE = Sort('image', 'image', '/images', 'images')
VOLUME = Sort('volume', 'block-storage', '/volumes', 'volumes')
VOLUME_SNAPSHOT = Sort('volume snapshot', 'block-storage', '/snapshots', 'snapshots')
BACKUP = Sort('backup', 'block-storage', '/backups', 'backups')
PROJECT = Sort('project', 'identity', '/projects', 'projects')
DOMAIN = Sort('domain', 'identity', '/domains', 'domains', ids=frozenset({'default'}))
USER = Sort('user', 'identity', '/users', 'users')
