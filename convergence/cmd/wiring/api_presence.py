"""The API shows that it is alive. It has no database of its own to say so: an engine writes it down."""

from __future__ import annotations

import logging
import os
import uuid
from collections.abc import Callable

from oslo_context.context import RequestContext

from convergence import __version__
from convergence.concurrency import ThreadEvent, start_thread
from convergence.config import Settings
from convergence.errors import ConvergenceError
from convergence.rpc.client import EngineClient
from convergence.rpc.transport import Transport

LOG = logging.getLogger(__name__)


LookAtLoad = Callable[[], dict[str, int]]


class ApiPresence:
    """Tells an engine again and again that this process is there.

    Nothing depends on it but what ``convergence-manage service list`` shows; so a beat that fails is not worth a line.

    :param load: how busy the process is.
    """

    def __init__(self, client: EngineClient, host: str, interval_s: float, lease_s: float, load: LookAtLoad) -> None:
        self._client = client
        self._host = host
        self._interval_s = interval_s
        self._lease_s = lease_s
        self._load = load
        self._id = str(uuid.uuid4())
        self._stopping = ThreadEvent()

    def start(self) -> None:
        """Begin to tell it, in a thread of its own."""
        start_thread('api-presence', self._run)

    def stop(self) -> None:
        """Sign off, if an engine answers."""
        self._stopping.set()
        self._ask(lambda context: self._client.service_leave(context, self._id))

    def _run(self) -> None:
        while True:
            self._ask(
                lambda context: self._client.service_beat(
                    context,
                    self._id,
                    'api',
                    self._host,
                    __version__,
                    self._lease_s,
                    {'pid': os.getpid(), **self._load()},
                )
            )
            if self._stopping.wait(self._interval_s):
                return

    @staticmethod
    def _ask(ask: Callable[[RequestContext], object]) -> None:
        try:
            ask(RequestContext(overwrite=False))
        except ConvergenceError as error:
            LOG.debug('API process not recorded as alive, retrying: %s', error)


def shown(settings: Settings, transport: Transport) -> Callable[[LookAtLoad], ApiPresence]:
    """Makes the presence of an API process, once it is known how to ask how busy it is."""
    engine = settings.engine
    client = EngineClient(transport)
    return lambda load: ApiPresence(client, settings.host, engine.heartbeat_interval_s, engine.lease_s, load)
