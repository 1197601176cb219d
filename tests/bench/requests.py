"""How requests are answered that have to do with large stacks: how soon, and for how much processor time of an engine."""

from __future__ import annotations

import http.client
import json
import statistics
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from oslo_config import cfg

from convergence.cmd.wiring.api import ApiProcess
from convergence.config import ApiSettings
from convergence.errors import ConvergenceError
from tests.bench.installations import EMBEDDED, BenchmarkInstallation
from tests.bench.shapes import template

TIMES = 10
"""How often each question is asked."""
PROJECT = 'bench'


@dataclass(frozen=True, slots=True)
class Request:
    """How one kind of request was answered.

    :param seconds: until the whole answer was there; the median.
    :param engine_ms: milliseconds of processor time of the engine, for each; where all is one process, of that process.
    :param size_bytes: of the answer.
    """

    resources: int
    request: str
    seconds: float
    engine_ms: float
    size_bytes: int


def ask(installation: BenchmarkInstallation, resources: int) -> Iterator[Request]:
    """Ask for a stack of so many resources to be made, and then for what it is, over HTTP.

    :raises ConvergenceError: a request is not answered as it should be, or the stack fails.
    """
    with _api(installation) as api:
        stacks = f'/v1/{PROJECT}/stacks'
        body = {'stack_name': f'asked-{resources}', 'template': template('flat', resources)}
        made: dict[str, Any] = {}
        yield _asked(installation, api, (resources, 'POST a stack'), 1, lambda: made.update(api('POST', stacks, body)))
        identity = {'stack_id': made['stack']['id']}
        installation.wait(identity)
        one = f'{stacks}/{body["stack_name"]}/{identity["stack_id"]}'
        for request, path, times in (
            ('GET the stack', f'{one}?resolve_outputs=false', TIMES),
            ('the same with outputs', one, TIMES),
            ('GET 20 resources', f'{one}/resources?limit=20', TIMES),
            ('GET all resources', f'{one}/resources', 2),
            ('GET 20 events', f'{one}/events?limit=20', TIMES),
        ):
            yield _asked(installation, api, (resources, request), times, partial(api, 'GET', path))
        yield _asked(installation, api, (resources, 'DELETE the stack'), 1, lambda: api('DELETE', one))
        installation.wait(identity)


class _Api:
    """Asks over one connection."""

    def __init__(self, address: str, token: str) -> None:
        self._connection = http.client.HTTPConnection(urlsplit(address).netloc, timeout=600)
        self._token = token
        self.answered_bytes = 0

    def __call__(self, method: str, path: str, body: dict[str, Any] | None = None) -> dict[str, Any]:
        headers = {'X-Auth-Token': self._token, 'Content-Type': 'application/json'}
        self._connection.request(method, path, None if body is None else json.dumps(body), headers)
        answer = self._connection.getresponse()
        content = answer.read()
        if answer.status >= 300:
            raise ConvergenceError(f'{method} {path} was answered with {answer.status}: {content[:200]!r}')
        self.answered_bytes = len(content)
        found: dict[str, Any] = json.loads(content) if content else {}
        return found

    def close(self) -> None:
        self._connection.close()


@contextmanager
def _api(installation: BenchmarkInstallation) -> Iterator[_Api]:
    nothing_configured = cfg.ConfigOpts()
    nothing_configured([], default_config_files=[], default_config_dirs=[])
    with tempfile.TemporaryDirectory(prefix='convergence-bench-') as directory:
        token_file = Path(directory) / 'token'
        options = ApiSettings(port=0, token_file=token_file)
        process = ApiProcess(options, installation.transport, stop_s=5.0, conf=nothing_configured)
        process.start()
        api = _Api(process.address, token_file.read_text(encoding='utf-8').strip())
        try:
            yield api
        finally:
            api.close()
            process.stop()


def _asked(
    installation: BenchmarkInstallation, api: _Api, case: tuple[int, str], times: int, ask_once: Callable[[], object]
) -> Request:
    """Ask some times, one after the other."""
    kind = EMBEDDED if installation.launcher is None else 'engine'
    used, took = installation.cpu_s()[kind], []
    for _ in range(times):
        begun = time.perf_counter()
        ask_once()
        took.append(time.perf_counter() - begun)
    engine_ms = 1000 * (installation.cpu_s()[kind] - used) / times
    return Request(*case, statistics.median(took), engine_ms, api.answered_bytes)
