"""An engine or a worker with failpoints around each request to a service; otherwise as `tests.chaos.process`.

A worker that is killed lives again within a moment: its next life is a fork of a process that has the types already.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import re
import signal
import sys
from importlib import import_module
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from requests import PreparedRequest, Response
from requests.adapters import HTTPAdapter

from convergence.cmd import engine, worker
from tests.chaos import failpoints
from tests.chaos.process import open_parts

TYPES = 'CONVERGENCE_OPENSTACK_TYPES'
"""Names the package whose types are tried out, by its manifest."""

REQUESTS = 'CONVERGENCE_OPENSTACK_REQUESTS'
"""Names the file into which each request is written."""

_PR_SET_PDEATHSIG = 1
_SERVICES = ('keystone', 'glance', 'placement', 'neutron', 'nova', 'cinder')
_IDS = re.compile(r'/([0-9a-f]{32}|[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}|(?<=os-keypairs/)[^/]+)(?=/|$)')


def name_of(method: str, url: str) -> str:
    """A request without what is different each time: ``POST neutron /v2.0/networks``.

    The ports of the services are in order (`tests.openstack.layout`).
    """
    parts = urlsplit(url)
    return f'{method} {_SERVICES[(parts.port or 0) % 10]} {_IDS.sub("/*", parts.path)}'


def watch_requests() -> None:
    """Have failpoints around each request that this process sends over HTTP."""
    points = failpoints.from_environment()
    told = Path(os.environ[REQUESTS]) if REQUESTS in os.environ else None
    send = HTTPAdapter.send

    def watched(self: HTTPAdapter, request: PreparedRequest, *arguments: Any, **options: Any) -> Response:
        what = name_of(str(request.method), str(request.url))
        if told is not None:
            with told.open('a') as lines:
                lines.write(f'{what}\n')
        answer: Response = points.request(lambda: send(self, request, *arguments, **options), what)
        return answer

    HTTPAdapter.send = watched  # type: ignore[method-assign]


def live(arguments: list[str]) -> int:
    """Work in a process of one's own, and again in another one whenever that is killed; the exit code."""
    with contextlib.suppress(ImportError):
        # Has all classes imported before it finds that there is none of that name.
        import_module(f'convergence_{os.environ[TYPES]}.library').load('')
    while True:
        process_id = os.fork()
        if process_id == 0:
            ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)  # nobody else would end it
            return worker.main(arguments, open_parts)
        signal.signal(signal.SIGTERM, lambda number, frame, process_id=process_id: os.kill(process_id, number))
        code = os.waitstatus_to_exitcode(os.waitpid(process_id, 0)[1])
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
        if code != -signal.SIGKILL:
            return abs(code)
        print('killed', flush=True)


if __name__ == '__main__':
    kind, *arguments = sys.argv[1:]
    watch_requests()
    sys.exit(engine.main(arguments, open_parts) if kind == 'engine' else live(arguments))
