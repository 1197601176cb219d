"""How fast the API answers: one stack, and a page of them, with many stacks in the database."""

from __future__ import annotations

import http.client
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from oslo_config import cfg

from convergence.cmd.embedded import Embedded
from convergence.cmd.wiring.api import ApiProcess
from convergence.concurrency import Group, Lock
from convergence.config import ApiSettings
from convergence.errors import ConvergenceError
from tests.bench.settings import settings_for

PROJECT = 'bench'
CLIENTS = 4
REQUESTS = 50
"""Requests of each client."""
TEMPLATE: dict[str, Any] = {
    'heat_template_version': '2018-08-31',
    'resources': {'r': {'type': 'OS::Heat::Value', 'properties': {'value': 'x'}}},
    'outputs': {'o': {'value': {'get_attr': ['r', 'value']}}},
}


@dataclass(frozen=True, slots=True)
class Answered:
    """How one kind of request was answered. Times in seconds.

    :param per_second: requests of all clients together.
    """

    median_s: float
    slowest_s: float
    per_second: float


def serve(stacks: int) -> dict[str, Answered]:
    """Ask for a stack, a page of 20 and the whole list, over HTTP, with so many stacks in an SQLite file.

    :raises ConvergenceError: a request is not answered as it should be.
    """
    with tempfile.TemporaryDirectory(prefix='convergence-bench-') as directory:
        settings = settings_for(Path(directory), f'sqlite:///{Path(directory) / "convergence.sqlite"}', 'memory://')
        with Embedded(settings) as embedded:
            context = embedded.context(PROJECT)
            made = [embedded.client.create_stack(context, f's{number}', TEMPLATE) for number in range(stacks)]
            for identity in made:
                embedded.wait(identity, timeout_s=600)
            nothing_configured = cfg.ConfigOpts()
            nothing_configured([], default_config_files=[], default_config_dirs=[])
            token_file = Path(directory) / 'token'
            options = ApiSettings(port=0, token_file=token_file)
            api = ApiProcess(options, embedded.parts.transport, stop_s=5.0, conf=nothing_configured)
            api.start()
            try:
                one = f'/v1/{PROJECT}/stacks/{made[0]["stack_name"]}/{made[0]["stack_id"]}'
                paths = {
                    'one stack': one,
                    '20 stacks': f'/v1/{PROJECT}/stacks?limit=20',
                    'all stacks': f'/v1/{PROJECT}/stacks',
                }
                token = token_file.read_text(encoding='utf-8').strip()
                return {name: _ask(api.address, path, token) for name, path in paths.items()}
            finally:
                api.stop()


def _ask(address: str, path: str, token: str) -> Answered:
    """`CLIENTS` clients, each with a connection of its own, ask again and again."""
    times: list[float] = []
    failed: list[int] = []
    lock, group = Lock(), Group('bench-clients')

    def ask() -> None:
        connection = http.client.HTTPConnection(urlsplit(address).netloc, timeout=60)
        own = []
        for _ in range(REQUESTS):
            begun = time.perf_counter()
            connection.request('GET', path, headers={'X-Auth-Token': token})
            answer = connection.getresponse()
            answer.read()
            own.append(time.perf_counter() - begun)
            if answer.status != 200:
                with lock:
                    failed.append(answer.status)
        connection.close()
        with lock:
            times.extend(own)

    begun = time.perf_counter()
    _together(group, ask)
    seconds = time.perf_counter() - begun
    if failed or len(times) != CLIENTS * REQUESTS:
        raise ConvergenceError(f'{path} was answered with {failed[:1] or "silence"}')
    times.sort()
    return Answered(times[len(times) // 2], times[-1], len(times) / seconds)


def _together(group: Group, ask: Callable[[], None]) -> None:
    for _ in range(CLIENTS):
        group.spawn(lambda task: ask())
    group.wait()
