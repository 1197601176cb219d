"""Processes that do not reach the database themselves, such as the API: an engine keeps their rows for them."""

from __future__ import annotations

from collections.abc import Mapping

from convergence import errors
from convergence.core.model import Json
from convergence.db.ports import RosterPort
from convergence.db.records import NO_LOAD

KINDS = ('api',)
"""Renews the leases by which engines and workers show that they are alive; claims depend on leases."""


class Presences:
    """Registers such processes."""

    def __init__(self, roster: RosterPort) -> None:
        self._roster = roster

    def service_beat(
        self,
        context: object,
        service_id: str,
        kind: str,
        host: str,
        version: str,
        lease_s: float,
        load: Mapping[str, Json] = NO_LOAD,
    ) -> None:
        """A process is alive.

        :param lease_s: seconds without another beat after which it is taken for dead.
        :param load: how busy it is.
        :raises Invalid: processes of that kind show it themselves.
        """
        if kind not in KINDS:
            raise errors.Invalid(f'A process of kind {kind} keeps its own row; this is for {", ".join(KINDS)}')
        if not self._roster.beat(service_id, load):
            self._roster.register(service_id, kind, host, version, lease_s)

    def service_leave(self, context: object, service_id: str) -> None:
        """A process ends in good order."""
        known = next((each for each in self._roster.services() if each.id == service_id), None)
        if known is not None and known.kind in KINDS:
            self._roster.leave(service_id)
