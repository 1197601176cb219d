"""What notifications of services are about: asks the types."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from typing import Any

from convergence.resources.contract import ResourceType

LOG = logging.getLogger(__name__)


class Hearing:
    """Tells of the objects that a notification is about.

    :param types: those that read notifications, by name.
    :param tell: is called with a type and a physical id. Whether there is such an object of ours is not known here.
    """

    def __init__(self, types: Mapping[str, ResourceType[Any]], tell: Callable[[str, str], None]) -> None:
        self._types = dict(types)
        self._tell = tell

    def __call__(self, event_type: str, payload: object) -> None:
        """A notification has come. What a type cannot make sense of is left out."""
        if not isinstance(payload, Mapping):
            return
        for name, kind in self._types.items():
            try:
                found = set(kind.notified(event_type, payload))
            except Exception as error:  # noqa: BLE001 - it is somebody else's code, and somebody else's payload
                LOG.info('The type %s makes no sense of a notification %s: %s', name, event_type, type(error).__name__)
                continue
            for physical_id in found:
                self._tell(name, physical_id)
