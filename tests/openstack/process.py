"""An engine or a worker with failpoints around each request to a service; otherwise as `tests.chaos.process`."""

from __future__ import annotations

import re
import sys
from typing import Any
from urllib.parse import urlsplit

from requests import PreparedRequest, Response
from requests.adapters import HTTPAdapter

from convergence.cmd import engine, worker
from tests.chaos import failpoints
from tests.chaos.process import open_parts

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
    send = HTTPAdapter.send

    def watched(self: HTTPAdapter, request: PreparedRequest, *arguments: Any, **options: Any) -> Response:
        what = name_of(str(request.method), str(request.url))
        answer: Response = points.request(lambda: send(self, request, *arguments, **options), what)
        return answer

    HTTPAdapter.send = watched  # type: ignore[method-assign]


if __name__ == '__main__':
    kind, *arguments = sys.argv[1:]
    watch_requests()
    sys.exit((engine if kind == 'engine' else worker).main(arguments, open_parts))
